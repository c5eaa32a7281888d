"""The state of decoding: one line of each array per row.

Active rows are always the first ``count``, because the graphs pair row i of the query with row i of
the caches. A row that ends leaves a hole, which a new sentence fills, or else the last row.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from dragoman_server.engine.core import Finish, Hypothesis
from dragoman_server.engine.jobs import Job
from dragoman_server.runtime.arrays import Bools, Floats, Ints
from dragoman_server.runtime.memory import zeros
from dragoman_server.runtime.scoring import length_score


@dataclass(eq=False)
class Running:
    """A sentence that holds rows."""

    job: Job
    rows: list[int]
    """Rows of the sentence, one for each hypothesis of its beam, best first."""
    finished: list[Hypothesis] = field(default_factory=list)
    """Finished hypotheses, best first, no more than are wanted."""
    steps_before: int = 0
    """Steps that the lane had taken when the sentence was admitted."""

    def keep(self, hypothesis: Hypothesis) -> None:
        """Add a finished hypothesis, if it is among the best that are wanted."""
        self.finished.append(hypothesis)
        self.finished.sort(key=lambda h: -h.score)  # stable: the earlier of equals stays ahead
        del self.finished[self.job.options.n_best :]


class Rows:
    """Arrays with a line for each row. They are allocated once."""

    def __init__(self, rows: int, max_target: int, max_source: int, *, touched: bool) -> None:
        """``touched``: whether all memory is taken now, see ``zeros``."""
        self.count = 0
        """Number of rows up to the last that has an owner; holes among them have none."""
        self.owner: list[Running | None] = [None] * rows
        """Sentence that holds each row."""
        self.token = np.zeros(rows, np.int64)
        """Newest token of each row, which the next step reads."""
        self.past = np.zeros(rows, np.int64)
        """Tokens of each row so far, which is also the position of the newest."""
        self.source_length = np.ones(rows, np.int64)
        """Source tokens of each row, with the end token if the model has one there."""
        self.start = np.zeros(rows, np.int64)
        """Number of each row's first tokens that are no part of the translation."""
        self.max_length = np.ones(rows, np.int64)
        """Most tokens of each row, the start tokens and the end token included."""
        self.min_tokens = np.zeros(rows, np.int64)
        """Tokens of the translation before which each row may not end."""
        self.total = np.zeros(rows, np.float64)
        """Log-probability of each row's tokens; -inf where a beam has fewer hypotheses than rows"""
        self.is_single = np.zeros(rows, np.bool_)
        """Whether each row is its sentence's only one: greedy, sampled or scored."""
        self.stream = np.zeros(rows, np.bool_)
        """Whether the tokens of each row are reported as they come."""
        self.candidates = np.ones(rows, np.int64)
        """Most probable tokens that the selection of each row looks at."""
        self.forced_length = np.zeros(rows, np.int64)
        """Number of each row's first tokens that are given."""
        self.forced = np.zeros((rows, max_target), np.int64)
        """The given tokens of each row."""
        self.ids = np.zeros((rows, max_target), np.int64)
        """All tokens of each row so far, start tokens included."""
        self.log_probs = np.zeros((rows, max_target), np.float32)
        """Log-probability of each of these tokens."""
        self.alignment = zeros((rows, max_target, max_source), np.float32, touched=touched)
        """How much each of these tokens looked at each source token, where that is kept."""
        for array in (self.forced, self.ids, self.log_probs):
            array.fill(0)  # zeros() alone leaves the pages to be touched later
        self._lines = (
            self.token,
            self.past,
            self.source_length,
            self.start,
            self.max_length,
            self.min_tokens,
            self.total,
            self.is_single,
            self.stream,
            self.candidates,
            self.forced_length,
            self.forced,
            self.ids,
            self.log_probs,
        )
        self._every = np.arange(rows)

    @property
    def bytes(self) -> int:
        """Memory of all arrays, in bytes."""
        return sum(array.nbytes for array in (*self._lines, self.alignment))

    @property
    def inputs(self) -> tuple[Ints, Ints, Ints]:
        """What a step reads of each active row: its newest token, past and source length."""
        count = self.count
        return self.token[:count], self.past[:count], self.source_length[:count]

    def place(self, job: Job, begin: int, source_length: int) -> Running:
        """Give a sentence its rows: holes first, then those after the last."""
        beam = job.decoding.beam
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
        self.source_length[at] = source_length
        self.start[at] = len(job.sentence.start)
        self.max_length[at] = len(job.sentence.start) + job.limit
        self.min_tokens[at] = job.options.min_tokens
        self.total[at] = -np.inf
        self.total[rows[0]] = 0.0
        self.is_single[at] = beam == 1
        self.stream[at] = job.stream and beam == 1
        self.candidates[at] = job.decoding.candidates
        self.forced_length[at] = len(job.forced)
        self.forced[at, : len(job.forced)] = job.forced
        return running

    def free(self, running: Running) -> None:
        """Take a sentence's rows from it."""
        for row in running.rows:
            self.owner[row] = None
            # The step that is being worked on must not take it for a row that goes on.
            self.past[row] = 0
            self.stream[row] = False
            self.is_single[row] = False
            self.forced_length[row] = 0
        self._drop_holes_at_the_end()

    def append(self, rows: slice | Ints, token: Ints, log_prob: Floats) -> None:
        """Append a token to each of these rows; ``token`` has one for every active row."""
        lines, past = self._every[rows], self.past[rows]
        new_token, new_log_prob = token[rows], log_prob[rows]
        self.ids[lines, past] = new_token
        self.log_probs[lines, past] = new_log_prob
        self.total[rows] += new_log_prob
        self.token[rows] = new_token
        self.past[rows] += 1

    def forced_tokens(self, is_forced: Bools, otherwise: Ints) -> Ints:
        """Return the token that is given to each active row next, or ``otherwise``."""
        count = self.count
        given: Ints = self.forced[self._every[:count], self.past[:count]]
        return np.where(is_forced, given, otherwise)

    def hypothesis(self, running: Running, row: int, log_prob: float, finish: Finish) -> Hypothesis:
        """Return the hypothesis of a row that ends now, by a token of this log-probability."""
        start, past = int(self.start[row]), int(self.past[row])
        total = float(self.total[row]) + log_prob
        alignment = None
        if running.job.decoding.keeps_alignment:
            alignment = self.alignment[row, start : past + 1, : self.source_length[row]].copy()
        return Hypothesis(
            ids=tuple(self.ids[row, start:past].tolist()),
            log_prob=total,
            score=length_score(total, past + 1 - start, running.job.options.length_penalty),
            finish=finish,
            token_log_probs=(*self.log_probs[row, start:past].tolist(), log_prob),
            alignment=alignment,
        )

    def holes_to_fill(self) -> tuple[list[int], list[int]]:
        """Return which rows to move where so that no hole is left: the last to the first holes."""
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
        """Move rows, with their owners, to holes."""
        for line in self._lines:
            line[destinations] = line[sources]
        for source, destination in zip(sources, destinations, strict=True):
            running = self.owner[source]
            assert running is not None
            running.rows[running.rows.index(source)] = destination
            self.owner[destination], self.owner[source] = running, None
            self._copy_alignment(running, source, destination, self.past[source])
        self._drop_holes_at_the_end()

    def copy_history(self, sources: Ints, destinations: Ints, length: int) -> None:
        """Copy what hypotheses of a beam have in common with the one they come from."""
        self.ids[destinations, :length] = self.ids[sources, :length]
        self.log_probs[destinations, :length] = self.log_probs[sources, :length]
        for source, destination in zip(sources.tolist(), destinations.tolist(), strict=True):
            running = self.owner[source]
            if running is not None:
                self._copy_alignment(running, source, destination, length)

    def record_alignment(self, rows: Iterable[int], alignment: Floats) -> None:
        """Keep the alignment of the newest position of these rows, before their past grows."""
        for row in rows:
            length = self.source_length[row]
            self.alignment[row, self.past[row], :length] = alignment[row, :length]

    def _copy_alignment(self, running: Running, source: int, destination: int, length: int) -> None:
        if running.job.decoding.keeps_alignment:
            self.alignment[destination, :length] = self.alignment[source, :length]

    def _drop_holes_at_the_end(self) -> None:
        while self.count and self.owner[self.count - 1] is None:
            self.count -= 1
