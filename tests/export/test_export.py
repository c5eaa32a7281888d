"""Exporting: what is in a bundle, what is refused, and that nothing partial is left."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from dragoman_export.bundle_files import write_unverified
from dragoman_export.errors import ExportError, VerificationError
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.graphs.builder import GraphBuilder
from dragoman_export.graphs.precision import Float
from dragoman_export.source import origin_of
from dragoman_export.texts import ParallelSample
from dragoman_server.bundle.graph_io import GRAPHS
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import encode
from support.bundles import (
    REFERENCES,
    SAMPLE,
    TEXTS,
    VOCABULARY,
    export,
    ignore,
    seeded_model,
    trained_bundle,
    trained_model,
)
from support.checkpoints import checkpoint_of
from support.command import dragoman
from support.models import random_sources


@pytest.mark.parametrize("precision", ["int8", "float16"])
def test_other_precisions_translate_like_float32(precision: str) -> None:
    quality = trained_bundle(precision).manifest.quality
    assert quality["token_agreement"] >= (0.99 if precision == "float16" else 0.95)
    assert quality["sentences"] == len(TEXTS)
    assert quality["bleu_float32"] > 90


@pytest.mark.parametrize("tied", ["all", "none"])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_weights_are_stored_once(tied: str, precision: str, tmp_path: Path) -> None:
    model = seeded_model(tied_embeddings=tied, max_length=40)
    bundle = export(model, tmp_path / "b", precision)
    sizes: dict[tuple[str, str], int] = {}
    for name in GRAPHS:
        for tensor in onnx.load(bundle.path / name, load_external_data=False).graph.initializer:
            facts = {entry.key: entry.value for entry in tensor.external_data}
            if facts:
                sizes[facts["offset"], facts["length"]] = int(facts["length"])
    stored = (bundle.path / "weights.bin").stat().st_size
    assert stored <= 1.05 * sum(sizes.values())
    matrices = [
        size for size in sizes.values() if size == VOCABULARY * 64 * (1 + 3 * (precision != "int8"))
    ]
    assert len(matrices) == (1 if tied == "all" else 3)


def test_a_wrong_graph_leaves_no_bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One matrix off by a little: the first output that differs is named."""
    right = Float.linear

    def wrong(self: Float, g: GraphBuilder, x: str, weights: Any, **kind: bool) -> str:
        if weights.name == "decoder.1.self_output":
            weights = dataclasses.replace(weights, matrix=weights.matrix * 1.01)
        return right(self, g, x, weights, **kind)

    monkeypatch.setattr(Float, "linear", wrong)
    with pytest.raises(
        VerificationError, match=r"decoder\.onnx: log_probs at step 1 of 1 rows differs .* by 0\.0"
    ):
        export(seeded_model(), tmp_path / "new" / "b", "float32")
    assert not (tmp_path / "new").exists()


def test_int8_needs_text(tmp_path: Path) -> None:
    settings = ExportSettings(name="x", precision="int8")
    with pytest.raises(ExportError, match="int8 must be measured on text"):
        export_bundle(
            origin_of(checkpoint_of(seeded_model())), tmp_path / "b", settings, None, ignore
        )


def test_without_text_float32_still_has_golden_decodings(tmp_path: Path) -> None:
    settings = ExportSettings(name="x")
    export_bundle(origin_of(checkpoint_of(trained_model())), tmp_path / "b", settings, None, ignore)
    golden = json.loads((tmp_path / "b" / "golden.json").read_text())["sentences"]
    assert golden


def test_the_same_checkpoint_gives_the_same_bytes(tmp_path: Path) -> None:
    again = export(trained_model(), tmp_path / "b", "int8")
    assert again.manifest.files == trained_bundle("int8").manifest.files


def test_the_commands(tmp_path: Path) -> None:
    checkpoint_of(trained_model()).save(tmp_path / "checkpoint")
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text("".join(line + "\n" for line in SAMPLE.sources))
    reference.write_text("".join(line + "\n" for line in SAMPLE.references))
    text = ("--source", source, "--reference", reference)
    bundle = tmp_path / "bundle"
    run = dragoman("export", tmp_path / "checkpoint", bundle, *text, "--licence", "MIT")
    assert run.returncode == 0, run.stderr
    assert "log-probabilities within" in run.stderr
    run = dragoman("inspect", bundle)
    for part in ("en → pt", "float32", "MIT", "cache per row", "BLEU", "bundle, version 1"):
        assert part in run.stdout
    assert json.loads(dragoman("inspect", bundle, "--json").stdout)["dimensions"]["width"] == 64
    run = dragoman("verify", bundle)
    assert run.returncode == 0
    assert "golden sentences decoded to the same tokens" in run.stdout
    for arguments, message in (
        (("export", tmp_path / "checkpoint", bundle, "--precision", "int9"), "precision is 'int9'"),
        (("export", tmp_path / "none", bundle), "neither a checkpoint nor a run"),
        (("export", tmp_path / "checkpoint", bundle, "--source", source), "go together"),
        (("verify", tmp_path / "none"), "no such bundle"),
        (("verify", bundle, "--device", "tpu"), "device is 'tpu'"),
        (
            ("verify", bundle, "--device", "cuda"),
            "precision float32, but device cuda needs float16",
        ),
    ):
        run = dragoman(*arguments)
        assert run.returncode == 2
        assert len(run.stderr.splitlines()) == 1
        assert message in run.stderr
    assert json.loads((bundle / "manifest.json").read_text())["licence"] == "MIT"


def test_what_stands_at_the_path_is_not_removed_unless_it_is_a_bundle(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint_of(trained_model()).save(checkpoint)
    before = sorted(checkpoint.iterdir())
    with pytest.raises(ExportError, match="neither empty nor a bundle"):
        export(trained_model(), checkpoint, "float32")
    assert sorted(checkpoint.iterdir()) == before
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ExportError, match="not a place for a bundle"):
        export(trained_model(), tmp_path / "file", "float32")
    assert (tmp_path / "file").read_text() == "mine"


def test_text_that_does_not_fit_is_left_out(tmp_path: Path) -> None:
    settings = ExportSettings(name="x", precision="int8")
    odd = ParallelSample([*TEXTS, "", "   ", "goat " * 90], [*REFERENCES, "x", "y", "z"])
    checkpoint = checkpoint_of(trained_model())
    bundle = export_bundle(origin_of(checkpoint), tmp_path / "b", settings, odd, ignore)
    assert bundle.manifest.quality["sentences"] == len(TEXTS)
    blank = ParallelSample([" "], ["x"])
    with pytest.raises(ExportError, match="no sentence that the model can take"):
        export_bundle(origin_of(checkpoint), tmp_path / "c", settings, blank, ignore)


def test_int8_keeps_the_bias_of_a_row_without_weights(tmp_path: Path) -> None:
    model = seeded_model(output_bias=True)
    with torch.no_grad():
        model.projection.weight[9].zero_()
        model.projection.bias[9] = -5.0
        model.projection.bias[8] = 3.0
    results = []
    for precision in ("float32", "int8"):
        path = tmp_path / precision
        path.mkdir()
        bundle = write_unverified(model, path, precision, calibration=random_sources(20, seed=1))
        graphs = Graphs(bundle, GraphSettings(rows=1))
        lengths = encode(graphs, [[5, 6, 7]])
        graphs.step(np.array([2]), np.array([0]), lengths, candidates=1)
        results.append(graphs.log_probs(1)[0, 8:10].copy())
    np.testing.assert_allclose(results[0], results[1], atol=0.3)


def test_products_may_stay_float32(tmp_path: Path) -> None:
    """With all of them kept, only the rounded embeddings differ from float32."""
    checkpoint = checkpoint_of(trained_model())
    kept = ExportSettings(name="x", precision="int8", keep_float32=("projection", "*coder.*"))
    export_bundle(origin_of(checkpoint), tmp_path / "b", kept, SAMPLE, ignore)
    ops = {
        node.op_type
        for name in GRAPHS
        for node in onnx.load(tmp_path / "b" / name, load_external_data=False).graph.node
    }
    assert "MatMul" in ops
    assert "MatMulIntegerToFloat" not in ops
    wrong = dataclasses.replace(kept, keep_float32=("projektion",))
    with pytest.raises(ExportError, match="no product is named like 'projektion'; there are"):
        export_bundle(origin_of(checkpoint), tmp_path / "c", wrong, SAMPLE, ignore)
    with pytest.raises(ValueError, match="keep_float32 is for int8"):
        ExportSettings(name="x", keep_float32=("projection",))


def test_golden_sentences_may_be_given_and_no_directory_is_told(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(trained_model())
    paths = {
        f"{split}_{side}": ["/home/me/text.gz"]
        for split in ("train", "valid")
        for side in ("source", "target")
    }
    checkpoint.config["recipe"] = {"seed": 1, "data": {**paths, "max_tokens": 128}}
    mine = [f"the mouse is number {n}" for n in range(20)]
    sample = dataclasses.replace(SAMPLE, golden=mine)
    settings = ExportSettings(name="x")
    bundle = export_bundle(origin_of(checkpoint), tmp_path / "b", settings, sample, ignore)
    encoded = [checkpoint.tokenizers.source.encode(text) for text in mine]
    assert bundle.golden
    assert all(entry.source in encoded for entry in bundle.golden)
    assert bundle.manifest.provenance["recipe"]["data"]["train_source"] == ["text.gz"]
    assert "/home" not in (tmp_path / "b" / "manifest.json").read_text()
