"""CTranslate2's ``model.bin``: what is read of it, and what damage does."""

import io
import re
import struct
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_export.argos.model_file import ModelFile, read_model
from dragoman_export.errors import ExportError
from support.argos_models import aliased, stored_as, write_model

Array = npt.NDArray[Any]
SMALL: dict[str, Array] = {
    "encoder/num_heads": np.asarray(np.int16(4)),
    "encoder/scale_embeddings": np.asarray(np.float32(1.5)),
    "a/weight": np.arange(12, dtype=np.float32).reshape(3, 4) - 5,
    "b/weight": np.arange(12, dtype=np.float32).reshape(3, 4) - 5,
    "a/bias": np.array([0.5, -1, 2], np.float32),
}


class WatchedFile(io.BytesIO):
    """A file that fails a test when more is asked of it than it has."""

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert 0 <= size <= len(self.getbuffer()) - self.tell()
        return super().read(size)


def read(content: bytes) -> ModelFile:
    return read_model(WatchedFile(content), len(content))


def refusal(content: bytes) -> str:
    with pytest.raises(ExportError) as caught:
        read(content)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@cache
def small(quantisation: str = "float32") -> bytes:
    kept, aliases = aliased(SMALL)
    return write_model(stored_as(kept, quantisation), aliases)


def test_numbers_weights_and_aliases() -> None:
    model = read(small())
    assert (model.specification, model.revision) == ("TransformerSpec", 7)
    assert model.numbers == {"encoder/num_heads": 4, "encoder/scale_embeddings": 1.5}
    assert type(model.numbers["encoder/num_heads"]) is int
    assert model.weights.keys() == {"a/weight", "a/bias", "b/weight"}
    assert model.weights["b/weight"] is model.weights["a/weight"]
    assert torch.equal(model.weights["a/weight"], torch.from_numpy(SMALL["a/weight"].copy()))


@pytest.mark.parametrize(("quantisation", "error"), [("int8", 0.05), ("int16", 0.01)])
def test_whole_numbers_are_divided_by_their_scales(quantisation: str, error: float) -> None:
    model = read(small(quantisation))
    assert "a/weight_scale" not in model.weights
    found = model.weights["a/weight"].numpy()
    stored = stored_as({"a/weight": SMALL["a/weight"]}, quantisation)
    scale = stored["a/weight_scale"]
    expected = stored["a/weight"] / (scale[:, None] if scale.ndim else scale)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(found, SMALL["a/weight"], atol=error)


def test_half_floats_and_whole_numbers_without_a_scale() -> None:
    values = np.array([[1.5, -2.25]], np.float32)
    upper = (values.view(np.uint32) >> 16).astype(np.uint16)
    model = read(
        write_model(
            {
                "half/weight": values.astype(np.float16),
                "brain/weight": upper,
                "whole/weight": (values * 1000).astype(np.int16),
                "unk_token": np.frombuffer(b"<unk>", np.int8),
            },
            {},
        )
    )
    for name in ("half", "brain", "whole"):
        assert model.weights[f"{name}/weight"].tolist() == [[1.5, -2.25]]
    assert model.texts == {"unk_token": "<unk>"}


def test_the_layout_before_version_4() -> None:
    name = struct.pack("<H", 9) + b"a/weight\0"
    content = struct.pack("<I", 3) + struct.pack("<H", 16) + b"TransformerSpec\0"
    content += struct.pack("<II", 3, 1) + name + struct.pack("<BIIBI", 2, 1, 2, 4, 2)
    content += np.array([1, 2], np.float32).tobytes() + struct.pack("<I", 0)
    assert read(content).weights["a/weight"].tolist() == [[1, 2]]


def with_variable(value: Array, **other: Array) -> bytes:
    return write_model({"a/weight": value, **other}, {})


def header(count: int) -> bytes:
    return small()[: small().index(struct.pack("<I", 4), 20)] + struct.pack("<I", count)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cut off"),
        (write_model({}, {}, version=7), "is of version 7: versions 2 to 6 are read"),
        (struct.pack("<IH", 6, 0xFFFF) + bytes(8), "a name of 65535 bytes"),
        (struct.pack("<IH", 6, 3) + b"ab\1", "a name that is no text"),
        (struct.pack("<IH", 6, 3) + b"\xff\xff\0", "a name that is no text"),
        (header(1 << 31), "2147483648 variables, which no model needs"),
        (header(5), "cut off"),
        (small() + b"\0", "1 bytes too many"),
        (
            header(1) + b"\2\0a\0" + struct.pack("<BIIBI", 2, 1 << 31, 1 << 31, 1, 1 << 20),
            r"a is \[2147483648, 2147483648\] of int8, but has 1048576 bytes",
        ),
        (
            header(1) + b"\2\0a\0" + struct.pack("<BIBI", 1, 0xFFFFFFFF, 1, 0xFFFFFFFF),
            "more than 1073741824 values",
        ),
        (
            header(1) + b"\2\0a\0" + struct.pack("<BIBI", 1, 1 << 30, 1, 1 << 30),
            "cut off",
        ),
        (header(1) + b"\2\0a\0" + struct.pack("<BBI", 0, 9, 1), "of type 9, which is not known"),
        (header(1) + b"\2\0a\0" + struct.pack("<B", 255), "a has 255 dimensions"),
        (with_variable(np.zeros((2, 2), np.int8)), "a/weight is of int8 and has no scale"),
        (with_variable(np.zeros((2, 2), np.int32)), "a/weight is of int32"),
        (
            write_model({"a": np.zeros((2, 2), np.int8), "a_scale": np.ones(3, np.float32)}, {}),
            r"a_scale is \[3\], and a \[2, 2\]",
        ),
        (
            write_model({"a": np.zeros((2, 2), np.int8), "a_scale": np.zeros(2, np.float32)}, {}),
            "a_scale is zero or not finite",
        ),
        (
            write_model({"a": np.zeros((2, 2), np.int8), "a_scale": np.ones(2, np.int16)}, {}),
            "a_scale is of int16, not of float32",
        ),
        (
            write_model({"a": np.zeros((2, 2), np.float32), "a_scale": np.ones(2, np.float32)}, {}),
            "a is of float32 and has a scale",
        ),
        (with_variable(np.full((1, 1), np.nan, np.float32)), "what is not a finite number"),
        (write_model(SMALL, {"c": "d"}), "c stands for d, which it does not have"),
        (write_model(SMALL, {"a/weight": "b/weight"}), "has a/weight twice"),
    ],
)
def test_damage_is_told_in_a_line(content: bytes, reason: str) -> None:
    assert re.search(reason, refusal(content))


def test_many_names_of_one_weight_are_as_many_weights() -> None:
    """A model would have a copy for each of them."""
    large: dict[str, Array] = {
        "a/weight": np.zeros((1 << 10, 1 << 10), np.int8),
        "a/weight_scale": np.ones(1 << 10, np.float32),
    }
    names = {f"b{number}/weight": "a/weight" for number in range(1100)}
    assert "more than 1073741824 values" in refusal(write_model(large, names))


def test_a_variable_that_is_there_twice() -> None:
    one = small()
    start, end = one.index(b"\x07\0a/bias"), one.index(b"\x09\0a/weight")
    twice = one[:end] + one[start:end] + one[end:]
    twice = twice.replace(struct.pack("<I", 4), struct.pack("<I", 5), 1)
    assert "has a/bias twice" in refusal(twice)


@given(st.integers(0, len(small("int8")) - 1))
def test_a_file_that_is_cut_off(length: int) -> None:
    refusal(small("int8")[:length])


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(small("int8")) - 1), st.integers(0, 255)), max_size=4))
def test_changed_bytes_are_read_or_refused(changes: list[tuple[int, int]]) -> None:
    """Whatever the bytes say, no more is read than there is, and nothing else is raised."""
    content = bytearray(small("int8"))
    for place, value in changes:
        content[place] = value
    try:
        model = read(bytes(content))
    except ExportError as error:
        reason = str(error)
    else:
        reason = ""
        assert all(tensor.isfinite().all() for tensor in model.weights.values())
    assert "\n" not in reason


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(content: bytes) -> None:
    for start in (b"", header(3)):
        refusal(start + content)
