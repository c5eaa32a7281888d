"""Proof that a sentence's result does not depend on what else is in the batch, bit by bit."""

import random
from collections.abc import Sequence

import numpy as np

from dragoman_export.errors import VerificationError
from dragoman_server.runtime.arrays import Ints
from dragoman_server.runtime.graphs import Graphs
from dragoman_server.runtime.results import StepResult

Bits = tuple[bytes, ...]


class RaggedBatch:
    """Sentences decoded side by side, each row at its own place."""

    def __init__(self, graphs: Graphs, sources: Sequence[Sequence[int]], steps: list[int]) -> None:
        self.graphs, self.sources, self.steps = graphs, sources, steps
        rows = graphs.settings.rows
        self.who = np.full(rows, -1)
        """Sentence that each row decodes; -1 for none."""
        self.past, self.lengths = np.zeros(rows, np.int64), np.ones(rows, np.int64)
        self.tokens = np.zeros(rows, np.int64)

    def fill(self, rows: list[int], sentences: list[int]) -> None:
        """Begin sentences in rows."""
        special = self.graphs.manifest.special_ids
        lines = [[*self.sources[s], special.end] for s in sentences]
        ids = np.zeros((len(lines), max(map(len, lines))), np.int64)
        for row, line in zip(ids, lines, strict=True):
            row[: len(line)] = line
        lengths = np.array([len(line) for line in lines])
        self.graphs.encode(ids, lengths, np.arange(len(lines)), np.array(rows))
        self.who[rows], self.past[rows], self.lengths[rows] = sentences, 0, lengths
        self.tokens[rows] = special.begin

    def step(self, n: int) -> list[tuple[int, int, Bits]]:
        """Step the first n rows. Returns the sentence, position and result of each, in bits."""
        result = self.graphs.step(self.tokens[:n], self.past[:n], self.lengths[:n], candidates=4)
        seen = [
            (int(self.who[row]), int(self.past[row]), bits_of(result, row, self.lengths))
            for row in range(n)
        ]
        self.tokens[:n] = result.top_ids[:, 0]
        self.past[:n] += 1
        return seen

    def ended(self, n: int) -> list[int]:
        """Return which of the first n rows need another sentence."""
        return [r for r in range(n) if self.who[r] < 0 or self.past[r] >= self.steps[self.who[r]]]


def bits_of(result: StepResult, row: int, source_lengths: Ints) -> Bits:
    """Return all that a step gives for a row, to the last bit."""
    return (
        result.top_ids[row].tobytes(),
        result.top_log_probs[row].tobytes(),
        result.row_sums[row].tobytes(),
        result.alignment[row, : source_lengths[row]].tobytes(),
    )


def compare_batches(
    graphs: Graphs, sources: Sequence[Sequence[int]], batches: int, seed: int = 1
) -> tuple[int, int]:
    """Decode each sentence alone, then among others in random batches of ragged rows.

    Returns how many steps of a sentence were compared, and in how many any bit differed.
    """
    rng = random.Random(seed)  # noqa: S311
    longest = min(60, graphs.manifest.max_target_tokens)
    batch = RaggedBatch(graphs, sources, [rng.randint(1, longest) for _ in sources])
    alone: dict[tuple[int, int], Bits] = {}
    for sentence, steps in enumerate(batch.steps):
        batch.fill([0], [sentence])
        for _ in range(steps):
            alone.update({(who, at): bits for who, at, bits in batch.step(1)})
    batch.who[:] = -1
    compared = different = 0
    for _ in range(batches):
        n = rng.randint(2, graphs.settings.rows)
        if ended := batch.ended(n):
            batch.fill(ended, [rng.randrange(len(sources)) for _ in ended])
        for who, at, bits in batch.step(n):
            compared += 1
            different += bits != alone[who, at]
    return compared, different


def check_batch_invariance(graphs: Graphs, sources: Sequence[Sequence[int]], batches: int) -> None:
    """Raise ``VerificationError`` if any result of a sentence depends on the batch."""
    compared, different = compare_batches(graphs, sources, batches)
    if different:
        raise VerificationError(
            f"{different} of {compared} results of a sentence change with what else is in the batch"
        )
