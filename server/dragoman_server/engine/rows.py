"""The state of decoding: one line of each array per row.

Active rows are always the first ``count``, because the graphs pair row i of the query with row i of
the caches. A row that ends leaves a hole, which a new sentence fills, or else the last row.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dragoman_server.engine.core import Hypothesis, Options, Sentence, Ticket, Timing
from dragoman_server.runtime.arrays import Ints


@dataclass(frozen=True, eq=False)
class Job:
    """A sentence to decode, with everything decided that depends on the model."""

    ticket: Ticket
    sentence: Sentence
    options: Options
    forced: tuple[int, ...]
    """Tokens that are given: what decoding begins with, and a prefix; or a whole translation and
    the end token, to score it."""
    limit: int
    """Most tokens of the translation, the end token included."""
    seed: int
    stream: bool
    timing: Timing = field(default_factory=Timing)


@dataclass(eq=False)
class Running:
    """A sentence that holds rows."""

    job: Job
    rows: list[int]
    """One for each hypothesis of its beam, best first."""
    finished: list[Hypothesis] = field(default_factory=list)
    """Best first, no more than are wanted."""
    steps_before: int = 0
    """Steps that its lane had taken when it came."""
    tokens: Ints | None = None
    """That it chooses among, where it has a shortlist."""

    @property
    def is_plain(self) -> bool:
        """It takes the best token, one after the other, and nothing else has to be known."""
        options = self.job.options
        return not (options.beam > 1 or options.sampling or options.alignment or self.job.forced)


class Rows:
    """All arrays are allocated and touched once."""

    def __init__(self, rows: int, max_target: int, max_source: int) -> None:
        self.count = 0
        """The first rows, up to the last that has an owner; holes among them have none."""
        self.owner: list[Running | None] = [None] * rows
        self.token = np.zeros(rows, np.int64)
        """The newest token, which the next step reads."""
        self.past = np.zeros(rows, np.int64)
        """Tokens so far, and the position of the newest."""
        self.source_length = np.ones(rows, np.int64)
        self.limit = np.ones(rows, np.int64)
        """Of all tokens."""
        self.start = np.zeros(rows, np.int64)
        """How many of the first tokens are no part of the translation."""
        self.total = np.zeros(rows, np.float64)
        """Log-probability of the tokens so far; -inf where a beam has fewer hypotheses than rows"""
        self.least = np.zeros(rows, np.int64)
        """Tokens before which the translation may not end."""
        self.single = np.zeros(rows, np.bool_)
        """A hypothesis of its own: greedy, sampled or scored."""
        self.stream = np.zeros(rows, np.bool_)
        self.listed = np.zeros(rows, np.bool_)
        """Chooses among the tokens of a list."""
        self.candidates = np.ones(rows, np.int64)
        """How many of the best tokens its selection looks at."""
        self.forced_length = np.zeros(rows, np.int64)
        self.forced = np.zeros((rows, max_target), np.int64)
        self.ids = np.zeros((rows, max_target), np.int64)
        self.log_probs = np.zeros((rows, max_target), np.float32)
        self.alignment = np.zeros((rows, max_target, max_source), np.float32)
        for array in (self.forced, self.ids, self.log_probs, self.alignment):
            array.fill(0)  # zeros() alone leaves the pages to be touched later
        self._lines = (
            self.token,
            self.past,
            self.source_length,
            self.limit,
            self.start,
            self.total,
            self.least,
            self.single,
            self.stream,
            self.listed,
            self.candidates,
            self.forced_length,
            self.forced,
            self.ids,
            self.log_probs,
        )

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in (*self._lines, self.alignment))

    def place(self, job: Job, begin: int, candidates: int) -> Running:
        """Give a sentence its rows: holes first, then those after the last."""
        beam = job.options.beam
        holes = [row for row in range(self.count) if self.owner[row] is None][:beam]
        fresh = range(self.count, self.count + beam - len(holes))
        rows = [*holes, *fresh]
        self.count += len(fresh)
        running = Running(job, rows)
        for row in rows:
            self.owner[row] = running
        at = rows[0] if beam == 1 else rows  # numpy takes a number in far less time than a list
        self.token[at] = begin
        self.past[at] = 0
        self.source_length[at] = len(job.sentence.source) + 1
        self.start[at] = len(job.sentence.start)
        self.limit[at] = len(job.sentence.start) + job.limit
        self.total[at] = -np.inf
        self.total[rows[0]] = 0.0
        self.least[at] = job.options.min_tokens
        self.single[at] = beam == 1
        self.stream[at] = job.stream and beam == 1
        self.listed[at] = False
        self.candidates[at] = candidates
        self.forced_length[at] = len(job.forced)
        self.forced[at, : len(job.forced)] = job.forced
        return running

    def free(self, running: Running) -> None:
        for row in running.rows:
            self.owner[row] = None
            # The step that is being worked on must not take it for a row that goes on.
            self.past[row] = 0
            self.stream[row] = False
            self.single[row] = False
            self.forced_length[row] = 0
        while self.count and self.owner[self.count - 1] is None:
            self.count -= 1

    def holes_to_fill(self) -> tuple[list[int], list[int]]:
        """Which rows to move where, so that no hole is left: the last rows to the first holes."""
        sources: list[int] = []
        destinations: list[int] = []
        low, high = 0, self.count - 1
        while True:
            while low < high and self.owner[low] is not None:
                low += 1
            while low < high and self.owner[high] is None:
                high -= 1
            if low >= high:
                return sources, destinations
            sources.append(high)
            destinations.append(low)
            low, high = low + 1, high - 1

    def move(self, sources: list[int], destinations: list[int]) -> None:
        """Compact: the lines of these rows, and who owns them, go to the holes."""
        for line in self._lines:
            line[destinations] = line[sources]
        for source, destination in zip(sources, destinations, strict=True):
            running = self.owner[source]
            assert running is not None
            running.rows[running.rows.index(source)] = destination
            self.owner[destination], self.owner[source] = running, None
            if running.job.options.alignment:
                self.alignment[destination, : self.past[source]] = self.alignment[
                    source, : self.past[source]
                ]
        while self.count and self.owner[self.count - 1] is None:
            self.count -= 1

    def copy_history(
        self, sources: npt.NDArray[np.int64], destinations: npt.NDArray[np.int64], length: int
    ) -> None:
        """What hypotheses of a beam have in common with the one they come from."""
        self.ids[destinations, :length] = self.ids[sources, :length]
        self.log_probs[destinations, :length] = self.log_probs[sources, :length]
        for source, destination in zip(sources.tolist(), destinations.tolist(), strict=True):
            owner = self.owner[source]
            if owner is not None and owner.job.options.alignment:
                self.alignment[destination, :length] = self.alignment[source, :length]

    def record_alignment(self, rows: Iterable[int], alignment: npt.NDArray[np.float32]) -> None:
        """The newest position of these rows, before their past grows."""
        for row in rows:
            length = self.source_length[row]
            self.alignment[row, self.past[row], :length] = alignment[row, :length]
