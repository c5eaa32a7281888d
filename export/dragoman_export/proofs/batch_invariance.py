"""Proof that a sentence's result does not depend on what else is in the batch, bit by bit."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dragoman_export.errors import VerificationError
from dragoman_export.proofs.node_values import MIN_LENGTH, Batch, can_take_made_up
from dragoman_export.proofs.ops import dependent_nodes
from dragoman_server.bundle.graph_io import DECODER, ENCODER
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.runtime.arrays import Ints
from dragoman_server.runtime.checks.company import RowBits, row_bits
from dragoman_server.runtime.graphs import Graphs
from dragoman_server.runtime.results import StepResult

_MAX_STEPS = 60
"""Most tokens that a sentence is decoded to."""


@dataclass(frozen=True)
class Comparison:
    """How often a sentence was compared with itself in company."""

    compared: int
    """Steps of a sentence that were compared."""
    different: int
    """Steps in which the best tokens or their scores had other bits."""
    other_alignments: int
    """Steps in which only the alignment had other bits."""


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
        manifest = self.graphs.manifest
        lines = [[*self.sources[s], *manifest.source_end] for s in sentences]
        ids = np.zeros((len(lines), max(map(len, lines))), np.int64)
        for row, line in zip(ids, lines, strict=True):
            row[: len(line)] = line
        lengths = np.array([len(line) for line in lines])
        self.graphs.encode(ids, lengths, np.arange(len(lines)), np.array(rows))
        self.who[rows], self.past[rows], self.lengths[rows] = sentences, 0, lengths
        self.tokens[rows] = manifest.special_ids.begin

    def step(self, n: int) -> list[tuple[int, int, RowBits]]:
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


def bits_of(result: StepResult, row: int, source_lengths: Ints) -> RowBits:
    """Return all that a step gives for a row, to the last bit."""
    return row_bits(result, row, int(source_lengths[row]))


def compare_batches(
    graphs: Graphs, sources: Sequence[Sequence[int]], batches: int, seed: int = 1
) -> tuple[int, int]:
    """Decode each sentence alone, then among others in random batches of ragged rows.

    Returns how many steps of a sentence were compared, and in how many any bit differed.
    """
    found = compare(graphs, sources, batches, seed)
    return found.compared, found.different + found.other_alignments


def compare(
    graphs: Graphs, sources: Sequence[Sequence[int]], batches: int, seed: int = 1
) -> Comparison:
    """Do the same as ``compare_batches``, and tell alignments from the rest."""
    rng = random.Random(seed)  # noqa: S311
    longest = min(_MAX_STEPS, graphs.manifest.max_target_tokens)
    batch = RaggedBatch(graphs, sources, [rng.randint(1, longest) for _ in sources])
    alone: dict[tuple[int, int], RowBits] = {}
    for sentence, steps in enumerate(batch.steps):
        batch.fill([0], [sentence])
        for _ in range(steps):
            alone.update({(who, at): bits for who, at, bits in batch.step(1)})
    batch.who[:] = -1
    compared = different = alignments = 0
    for _ in range(batches):
        n = rng.randint(2, graphs.settings.rows)
        if ended := batch.ended(n):
            batch.fill(ended, [rng.randrange(len(sources)) for _ in ended])
        for who, at, bits in batch.step(n):
            own = alone[who, at]
            compared += 1
            different += bits.rating != own.rating
            alignments += bits.rating == own.rating and bits.alignment != own.alignment
    return Comparison(compared, different, alignments)


def check_batch_invariance(
    graphs: Graphs, sources: Sequence[Sequence[int]], batches: int, directory: Path | None = None
) -> Comparison:
    """Raise ``VerificationError`` if the tokens or scores of a sentence depend on the batch.

    The error names the ops that do it, if it is told the directory of the graphs.
    """
    found = compare(graphs, sources, batches)
    if found.different:
        named = _named_ops(graphs.manifest, directory) if directory else ""
        raise VerificationError(
            f"{found.different} of {found.compared} results of a sentence change with what else "
            f"is in the batch{named}"
        )
    return found


def _named_ops(manifest: Manifest, directory: Path) -> str:
    """Return which ops of a bundle's graphs depend on the batch, for an error."""
    if not can_take_made_up(manifest):
        return ""
    batch = Batch.of(9, MIN_LENGTH, 37)
    found = [
        str(each)
        for name in (ENCODER, DECODER)
        for each in dependent_nodes(directory / name, batch)
    ]
    return f": {'; '.join(found)}" if found else ""
