"""The graphs of a bundle against PyTorch, and what must hold of them in any company."""

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from dragoman_export.bundle_files import write_unverified
from dragoman_export.errors import VerificationError
from dragoman_export.proofs.batch_invariance import (
    RaggedBatch,
    bits_of,
    check_batch_invariance,
    compare_batches,
)
from dragoman_server.bundle.graph_io import GRAPHS
from dragoman_server.errors import BundleError
from dragoman_server.runtime.adjustments import Adjustments
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import Decoded, beam, encode, greedy
from dragoman_training.data.batch import pad_sources
from dragoman_training.models.attention import record_attention
from dragoman_training.models.transformer import Transformer
from dragoman_training.translate.search import Hypothesis, beam_search, default_limit
from support.bundles import VOCABULARY, export, seeded_model, trained_bundle, trained_model
from support.models import random_sources, tiny_model

CPU = torch.device("cpu")
ARCHITECTURES: list[dict[str, Any]] = [
    {"norm": "post", "activation": "relu", "tied_embeddings": "all"},
    {"norm": "pre", "activation": "swish", "tied_embeddings": "target"},
    {"norm": "pre", "activation": "gelu", "positions": "learned", "output_bias": True},
]


def assert_same(found: Decoded, expected: Hypothesis) -> None:
    assert found.ids == expected.ids
    assert found.log_prob == pytest.approx(expected.log_prob, abs=1e-4)
    assert found.score == pytest.approx(expected.score, abs=1e-4)


def search_both(
    model: Transformer, graphs: Graphs, sources: list[list[int]], size: int
) -> list[tuple[list[Decoded], list[Hypothesis]]]:
    limits = [default_limit(len(s), model.settings.max_length) for s in sources]
    expected = beam_search(model, *pad_sources(sources, CPU), limits, size, n_best=min(size, 2))
    if size == 1:
        found = [[d] for d in greedy(graphs, sources, limits)]
    else:
        found = [beam(graphs, s, n, size, n_best=2) for s, n in zip(sources, limits, strict=True)]
    return list(zip(found, expected, strict=True))


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_search_over_the_graphs_equals_pytorch(
    architecture: dict[str, Any], tmp_path: Path
) -> None:
    """Greedy and beam 4 on random input; several hundred in all."""
    model = seeded_model(seed=4, **architecture)
    graphs = Graphs(export(model, tmp_path / "b", "float32"), GraphSettings(rows=32))
    sources = random_sources(170, seed=11)
    for at in range(0, len(sources), 32):
        for found, expected in search_both(model, graphs, sources[at : at + 32], 1):
            assert_same(found[0], expected[0])
    for found, expected in search_both(model, graphs, sources, 4):
        assert len(found) == len(expected) == 2
        for ours, theirs in zip(found, expected, strict=True):
            assert_same(ours, theirs)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_sentence_gives_the_same_bits_in_any_company(precision: str, threads: int) -> None:
    """Alone, then in random batches of up to 64 rows that are all at different places."""
    graphs = Graphs(trained_bundle(precision), GraphSettings(rows=64, threads=threads))
    sources = random_sources(40, seed=21, longest=30)
    compared, different = compare_batches(graphs, sources, batches=250)
    assert compared > 5000
    assert different == 0


def test_a_result_that_depends_on_its_company_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = Graphs(trained_bundle("float32"), GraphSettings(rows=8))
    step = graphs.step

    def mixing(*arguments: Any, **options: Any) -> Any:
        result = step(*arguments, **options)
        if len(result.top_log_probs) > 4:
            result.top_log_probs[0] = np.nextafter(result.top_log_probs[0], np.float32(-99))
        return result

    monkeypatch.setattr(graphs, "step", mixing)
    with pytest.raises(VerificationError, match="change with what else is in the batch"):
        check_batch_invariance(graphs, random_sources(5, seed=1), batches=20)


def test_moved_rows_go_on_as_if_they_had_stayed() -> None:
    graphs = Graphs(trained_bundle("float32"), GraphSettings(rows=8))
    sources, steps = random_sources(4, seed=3), [20] * 4
    stayed, moved = RaggedBatch(graphs, sources, steps), RaggedBatch(graphs, sources, steps)
    stayed.fill([0, 1, 2, 3], [0, 1, 2, 3])
    expected = [stayed.step(4) for _ in range(8)]
    moved.fill([0, 1, 2, 3], [0, 1, 2, 3])
    for at in range(4):
        assert moved.step(4) == expected[at]
    graphs.move([3, 2], [0, 5], self_length=4, cross_length=int(moved.lengths.max()))
    for array in (moved.who, moved.past, moved.lengths, moved.tokens):
        array[0] = array[3]
    assert moved.step(1)[0] == expected[4][3]


def test_a_move_touches_no_other_row_and_no_more_than_it_should() -> None:
    graphs = Graphs(trained_bundle("float32"), GraphSettings(rows=6))
    batch = RaggedBatch(graphs, random_sources(6, seed=8, longest=20), [20] * 6)
    batch.fill(list(range(6)), list(range(6)))
    for _ in range(9):
        batch.step(6)
    names = ["self_key_1", "cross_value_0"]
    before = [graphs.cache(name) for name in names]
    graphs.move([4, 0], [1, 2], self_length=5, cross_length=3)
    for name, was, length in zip(names, before, (5, 3), strict=True):
        was[1, :, :length], was[2, :, :length] = was[4, :, :length], was[0, :, :length]
        assert np.array_equal(graphs.cache(name), was)


def test_adjusted_logits_follow_their_definition() -> None:
    graphs = Graphs(trained_bundle("float32"), GraphSettings(rows=4))
    lengths = encode(graphs, random_sources(3, seed=9))
    tokens, past = np.full(3, 2, np.int64), np.zeros(3, np.int64)
    graphs.step(tokens, past, lengths, candidates=1)
    model = trained_model()
    ids, source_lengths = pad_sources(random_sources(3, seed=9), CPU)
    with torch.no_grad():
        logits = model(ids, source_lengths, torch.full((3, 1), 2))[:, 0]
    places = [(0, 7), (0, 9), (2, 11), (1, 5)]
    factors, offsets = [1.3, 2.0, 1.3, 1.0], [0.0, 0.0, 0.5, -np.inf]
    result = graphs.step(
        tokens,
        past,
        lengths,
        candidates=VOCABULARY,
        given_ids=np.array([7, 5, 11]),
        adjustments=Adjustments(
            np.array([row * VOCABULARY + token for row, token in places]),
            np.array(factors, np.float32),
            np.array(offsets, np.float32),
        ),
    )
    for (row, token), factor, offset in zip(places, factors, offsets, strict=True):
        value = logits[row, token]
        logits[row, token] = (value / factor if value > 0 else value * factor) + offset
    expected = logits.log_softmax(-1)
    torch.testing.assert_close(torch.tensor(graphs.log_probs(3)), expected, atol=1e-4, rtol=0)
    assert result.given_log_probs[1] == -np.inf
    assert result.given_log_probs[0] == pytest.approx(expected[0, 7].item(), abs=1e-4)
    assert np.array_equal(result.top_ids[:, 0], expected.argmax(-1).numpy())


def test_alignment_is_the_last_layers_attention() -> None:
    model, graphs = trained_model(), Graphs(trained_bundle("float32"), GraphSettings(rows=4))
    sources = random_sources(3, seed=13)
    lengths = encode(graphs, sources)
    result = graphs.step(np.full(3, 2), np.zeros(3, np.int64), lengths, candidates=1)
    ids, source_lengths = pad_sources(sources, CPU)
    with torch.no_grad(), record_attention(model) as recorded:
        model(ids, source_lengths, torch.full((3, 1), 2))
    (weights,) = recorded[f"decoder.{model.settings.decoder_layers - 1}.cross_attention"]
    expected = weights.mean(1)[:, 0].numpy()
    for row, length in enumerate(lengths):
        np.testing.assert_allclose(
            result.alignment[row, :length], expected[row, :length], atol=1e-5
        )


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(BundleError, match="this onnxruntime has no CUDAExecutionProvider"):
        Graphs(trained_bundle("float16"), GraphSettings(rows=1, device="cuda"))
    with pytest.raises(BundleError, match="precision int8, but device cuda needs float16"):
        Graphs(trained_bundle("int8"), GraphSettings(rows=1, device="cuda"))


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # rounding it for int8
@pytest.mark.parametrize("precision", ["float32", "int8", "float16"])
def test_a_poisoned_source_is_seen_and_hurts_no_other(precision: str, tmp_path: Path) -> None:
    """int8 products hide what is not a number; the encoder's sums still show it."""
    model = copy.deepcopy(trained_model())
    with torch.no_grad():
        model.source_embedding.table.weight[9] = torch.nan
    bundle = write_unverified(model, tmp_path, precision, calibration=random_sources(4, seed=1))
    graphs = Graphs(bundle, GraphSettings(rows=3))
    ids = np.array([[8, 7, 3, 0], [8, 9, 7, 3], [5, 5, 5, 3]])
    sums = graphs.encode(ids, np.array([3, 4, 4]), np.arange(3), np.arange(3)).sentence_sums
    assert np.isfinite(sums).tolist() == [True, False, True]


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_poisoned_row_is_seen_and_hurts_no_other(precision: str) -> None:
    graphs = Graphs(trained_bundle(precision), GraphSettings(rows=4))
    lengths = encode(graphs, random_sources(3, seed=2))
    clean = graphs.step(np.full(3, 2), np.zeros(3, np.int64), lengths, candidates=2)
    assert np.isfinite(clean.row_sums).all()
    before = [bits_of(clean, row, lengths) for row in range(3)]
    graphs._caches["cross_value_0"].numpy()[1, 0, 0, 0] = np.nan
    result = graphs.step(np.full(3, 2), np.zeros(3, np.int64), lengths, candidates=2)
    assert not np.isfinite(result.row_sums[1])
    for row in (0, 2):
        assert bits_of(result, row, lengths) == before[row]


def test_graphs_have_no_control_flow() -> None:
    for precision in ("float32", "int8", "float16"):
        for name in GRAPHS:
            model = onnx.load(trained_bundle(precision).path / name)
            onnx.checker.check_model(model, full_check=False)
            ops = {node.op_type for node in model.graph.node}
            assert ops.isdisjoint({"If", "Loop", "Scan"})


def test_rows_and_ids_out_of_range_are_refused() -> None:
    graphs = Graphs(trained_bundle("float32"), GraphSettings(rows=2))
    lengths = encode(graphs, [[5, 6], [7]])
    one, two = np.array([2]), np.array([2, 2])
    zero = np.zeros(2, np.int64)
    for call in (
        lambda: graphs.encode(np.array([[5, 3]]), np.array([3]), np.array([0]), np.array([0])),
        lambda: graphs.encode(np.array([[5, 3]]), np.array([2]), np.array([-1]), np.array([0])),
        lambda: graphs.encode(np.array([[5, 3]]), np.array([2]), np.array([0]), np.array([2])),
        lambda: graphs.step(two, zero, lengths, candidates=1, given_ids=one),
        lambda: graphs.step(two - 3, zero, lengths, candidates=1),
        lambda: graphs.step(two, zero + 40, lengths, candidates=1),
        lambda: graphs.step(two[:0], zero[:0], lengths[:0], candidates=1),
        lambda: graphs.move([0], [0], 1, 1),
        lambda: graphs.move([0], [2], 1, 1),
        lambda: graphs.move([0, 0], [1, 1], 1, 1),
    ):
        with pytest.raises(ValueError, match=r"must be|not|but there|also a source"):
            call()


MEASURE = """
import sys
from pathlib import Path
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.runtime.graphs import Graphs, GraphSettings

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmRSS")).split()[1])

path = Path(sys.argv[1])
manifest = Manifest.from_json((path / "manifest.json").read_text())
before = resident()
graphs = Graphs(UncheckedBundle(path, manifest), GraphSettings(rows=1))
print(resident() - before - manifest.cache_bytes_per_row)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_memory_is_that_of_the_weights(precision: str, tmp_path: Path) -> None:
    """Weights are held once, whichever graphs share them; measured where they are what counts."""
    sizes: dict[str, Any] = {
        "width": 512,
        "heads": 8,
        "feed_forward": 2048,
        "tied_embeddings": "all",
    }
    model = tiny_model(vocabulary=32_000, **sizes, encoder_layers=6, decoder_layers=3)
    bundle = write_unverified(model, tmp_path, precision, calibration=[[7, 8, 9]])
    (tmp_path / "manifest.json").write_text(bundle.manifest.to_json())
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, tmp_path], capture_output=True, text=True, check=True
    )
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert int(run.stdout) <= 1.3 * size
