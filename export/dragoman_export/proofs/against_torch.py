"""Proof that a bundle's graphs compute what the checkpoint's model does.

Shapes: B sentences, S source positions, T steps, N all target tokens, D width, V vocabulary.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from dragoman_export.errors import VerificationError
from dragoman_export.progress import Watch
from dragoman_server.bundle.graph_io import cell_states, cross_caches
from dragoman_server.runtime.graphs import Graphs
from dragoman_training.data.batch import pad_sources
from dragoman_training.data.tokenizer import BEGIN
from dragoman_training.models.attention import record_attention
from dragoman_training.models.layout import Layout
from dragoman_training.models.transformer import Transformer

TOLERANCE = 1e-4
"""Largest difference that a number may have, relative to the largest of its array if above 1."""
RAGGED_ROWS = 16
"""Rows of the batches whose sentences have different lengths."""
_STEPS = 6
"""Steps that are all compared, of each batch that decodes a little."""
_LONG_ROWS = 4
"""Rows that are decoded up to the limit."""

Ids = npt.NDArray[np.int64]


def check_against_model(graphs: Graphs, model: Transformer, watch: Watch) -> float:
    """Compare steps with PyTorch, for sentences alone and in ragged batches of all lengths.

    The first steps are all compared, and further ones up to the limit by sample: a step differs
    from the one before by its position and the length of its past. Returns the largest difference
    of a log-probability, and raises ``VerificationError`` for one that is too large. The graphs
    must have ``RAGGED_ROWS`` rows.
    """
    model.eval()
    limit = model.settings.max_length
    rng = np.random.default_rng(1)
    alone = [[n] for n in sorted({1, 2, 7, limit // 2, limit}) if 1 <= n <= limit]
    ragged = [int(n) for n in rng.integers(1, limit + 1, RAGGED_ROWS - 2)] + [1, limit]
    stage, done = "comparing with PyTorch", 0
    total = len(alone) + 2 + limit
    watch(stage, 0, total)
    worst = 0.0
    for batch in (*alone, ragged):
        sources = _sources(rng, model, batch)
        targets = _targets(rng, model, len(batch), min(limit, _STEPS))
        worst = max(worst, _check_batch(graphs, model, sources, targets))
        done += 1
        watch(stage, done, total)
    worst = max(worst, _check_staggered(graphs, model, rng))
    done += 1
    for compared in _check_long(graphs, model, rng):
        worst = max(worst, compared)
        done += 1
        watch(stage, done, total)
    return worst


def _sources(
    rng: np.random.Generator, model: Transformer, lengths: Sequence[int]
) -> list[list[int]]:
    """Return made-up sources of these lengths, of which the end token takes one place."""
    return [rng.integers(4, model.source_vocabulary, n - 1).tolist() for n in lengths]


def _targets(rng: np.random.Generator, model: Transformer, count: int, steps: int) -> Ids:
    return rng.integers(4, model.target_vocabulary, (count, steps))


@torch.inference_mode()
def _check_long(graphs: Graphs, model: Transformer, rng: np.random.Generator) -> Iterator[float]:
    """Compare some steps of rows that are decoded up to the limit; yields for each step.

    PyTorch decodes the whole targets at once, and rates tokens only where they are compared.
    """
    limit, count = model.settings.max_length, _LONG_ROWS
    sources = _sources(rng, model, [limit, 1, *rng.integers(1, limit + 1, count - 2).tolist()])
    targets = _targets(rng, model, count, limit)
    inputs = np.concatenate((np.full((count, 1), BEGIN), targets[:, :-1]), axis=1)
    ids_BS, lengths_B = pad_sources(sources, torch.device("cpu"))
    layout = Layout.of(torch.full((count,), limit), limit)
    vectors_ND = model.decode(
        layout.pack(torch.from_numpy(inputs)), layout, model.encode(ids_BS, lengths_B)
    )
    vectors_BTD = layout.unpack(vectors_ND)
    lengths = lengths_B.numpy()
    graphs.encode(ids_BS.numpy(), lengths, np.arange(count), np.arange(count))
    compared = _sampled(limit)
    for step in range(limit):
        graphs.step(inputs[:, step], np.full(count, step), lengths, candidates=1)
        if step not in compared:
            yield 0.0
            continue
        expected = model.projection(vectors_BTD[:, step]).log_softmax(-1)
        at = f"at step {step + 1} of {count} rows"
        yield _compare(f"decoder.onnx: log_probs {at}", graphs.log_probs(count), expected)


def _sampled(limit: int) -> set[int]:
    """Return the steps to compare: those around every power of two, and the last."""
    powers = [2**n for n in range(limit.bit_length())]
    near = {power + shift for power in powers for shift in (-2, -1, 0)}
    return {step for step in (*near, limit // 3, limit - 1) if 0 <= step < limit}


@torch.inference_mode()
def _check_staggered(graphs: Graphs, model: Transformer, rng: np.random.Generator) -> float:
    """Compare rows that begin one after the other, one of which is copied half-way."""
    limit = model.settings.max_length
    count, steps = RAGGED_ROWS - 1, min(_STEPS, limit)
    sources = [
        rng.integers(4, model.source_vocabulary, rng.integers(0, min(9, limit))).tolist()
        for _ in range(count)
    ]
    targets = rng.integers(4, model.target_vocabulary, (count, steps))
    inputs = np.concatenate((np.full((count, 1), BEGIN), targets[:, :-1]), axis=1)
    ids_BS, lengths_B = pad_sources(sources, torch.device("cpu"))
    with record_attention(model) as recorded:
        expected_BTV = model(ids_BS, lengths_B, torch.from_numpy(inputs)).log_softmax(-1)
    (looked_BHTS,) = recorded[f"decoder.{graphs.manifest.alignment_layer}.cross_attention"]
    who = np.arange(count)
    graphs.encode(ids_BS.numpy(), lengths_B.numpy(), who, who)
    starts = who // 3
    worst = 0.0
    for tick in range(int(starts[-1]) + steps):
        if tick == steps // 2:
            # The first row has a twin from here on, in the row that nobody used.
            longest = int(lengths_B.max())
            graphs.move([0], [count], self_length=tick, cross_length=longest)
        rows = [row for row in range(count) if starts[row] <= tick < starts[row] + steps]
        last = max(rows) + 1
        row_ids = [*range(last)]
        if steps // 2 <= tick < steps:
            row_ids = [*range(count), 0]
        n = len(row_ids)
        sentence = np.array(row_ids)
        past = np.clip(tick - starts[sentence], 0, steps - 1)
        result = graphs.step(
            inputs[sentence, past], past, lengths_B.numpy()[sentence], candidates=1
        )
        log_probs = graphs.log_probs(n)
        for row in {*rows, *([count] if n > count else [])}:
            s, t = int(sentence[row]), int(past[row])
            at = f"of row {row} at its token {t + 1}"
            worst = max(
                worst, _compare(f"decoder.onnx: log_probs {at}", log_probs[row], expected_BTV[s, t])
            )
            length = int(lengths_B[s])
            looked = looked_BHTS[s, :, t, :length].mean(0)
            _compare(f"decoder.onnx: alignment {at}", result.alignment[row, :length], looked)
    return worst


@torch.inference_mode()
def _check_batch(
    graphs: Graphs,
    model: Transformer,
    sources: list[list[int]],
    targets_BT: Ids,
) -> float:
    """Compare a batch whose rows begin together; the targets are given, and not what is best."""
    ids_BS, lengths_B = pad_sources(sources, torch.device("cpu"))
    count = len(sources)
    graphs.encode(ids_BS.numpy(), lengths_B.numpy(), np.arange(count), np.arange(count))
    state = model.start(model.encode(ids_BS, lengths_B))
    lengths = lengths_B.numpy()
    caches = cross_caches(model.settings.decoder_layers)
    expected = [part for layer in state.layers for part in layer.source]
    for name, tensor in zip(caches, expected, strict=True):
        cache = graphs.cache(name)
        for row, length in enumerate(lengths):
            _compare(f"encoder.onnx: {name}", cache[row, :, :length], tensor[row, :, :length])
    worst = 0.0
    tokens = np.full(count, BEGIN, np.int64)
    for step in range(targets_BT.shape[1]):
        log_probs_BV, state = model.step(torch.from_numpy(tokens), state)
        result = graphs.step(
            tokens, np.full(count, step), lengths, candidates=3, given_ids=targets_BT[:, step]
        )
        given_B1 = torch.from_numpy(targets_BT[:, step : step + 1])
        at = f"at step {step + 1} of {count} rows"
        for name, ours, theirs in (
            ("log_probs", graphs.log_probs(count), log_probs_BV),
            ("top_log_probs", result.top_log_probs, log_probs_BV.topk(3).values),
            ("given_log_probs", result.given_log_probs, log_probs_BV.gather(1, given_B1)[:, 0]),
        ):
            worst = max(worst, _compare(f"decoder.onnx: {name} {at}", ours, theirs))
        tokens = targets_BT[:, step]
    for name, layer in zip(cell_states(len(state.layers)), state.layers, strict=True):
        if isinstance(layer.own, torch.Tensor):
            _compare(f"decoder.onnx: {name}", graphs.cache(name)[:count, 0], layer.own)
    return worst


def _compare(what: str, ours: npt.NDArray[np.floating], theirs: torch.Tensor) -> float:
    """Return the largest difference. Raise ``VerificationError`` if it is too large."""
    expected = theirs.numpy()
    banned = np.isneginf(expected)  # tokens that the model never says
    if not np.array_equal(banned, np.isneginf(ours)):
        raise VerificationError(f"{what} differs from PyTorch in which tokens are banned")
    ours, expected = ours[~banned], expected[~banned]
    difference = float(np.abs(ours - expected).max(initial=0.0))
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    if not difference <= TOLERANCE * scale:  # also where it is not a number
        raise VerificationError(f"{what} differs from PyTorch by {difference:.3g}")
    return difference
