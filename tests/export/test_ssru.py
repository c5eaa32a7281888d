"""Bundles of models with an SSRU in their decoder: graphs, states, precisions, and back again."""

import dataclasses
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from dragoman_export.bundle_files import write_unverified
from dragoman_export.errors import ExportError
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.graphs.precision import quantize_rows
from dragoman_export.hf.exporter import write_directory
from dragoman_export.lexicon import LexiconSettings
from dragoman_export.proofs.against_torch import RAGGED_ROWS, check_against_model
from dragoman_export.proofs.batch_invariance import RaggedBatch, compare_batches
from dragoman_export.read_back import checkpoint_of_bundle
from dragoman_export.source import origin_of
from dragoman_export.texts import LexiconText
from dragoman_server.bundle.graph_io import DECODER
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.bundle.reading import UncheckedBundle, read_bundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.errors import BundleError
from dragoman_server.runtime.arrays import Floats, Ints
from dragoman_server.runtime.checks.golden import replay
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import encode, greedy
from dragoman_server.runtime.results import StepResult
from dragoman_training.data.batch import pad_sources
from dragoman_training.data.tokenizer import BEGIN, END
from dragoman_training.train.checkpoint import Checkpoint
from dragoman_training.translate.search import default_limit, greedy_search
from support.bundles import (
    REFERENCES,
    SAMPLE,
    TEXTS,
    ignore,
    seeded_model,
    trained_bundle,
    trained_model,
)
from support.checkpoints import checkpoint_of
from support.command import dragoman
from support.models import VOCABULARY, random_sources, ssru_model, tiny_model

LIKE_MARIAN: dict[str, Any] = {
    "decoder": "ssru",
    "decoder_start": "zero",
    "positions": "marian",
    "output_bias": True,
}
ARCHITECTURES: list[dict[str, Any]] = [
    {"tied_embeddings": "all", "positions": "marian", "decoder_start": "zero"},
    {"norm": "pre", "activation": "gelu", "output_bias": True},
]
SOURCES = random_sources(20, seed=3)


def written(
    path: Path, precision: str, shortlist: Shortlist | None = None, **settings: Any
) -> UncheckedBundle:
    """Return the graphs of a seeded model, as they are written."""
    return write_unverified(
        ssru_model(seed=1, **settings), path, precision, calibration=SOURCES, shortlist=shortlist
    )


def states(graphs: Graphs) -> list[Floats]:
    return [graphs.cache(f"cell_state_{layer}") for layer in range(2)]


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_graphs_compute_what_pytorch_does(architecture: dict[str, Any], tmp_path: Path) -> None:
    model = ssru_model(seed=1, **architecture)
    bundle = write_unverified(model, tmp_path, "float32")
    graphs = Graphs(bundle, GraphSettings(rows=RAGGED_ROWS))
    assert check_against_model(graphs, model, ignore) < 1e-4
    limits = [default_limit(len(source), 40) for source in SOURCES[:RAGGED_ROWS]]
    expected = greedy_search(
        model, *pad_sources(SOURCES[: len(limits)], torch.device("cpu")), limits
    )
    for ours, theirs in zip(greedy(graphs, SOURCES[: len(limits)], limits), expected, strict=True):
        assert ours.ids == theirs.ids
        assert ours.log_prob == pytest.approx(theirs.log_prob, abs=1e-4)


@pytest.mark.parametrize("decoder", ["attention", "ssru"])
def test_a_graph_that_begins_with_zeros_does_as_pytorch(decoder: str, tmp_path: Path) -> None:
    """And whichever token it is told that it begins with."""
    model = tiny_model(seed=1, decoder=decoder, decoder_start="zero", max_length=12)
    graphs = Graphs(write_unverified(model, tmp_path, "float32"), GraphSettings(rows=RAGGED_ROWS))
    check_against_model(graphs, model, ignore)
    lengths = encode(graphs, [[5, 6, 7], [8]])
    found = [
        graphs.step(
            np.full(2, begin), np.zeros(2, np.int64), lengths, candidates=4
        ).top_log_probs.tobytes()
        for begin in (BEGIN, 17)
    ]
    assert found[0] == found[1]


def test_the_proof_notices_another_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ssru_model(seed=1)
    graphs = Graphs(write_unverified(model, tmp_path, "float32"), GraphSettings(rows=RAGGED_ROWS))
    kept = graphs.cache
    monkeypatch.setattr(graphs, "cache", lambda name: kept(name) + ("state" in name))
    with pytest.raises(Exception, match="cell_state_0 differs from PyTorch by 1"):
        check_against_model(graphs, model, ignore)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_sentence_gives_the_same_bits_in_any_company(
    precision: str, threads: int, tmp_path: Path
) -> None:
    """Also where the states of all rows together are no multiple of what a CPU adds at once."""
    bundle = written(tmp_path, precision, width=24, heads=3)
    graphs = Graphs(bundle, GraphSettings(rows=48, threads=threads))
    compared, different = compare_batches(graphs, SOURCES, batches=100)
    assert compared > 1000
    assert different == 0


@pytest.mark.parametrize("precision", ["float32", "int8", "float16"])
def test_a_row_holds_one_vector_a_layer_and_no_keys(precision: str, tmp_path: Path) -> None:
    bundle = written(tmp_path, precision)
    manifest = bundle.manifest
    item = 2 if precision == "float16" else 4
    assert manifest.cache_bytes_per_row == 2 * 16 * 4 + 2 * 2 * 40 * 16 * item
    with_attention = write_unverified(tiny_model(), tmp_path / "..", precision, calibration=SOURCES)
    assert manifest.cache_bytes_per_row < with_attention.manifest.cache_bytes_per_row
    graph = onnx.load(tmp_path / DECODER, load_external_data=False).graph
    names = {value.name: value for value in graph.input}
    assert not any(name.startswith("self_") for name in names)
    for layer in range(2):
        kind = names[f"cell_state_{layer}"].type.tensor_type
        assert kind.elem_type == onnx.TensorProto.FLOAT
        assert [d.dim_param or d.dim_value for d in kind.shape.dim] == ["n", 1, 16]
    assert all(state.dtype == np.float32 for state in states(Graphs(bundle, GraphSettings(rows=2))))


def test_a_move_copies_whole_states_and_touches_no_other_row(tmp_path: Path) -> None:
    graphs = Graphs(written(tmp_path, "float32"), GraphSettings(rows=6))
    batch = RaggedBatch(graphs, SOURCES[:6], [20] * 6)
    batch.fill(list(range(6)), list(range(6)))
    for _ in range(5):
        batch.step(6)
    before = states(graphs)
    assert all(np.abs(state).max(axis=(1, 2)).min() > 0 for state in before)
    graphs.move([4, 0], [1, 2], self_length=1, cross_length=int(batch.lengths.max()))
    for was, found in zip(before, states(graphs), strict=True):
        was[1], was[2] = was[4], was[0]
        assert np.array_equal(found, was)
    for array in (batch.who, batch.past, batch.lengths, batch.tokens):
        array[[1, 2]] = array[[4, 0]]
    bits = [result for _, _, result in batch.step(6)]
    assert bits[1] == bits[4]
    assert bits[2] == bits[0]


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_row_begins_anew_whatever_an_earlier_sentence_left(
    precision: str, tmp_path: Path
) -> None:
    graphs = Graphs(written(tmp_path, precision), GraphSettings(rows=2))
    limits = [20, 20]
    expected = greedy(graphs, SOURCES[:2], limits)
    for layer in range(2):
        graphs._caches[f"cell_state_{layer}"].numpy()[:] = np.nan
    assert greedy(graphs, SOURCES[:2], limits) == expected


def test_a_trial_among_listed_tokens_leaves_states_as_they_are(tmp_path: Path) -> None:
    always = np.array([END, *range(END + 1, VOCABULARY)], np.int32)
    shortlist = Shortlist(always, np.full((VOCABULARY, 1), -1, np.int32))
    graphs = Graphs(written(tmp_path, "int8", shortlist), GraphSettings(rows=3))
    assert graphs.shortlists is not None
    graphs.shortlists.fill([0, 1, 2], always.astype(np.int64))
    lengths = encode(graphs, SOURCES[:3])
    tokens = np.full(3, BEGIN)
    for past in range(4):
        inputs = (tokens, np.full(3, past), lengths)
        before = states(graphs)
        trial = graphs.step_shortlisted(*inputs, candidates=2, is_trial=True).top_log_probs.copy()
        assert all(map(np.array_equal, before, states(graphs)))
        real = graphs.step_shortlisted(*inputs, candidates=2)
        assert np.array_equal(trial, real.top_log_probs)
        assert not any(map(np.array_equal, before, states(graphs)))
        tokens = real.top_ids[:, 0].copy()


def test_every_precision_is_exported_and_replayed() -> None:
    for precision in ("float32", "int8", "float16"):
        bundle = trained_bundle(precision, **LIKE_MARIAN)
        assert bundle.manifest.decoder == "ssru"
        assert bundle.manifest.quality["bleu"] > 90
        checked = read_bundle(bundle.path)
        graphs = Graphs(checked, GraphSettings(rows=2))
        # float16 is held to what float32 decoded.
        assert replay(checked, graphs) <= (0.05 if precision == "float16" else 0.0)
    shown = dragoman("inspect", trained_bundle("int8", **LIKE_MARIAN).path)
    assert "SSRU, no self-attention" in shown.stdout


def test_a_shortlist_is_learnt_measured_and_replayed(tmp_path: Path) -> None:
    """Both graphs step the golden sentences, from one state."""
    lexicon = LexiconText(list(zip(TEXTS, REFERENCES, strict=True)), LexiconSettings())
    origin = origin_of(checkpoint_of(trained_model(**LIKE_MARIAN)))
    settings = ExportSettings(name="listed", precision="int8")
    export_bundle(origin, tmp_path / "bundle", settings, SAMPLE, ignore, lexicon)
    bundle = read_bundle(tmp_path / "bundle")
    assert bundle.shortlist is not None
    assert bundle.manifest.quality["bleu"] > 90
    graphs = Graphs(bundle, GraphSettings(rows=1))
    replay(bundle, graphs)
    step = graphs.step_shortlisted

    def step_twice(*inputs: Ints, candidates: int, is_trial: bool) -> StepResult:
        return step(*inputs, candidates=candidates)

    graphs.step_shortlisted = step_twice  # type: ignore[method-assign,assignment]
    with pytest.raises(BundleError, match="has other scores with its shortlist"):
        replay(bundle, graphs)


def with_recipe(settings: dict[str, Any]) -> Checkpoint:
    checkpoint = checkpoint_of(seeded_model(**settings))
    recipe = {"model": asdict(seeded_model(**settings).settings), "data": {}}
    return replace(checkpoint, config={**checkpoint.config, "recipe": recipe})


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_weights_come_back_from_a_bundle(precision: str, tmp_path: Path) -> None:
    checkpoint = with_recipe(LIKE_MARIAN)
    settings = ExportSettings(name="x", precision=precision)
    export_bundle(origin_of(checkpoint), tmp_path / "bundle", settings, SAMPLE, ignore)
    found = checkpoint_of_bundle(tmp_path / "bundle")
    assert found.build_model().settings == checkpoint.build_model().settings
    assert found.weights.keys() == checkpoint.weights.keys()
    for name, tensor in checkpoint.weights.items():
        if precision == "int8" and tensor.ndim == 2:
            _, steps = quantize_rows(tensor.numpy())
            error = np.abs(found.weights[name].numpy() - tensor.numpy())
            assert (error <= 0.501 * steps[:, None]).all(), name
        else:
            assert torch.equal(found.weights[name], tensor), name


def test_no_class_of_transformers_has_such_a_decoder(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="decoder is 'ssru', and no class of transformers has"):
        write_directory(with_recipe(LIKE_MARIAN), tmp_path / "there")
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_names_the_decoder_only_where_it_is_another() -> None:
    manifest = trained_bundle("int8").manifest
    assert "decoder" not in json.loads(manifest.to_json())
    told = dataclasses.replace(manifest, decoder="ssru")
    assert Manifest.from_json(told.to_json()) == told
    assert json.loads(told.to_json())["decoder"] == "ssru"
    with pytest.raises(ValueError, match="decoder 'gru' is not known"):
        dataclasses.replace(manifest, decoder="gru")


def test_graphs_that_are_not_as_the_manifest_says_are_refused(tmp_path: Path) -> None:
    bundle = written(tmp_path, "float32")
    plain = replace(bundle, manifest=replace(bundle.manifest, decoder="attention"))
    with pytest.raises(BundleError, match="self_key_0 is None, but the manifest says"):
        Graphs(plain, GraphSettings(rows=1))
    wider = replace(bundle.manifest.dimensions, width=32, heads=4)
    with pytest.raises(BundleError, match=r"cross_key_0 is .*, but the manifest says"):
        Graphs(
            replace(bundle, manifest=replace(bundle.manifest, dimensions=wider)), GraphSettings()
        )
