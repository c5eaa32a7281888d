"""Marian's files of models: what is in them, and what is said of damaged ones."""

import gzip
import io
import resource
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_export.errors import ExportError
from dragoman_export.marian.directory import ModelDirectory
from dragoman_export.marian.reading import read_model
from support.marian_models import (
    ACTIVATION_MULTIPLIER,
    MarianModel,
    binary_bytes,
    multiplier_of,
    npz_bytes,
    pack_items,
)

SMALL = {
    "W": np.arange(6, dtype=np.float32).reshape(2, 3) - 2,
    "Wemb": np.array([[1, -0.5], [0.25, 3]], np.float32),
    "b": np.array([[0.1, 0.2, 0.3]], np.float32),
}
YAML = "type: transformer\n"
FILES = {
    "float32": binary_bytes(SMALL, YAML),
    "intgemm8": binary_bytes(SMALL, YAML, is_quantized=True, multiplier=3.5),
    "npz": npz_bytes(SMALL, YAML),
}


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("form", ["float32", "npz"])
def test_floats_are_read_as_they_are(form: str, tmp_path: Path) -> None:
    model = read_model(written(tmp_path / "model", FILES[form]))
    assert model.config == YAML
    assert model.weights.keys() == SMALL.keys()
    for name, values in SMALL.items():
        assert np.array_equal(model.weights[name].values, values)
        assert model.weights[name].step == 0


def test_8_bit_weights_are_their_whole_numbers_by_the_multiplier(tmp_path: Path) -> None:
    model = read_model(written(tmp_path / "model", FILES["intgemm8"]))
    for name in ("W", "Wemb"):
        multiplier = multiplier_of(SMALL[name])
        whole = np.rint(SMALL[name] * multiplier)
        assert model.weights[name].multiplier == multiplier
        assert np.array_equal(model.weights[name].values, whole / np.float32(multiplier))
    assert np.array_equal(model.weights["b"].values, SMALL["b"])
    assert model.weights["W_QuantMultA"].values == 3.5


def test_both_forms_of_a_whole_model_are_the_same(tmp_path: Path) -> None:
    kind = MarianModel(form="npz")
    weights = kind.weights()
    binary = written(tmp_path / "a.bin", binary_bytes(weights, kind.yaml()))
    archive = written(tmp_path / "a.npz", npz_bytes(weights, kind.yaml()))
    one, other = read_model(binary), read_model(archive)
    assert one.config == other.config == kind.yaml()
    assert one.weights.keys() == other.weights.keys() == weights.keys()
    assert all(np.array_equal(one.weights[n].values, other.weights[n].values) for n in weights)


def test_a_packed_model_is_the_same(tmp_path: Path) -> None:
    kind = MarianModel(is_quantized=True)
    plain, packed = (kind.write(tmp_path / name) for name in ("plain", "packed"))
    for file in list(packed.iterdir()):
        written(packed / f"{file.name}.gz", gzip.compress(file.read_bytes()))
        file.unlink()
    models = []
    for path in (plain, packed):
        directory = ModelDirectory(path)
        with directory.unpacked(directory.model) as file:
            models.append(read_model(file))
    assert models[0].config == models[1].config
    for name, weight in models[0].weights.items():
        assert np.array_equal(weight.values, models[1].weights[name].values)
    multiplier = models[0].weights["encoder_l1_self_Wq_QuantMultA"].values
    assert multiplier == np.float32(ACTIVATION_MULTIPLIER)


def item(name: str, kind: int, shape: list[int], data: bytes) -> bytes:
    return pack_items([(name, kind, shape, data)])


DAMAGED = {
    "nothing": (b"", "empty"),
    "text": (b"not a model at all, but text", "its first number is"),
    "another version": (struct.pack("<2Q", 2, 0), "its first number is 2"),
    "no configuration": (item("W", 0x0404, [1], bytes(4)), "has no special:model.yml"),
    "more items than bytes": (struct.pack("<2Q", 1, 1 << 60), "cut off"),
    "a huge shape": (item("W", 0x0404, [1 << 30, 1 << 30], bytes(64)), "takes"),
    "a negative shape": (item("W", 0x0404, [-1, 4], bytes(64)), r"shape \[-1, 4\]"),
    "no dimension": (item("W", 0x0404, [], bytes(64)), "has 0 dimensions"),
    "float16": (item("W", 0x0402, [2], bytes(4)), "W is stored as float16"),
    "intgemm16": (item("W", 0x4102, [2], bytes(8)), "W is stored as intgemm16"),
    "another type": (item("W", 0x7777, [2], bytes(8)), "W is stored as type 0x7777"),
    "no multiplier": (item("W", 0x4101, [4], bytes(4)), "takes 8 bytes"),
    "a multiplier of 0": (item("W", 0x4101, [4], bytes(8)), "the multiplier 0.0"),
    "not a number": (binary_bytes({"W": SMALL["W"] * np.nan}, YAML), "W has what is not a number"),
    "the same twice": (pack_items([("W", 0x0404, [1], bytes(4))] * 2), "has W twice"),
    "a name with a line break": (item("a\nb", 0x0404, [1], bytes(4)), "an item has no name"),
    "a configuration that is no text": (
        item("special:model.yml", 0x0101, [2], b"\xff\xfe"),
        "is not text",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_binary_file_is_refused_in_a_line(case: str, tmp_path: Path) -> None:
    content, says = DAMAGED[case]
    with pytest.raises(ExportError, match=says) as refused:
        read_model(written(tmp_path / "model.bin", content))
    assert "\n" not in str(refused.value)


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return stream.getvalue()


def array(values: np.ndarray, **changes: tuple[bytes, bytes]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values, allow_pickle=True)
    content = stream.getvalue()
    for old, new in changes.values():
        content = content.replace(old, new)
    return content


ONES = np.ones((2, 3), np.float32)
BAD_ARCHIVES = {
    "cut off": (FILES["npz"][:-40], "not an archive"),
    "a member that is no array": (archive({"W.npy": b"nothing"}), "W is no array"),
    "compressed": (archive({"W.npy": array(ONES)}, zipfile.ZIP_DEFLATED), "is compressed"),
    "objects": (archive({"W.npy": array(np.array([{}], object))}), "not of numbers"),
    "float64": (archive({"W.npy": array(ONES.astype(np.float64))}), "must be float32"),
    "whole numbers": (archive({"W.npy": array(np.ones((2, 3), np.int32))}), "must be float32"),
    "a larger shape": (
        archive({"W.npy": array(ONES, shape=(b"(2, 3)", b"(9, 9)"))}),
        r"shape \[9, 9\]",
    ),
    "a shape below zero": (
        archive({"W.npy": array(ONES, shape=(b"(2, 3), ", b"(-2,-3),"))}),
        r"shape \[-2, -3\]",
    ),
    "column by column": (
        archive({"W.npy": array(np.asfortranarray(ONES))}),
        "column by column",
    ),
    "no configuration": (archive({"W.npy": array(ONES)}), "has no special:model.yml"),
    "not a number": (npz_bytes({"W": ONES * np.nan}, YAML), "W has what is not a number"),
}


@pytest.mark.parametrize("case", BAD_ARCHIVES)
def test_a_damaged_archive_is_refused_in_a_line(case: str, tmp_path: Path) -> None:
    content, says = BAD_ARCHIVES[case]
    with pytest.raises(ExportError, match=says) as refused:
        read_model(written(tmp_path / "model.npz", content))
    assert "\n" not in str(refused.value)


def test_archive_members_can_t_be_read_more_often_than_they_are_there(tmp_path: Path) -> None:
    """An archive may list one place many times over."""
    content = bytearray(FILES["npz"])
    end = content.rindex(b"PK\x05\x06")
    count, size, start = struct.unpack_from("<HII", content, end + 10)
    entries = bytes(content[start : start + size])
    copies = 50
    renamed = [entries.replace(b"W.npy", b"%c.npy" % (65 + n)) for n in range(copies)]
    tail = bytearray(content[end:])
    struct.pack_into("<HHII", tail, 8, count * copies, count * copies, size * copies, start)
    with pytest.raises(ExportError, match=r"more than the file has|not an archive"):
        read_model(
            written(tmp_path / "m", bytes(content[:start]) + b"".join(renamed) + bytes(tail))
        )


@settings(max_examples=300, deadline=None)
@given(
    form=st.sampled_from(sorted(FILES)),
    cut=st.integers(0, 4000),
    places=st.lists(st.tuples(st.integers(0, 4000), st.binary(min_size=1, max_size=8)), max_size=4),
)
def test_whatever_bytes_there_are_the_reader_gives_a_model_or_a_line(
    form: str, cut: int, places: list[tuple[int, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(FILES[form])
    for at, data in places:
        at %= len(content)
        content[at : at + len(data)] = data[: len(content) - at]
    if cut % 3 == 0:
        del content[cut % len(content) :]
    path = written(tmp_path_factory.getbasetemp() / "fuzzed", bytes(content))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    says, values = "", []
    try:
        values = [weight.values for weight in read_model(path).weights.values()]
    except ExportError as error:
        says = str(error)
    assert "\n" not in says
    assert all(np.isfinite(each).all() for each in values)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
