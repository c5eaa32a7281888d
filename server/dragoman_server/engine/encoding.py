"""Reading sentences into the caches: which share a call of the encoder, and the call itself."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dragoman_server.engine.rows import Running
from dragoman_server.runtime.graphs import Graphs

_PADDING_PER_CALL = 16
"""Positions of padding that are worth a call of the encoder less."""


@dataclass(frozen=True)
class Encoded:
    """What one call of the encoder came to."""

    seconds: float
    """Seconds in the graph."""
    source_tokens: int
    """Source tokens of the sentences, end tokens included."""
    padding: int
    """Source positions that were computed for nothing."""
    poisoned: list[Running]
    """Sentences for which the encoder computed something that is not a number."""


def batches(placed: list[Running]) -> Iterator[list[Running]]:
    """Yield sentences, shortest first, in batches of like length: as few as padding is worth."""
    batch: list[Running] = []
    for running in sorted(placed, key=lambda running: running.job.source_length):
        length = running.job.source_length
        padding = sum(length - other.job.source_length for other in batch)
        if batch and padding > _PADDING_PER_CALL:
            yield batch
            batch = []
        batch.append(running)
    if batch:
        yield batch


def encode(graphs: Graphs, batch: list[Running]) -> Encoded:
    """Read a batch of sentences into the cross caches of all their rows."""
    manifest = graphs.manifest
    sources = [(*running.job.sentence.source, *manifest.source_end) for running in batch]
    lengths = np.array([len(source) for source in sources])
    ids = np.full((len(batch), int(lengths.max())), manifest.special_ids.pad, np.int64)
    for line, source in zip(ids, sources, strict=True):
        line[: len(source)] = source
    sentences = np.repeat(np.arange(len(batch)), [len(running.rows) for running in batch])
    rows = np.array([row for running in batch for row in running.rows])
    result = graphs.encode(ids, lengths, sentences, rows)
    sums = result.sentence_sums.tolist()
    source_tokens = int(lengths.sum())
    return Encoded(
        seconds=result.seconds,
        source_tokens=source_tokens,
        padding=ids.size - source_tokens,
        poisoned=[r for r, total in zip(batch, sums, strict=True) if not math.isfinite(total)],
    )
