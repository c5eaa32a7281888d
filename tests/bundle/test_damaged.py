"""Bundles that are damaged or meant harm: refused with one line, before onnxruntime sees them."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.bundle.external_data import external_files
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.bundle.reading import read_bundle
from dragoman_server.errors import BundleError
from dragoman_server.runtime.checks.golden import replay
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_training.files import staged_directory
from support.bundles import export, seeded_model, trained_bundle


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained_bundle("int8").path, tmp_path / "bundle"))


def refusal(bundle: Path) -> str:
    with pytest.raises(BundleError) as caught:
        read_bundle(bundle)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def edit_manifest(bundle: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    change(manifest)
    (bundle / "manifest.json").write_text(json.dumps(manifest))


def adopt(bundle: Path, name: str) -> None:
    """Make the manifest agree with a changed file, as an attacker would."""
    content = (bundle / name).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    entry = {"bytes": len(content), "sha256": digest}
    edit_manifest(bundle, lambda m: m["files"].update({name: entry}))


def files(bundle: Path) -> list[Path]:
    return sorted(p for p in bundle.iterdir() if p.name != "manifest.json")


def test_a_whole_bundle_is_read_and_replayed(bundle: Path) -> None:
    checked = read_bundle(bundle)
    assert replay(checked, Graphs(checked, GraphSettings(rows=1))) == 0.0


def test_a_cut_file(bundle: Path) -> None:
    for file in files(bundle):
        content = file.read_bytes()
        file.write_bytes(content[:-1])
        message = refusal(bundle)
        assert message.startswith(f"{file}: {len(content) - 1} bytes, but the manifest says")
        file.write_bytes(content)


def test_a_flipped_bit(bundle: Path) -> None:
    for file in files(bundle):
        content = file.read_bytes()
        damaged = bytearray(content)
        damaged[len(content) // 3] ^= 1
        file.write_bytes(damaged)
        assert refusal(bundle) == f"{file}: its content is not what the manifest says (sha256)"
        file.write_bytes(content)


def test_a_missing_and_a_renamed_file(bundle: Path) -> None:
    (bundle / "weights.bin").rename(bundle / "weights.old")
    assert refusal(bundle) == f"{bundle / 'weights.old'}: not listed in the manifest"
    (bundle / "weights.old").unlink()
    assert refusal(bundle) == f"{bundle / 'weights.bin'}: No such file or directory"


def test_swapped_files(bundle: Path) -> None:
    encoder, decoder = bundle / "encoder.onnx", bundle / "decoder.onnx"
    encoder.rename(bundle / "x")
    decoder.rename(encoder)
    (bundle / "x").rename(decoder)
    assert refusal(bundle).startswith(f"{bundle}/")
    assert "but the manifest says" in refusal(bundle)


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "other.bin", ""])
def test_a_graph_that_refers_elsewhere(bundle: Path, location: str) -> None:
    model = onnx.load(bundle / "decoder.onnx", load_external_data=False)
    tensor = next(t for t in model.graph.initializer if t.external_data)
    next(e for e in tensor.external_data if e.key == "location").value = location
    (bundle / "decoder.onnx").write_bytes(model.SerializeToString())
    adopt(bundle, "decoder.onnx")
    assert refusal(bundle) == (
        f"{bundle / 'decoder.onnx'}: refers to {location!r}, and may refer to weights.bin only"
    )


def test_references_are_found_wherever_a_tensor_can_be() -> None:
    tensor = onnx.TensorProto(name="t", data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="../evil")
    constant = onnx.helper.make_node("Constant", [], ["y"])
    constant.attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(tensor)
    inner = onnx.GraphProto(node=[constant])
    branch = onnx.helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner)
    model = onnx.ModelProto(graph=onnx.GraphProto(node=[branch]))
    assert external_files(model.SerializeToString()) == {"../evil"}
    function = onnx.FunctionProto(name="f", node=[branch])
    assert external_files(onnx.ModelProto(functions=[function]).SerializeToString()) == {"../evil"}


def test_a_tag_that_parsers_read_differently_is_refused(bundle: Path) -> None:
    """Some cut a tag to 32 bits: then this one is the graph, though it does not look like it."""
    inner = b"\x0a\x00"
    encoded = bytearray()
    value = 0x3A | 1 << 32
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    (bundle / "move.onnx").write_bytes(bytes(encoded) + bytes([len(inner)]) + inner)
    adopt(bundle, "move.onnx")
    assert refusal(bundle).startswith(f"{bundle / 'move.onnx'}: not an ONNX graph (tag ")


@given(st.binary(max_size=200))
def test_any_bytes_are_walked_or_refused(content: bytes) -> None:
    with contextlib.suppress(ValueError):
        external_files(content)


def test_a_symbolic_link(bundle: Path, tmp_path: Path) -> None:
    weights = bundle / "weights.bin"
    weights.rename(tmp_path / "elsewhere")
    weights.symlink_to(tmp_path / "elsewhere")
    assert refusal(bundle) == f"{weights}: not a plain file, and a bundle holds no other"


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/b", ".."])
def test_a_manifest_that_lists_other_places(bundle: Path, name: str) -> None:
    edit_manifest(bundle, lambda m: m["files"].update({name: {"bytes": 0, "sha256": ""}}))
    assert refusal(bundle) == f"{bundle / 'manifest.json'}: {name!r} is not a plain file name"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m.update(format=2), "format 2, but this version reads format 1"),
        (lambda m: m.update(surprise=1), "unknown key 'surprise'"),
        (lambda m: m.pop("precision"), "missing 1 required keyword-only argument: 'precision'"),
        (lambda m: m.update(precision="int3"), "precision 'int3' is not known"),
        (lambda m: m["dimensions"].update(heads="8"), "heads is '8'"),
        (lambda m: m["files"].pop("move.onnx"), "lists no move.onnx"),
        (lambda m: m.update(dimensions=None), "Dimensions is missing"),
        (lambda m: m.update(files=[1]), "files is not a table"),
        (lambda m: m["dimensions"].update(heads=0), "heads is 0: it must be from 1 to 16777216"),
        (lambda m: m["dimensions"].update(heads=7), "which is no multiple of heads, 7"),
        (
            lambda m: m["special_ids"].update(end=10**9),
            "end is 1000000000: it must be from 0 to 319",
        ),
        (lambda m: m["special_ids"].update(end=0), "'begin': 2, 'end': 0}"),
        (lambda m: m.update(alignment_layer=99), "alignment_layer is 99: it must be from 0 to 1"),
        (
            lambda m: m.update(max_source_tokens=0),
            "max_source_tokens is 0: it must be from 1 to 16777216",
        ),
        (lambda m: m.update(quality=3), "quality is not a table"),
    ],
)
def test_a_manifest_that_is_not_ours(
    bundle: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    edit_manifest(bundle, change)
    message = refusal(bundle)
    assert message.startswith(f"{bundle / 'manifest.json'}: ")
    assert message.endswith(reason)


@pytest.mark.parametrize("content", ["", "[]", "{", "null", "\x00"])
def test_a_manifest_that_is_no_manifest(bundle: Path, content: str) -> None:
    (bundle / "manifest.json").write_text(content)
    assert refusal(bundle).startswith(f"{bundle / 'manifest.json'}: ")


@pytest.mark.parametrize(
    "golden",
    [
        "{",
        "[]",
        "null",
        '{"sentences": []}',
        '{"sentences": [{}]}',
        '{"sentences": [{"source": [5], "limit": 0, "ids": [5], "token_log_probs": [0, 0]}]}',
        '{"sentences": [{"source": [999], "limit": 3, "ids": [5], "token_log_probs": [0, 0]}]}',
        '{"sentences": [{"source": [5], "limit": 3, "ids": [5], "token_log_probs": [0]}]}',
    ],
)
def test_golden_decodings_that_are_none(bundle: Path, golden: str) -> None:
    (bundle / "golden.json").write_text(golden)
    adopt(bundle, "golden.json")
    assert refusal(bundle).startswith(f"{bundle / 'golden.json'}: not golden decodings (")


def test_graphs_of_another_size_are_named(bundle: Path) -> None:
    edit_manifest(bundle, lambda m: m.update(max_target_tokens=80))
    checked = read_bundle(bundle)
    with pytest.raises(BundleError, match=r"decoder\.onnx: self_key_0 is \(4, 40, 16\), but"):
        Graphs(checked, GraphSettings(rows=1))


def test_graphs_that_onnxruntime_refuses_are_named(bundle: Path) -> None:
    (bundle / "decoder.onnx").write_bytes(b"")
    adopt(bundle, "decoder.onnx")
    checked = read_bundle(bundle)
    with pytest.raises(BundleError, match=r"decoder\.onnx: onnxruntime can't load it") as caught:
        Graphs(checked, GraphSettings(rows=1))
    assert "\n" not in str(caught.value)


def test_other_scores_are_noticed_at_replay(bundle: Path) -> None:
    golden = json.loads((bundle / "golden.json").read_text())
    golden["sentences"][0]["token_log_probs"][0] -= 1.0
    (bundle / "golden.json").write_text(json.dumps(golden))
    adopt(bundle, "golden.json")
    checked = read_bundle(bundle)
    with pytest.raises(BundleError, match="golden sentence 1 has scores that differ by 1"):
        replay(checked, Graphs(checked, GraphSettings(rows=1)))
    golden["sentences"][0]["token_log_probs"][0] = float("nan")
    (bundle / "golden.json").write_text(json.dumps(golden))
    adopt(bundle, "golden.json")
    checked = read_bundle(bundle)
    with pytest.raises(BundleError, match="golden sentence 1 has scores that differ by nan"):
        replay(checked, Graphs(checked, GraphSettings(rows=1)))
    golden["sentences"][0]["ids"][0] = 9
    (bundle / "golden.json").write_text(json.dumps(golden))
    adopt(bundle, "golden.json")
    checked = read_bundle(bundle)
    with pytest.raises(BundleError, match="golden sentence 1 is decoded to other tokens"):
        replay(checked, Graphs(checked, GraphSettings(rows=1)))


def test_a_manifest_survives_being_written_and_read() -> None:
    manifest = trained_bundle("int8").manifest
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert manifest.cache_bytes_per_row == 2 * 2 * 80 * 64 * 4


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_keeps_the_old_bundle_and_leaves_no_litter(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this machine does not let us mount a small disk")
    try:
        with staged_directory(disk / "bundle") as staging:
            (staging / "golden.json").write_text("old")
        with pytest.raises(OSError, match="No space left"):
            export(seeded_model(feed_forward=1024), disk / "bundle", "float32")
        assert (disk / "bundle" / "golden.json").read_text() == "old"
        assert list(disk.iterdir()) == [disk / "bundle"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)
