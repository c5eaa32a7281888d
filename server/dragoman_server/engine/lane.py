"""A lane: rows that step together, and a turn of theirs: leave, admit, encode, step, select.

A lane decides what is done; its neighbours do it: ``encoding``, ``shortlisting``, ``constraints``,
``greedy``, ``beam`` and ``sampling``. It knows no queue, no thread and no clock but the one for its
own figures.
"""

import logging
import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.engine import encoding
from dragoman_server.engine.core import Failure, Report, Ticket
from dragoman_server.engine.jobs import Job
from dragoman_server.engine.rows import Rows, Running
from dragoman_server.engine.search import greedy, sampling
from dragoman_server.engine.search.beam import BeamSearch
from dragoman_server.engine.search.constraints import Constraints
from dragoman_server.engine.search.greedy import Ended
from dragoman_server.engine.search.shortlisting import Shortlisting
from dragoman_server.runtime.arrays import Bools, Floats, Ints
from dragoman_server.runtime.graphs import Graphs
from dragoman_server.runtime.results import StepResult

log = logging.getLogger(__name__)

GoOn = Callable[[], bool]
"""Whether a lane may take another step before it asks what else there is to do."""


def only_once() -> bool:
    """Let a turn have one step."""
    return False


class Lane:
    """The rows of one copy of the caches, and the sentences that hold them."""

    def __init__(self, graphs: Graphs, number: int, shortlist: Shortlist | None = None) -> None:
        manifest = graphs.manifest
        self.graphs = graphs
        self.number = number
        self.rows = Rows(
            graphs.settings.rows,
            manifest.max_target_tokens,
            manifest.max_source_tokens,
            touched=graphs.settings.touch_memory,
        )
        self.shortlisting = Shortlisting(graphs, self.rows, shortlist)
        self._special = manifest.special_ids
        self._source_end = manifest.source_end
        self._vocabulary = manifest.dimensions.target_vocabulary
        self._constraints = Constraints(self.rows, self._vocabulary, self._special.end)
        self._beam_search = BeamSearch(
            self.rows, self._special.end, self._move_beams, ends_in_beam=manifest.ends_in_beam
        )
        self._ends = np.full(graphs.settings.rows, self._special.end, np.int64)
        """The end token for every row: what is given where nothing else is."""
        self._steps = 0
        """Steps that this lane has taken."""
        self._running: dict[Ticket, Running] = {}
        self._fresh: list[Running] = []
        """Running sentences that have taken no step yet."""
        self._plain_greedy_count = 0
        """Running sentences that take the best token each time and need nothing else."""

    @property
    def running(self) -> int:
        """Sentences that hold rows."""
        return len(self._running)

    def leave(self, tickets: Sequence[tuple[Ticket, Failure]], report: Report) -> None:
        """Let sentences go before their end."""
        for ticket, failure in tickets:
            if ticket in self._running:
                self._end(self._running[ticket], report, failure)

    def fail_all(self, failure: Failure, report: Report) -> None:
        """Let everything go: the next turn begins with empty rows."""
        for running in list(self._running.values()):
            self._end(running, report, failure)

    def admit(self, jobs: Sequence[Job], report: Report) -> None:
        """Give sentences their rows and read them into the caches."""
        now = time.monotonic()
        placed: list[Running] = []
        for job in jobs:
            source_length = len(job.sentence.source) + len(self._source_end)
            running = self.rows.place(job, self._special.begin, source_length)
            job.timing.admitted = now
            running.steps_before = self._steps
            self._running[job.ticket] = running
            self._fresh.append(running)
            self._plain_greedy_count += job.decoding.is_plain_greedy
            # A shortlist keeps to the minimum length by itself, and nothing else constrains it.
            if not self.shortlisting.add(running) and job.decoding.is_constrained:
                self._constraints.add(running)
            placed.append(running)
        for batch in encoding.batches(placed):
            try:
                self._encode(batch, report)
            except Exception:
                log.exception("the encoder failed, with %d sentences", len(batch))
                report.faults += 1
                for running in batch:
                    if running.job.ticket in self._running:
                        self._end(running, report, Failure.FAULT)

    def step(self, report: Report, go_on: GoOn = only_once) -> None:
        """Give every sentence its next token.

        Where all rows only take the best token, this goes on until one of them ends, as long as
        ``go_on`` allows: nothing is to be decided between two such steps.
        """
        self._compact()
        rows, count = self.rows, self.rows.count
        if not count:
            return
        all_plain_greedy = self._plain_greedy_count == len(self._running)
        past = rows.past[:count]
        given = self._ends[:count]
        if not all_plain_greedy:
            given = rows.forced_tokens(past < rows.forced_length[:count], given)
        is_straight = all_plain_greedy and self._is_straight
        result = self._decode(given)
        while True:
            self._steps += 1
            report.add_step(count, result.seconds)
            if self._fresh:
                self._note_first_tokens()
            # A row without an owner is none that goes on.
            if self._drop_poisoned(result, report) or not all_plain_greedy:
                self._advance_mixed(result, past < rows.forced_length[:count], given, report)
                return
            ended = greedy.advance(rows, result, self._special.end, report)
            if ended or not is_straight or not go_on():
                self._finish(ended, report)
                return
            result = self.graphs.step_on(result.top_ids[:, 0])

    @property
    def _is_straight(self) -> bool:
        """Whether steps of rows that only take the best token differ in nothing but these."""
        rows, count, listed = self.rows, self.rows.count, self.shortlisting.count
        return (
            self.graphs.settings.device == "cpu"
            and self._constraints.are_none
            and listed in (0, len(self._running))
            and not np.logical_or.reduce(rows.stream[:count])
            and not (listed and np.logical_or.reduce(rows.min_tokens[:count]))
        )

    def _note_first_tokens(self) -> None:
        now = time.monotonic()
        for running in self._fresh:
            running.job.timing.first_token = now
        self._fresh.clear()

    def _encode(self, batch: list[Running], report: Report) -> None:
        encoded = encoding.encode(self.graphs, batch)
        now = time.monotonic()
        for running in batch:
            running.job.timing.encoded = now
        for running in encoded.poisoned:
            self._end(running, report, Failure.POISONED)
        report.encode_seconds += encoded.seconds
        report.encoded += len(batch)
        report.source_tokens += encoded.source_tokens
        report.padding += encoded.padding

    def _compact(self) -> None:
        """Fill the holes that ended sentences left among the active rows."""
        sources, destinations = self.rows.holes_to_fill()
        if sources:
            self.graphs.move(
                sources,
                destinations,
                self_length=int(self.rows.past[sources].max()),
                cross_length=int(self.rows.source_length[sources].max()),
            )
            self.rows.move(sources, destinations)
            self.shortlisting.move(sources, destinations)

    def _decode(self, given: Ints) -> StepResult:
        """Run the graphs of a step: one for rows with a shortlist, another for those without."""
        rows, shortlisting = self.rows, self.shortlisting
        most_wanted = int(np.maximum.reduce(rows.candidates[: rows.count]))
        candidates = min(most_wanted, self._vocabulary)

        def step_all() -> StepResult:
            return self.graphs.step(
                *rows.inputs,
                candidates=candidates,
                given_ids=given,
                adjustments=self._constraints.adjustments(),
            )

        if not shortlisting.count:
            return step_all()
        if shortlisting.count == len(self._running):
            return shortlisting.step(candidates)
        return shortlisting.step_beside(step_all, candidates)

    def _drop_poisoned(self, result: StepResult, report: Report) -> bool:
        """End sentences with values that are not numbers. Returns whether there were any."""
        best = result.top_log_probs[:, 0]
        sums = float(np.add.reduce(result.row_sums)), float(np.add.reduce(best))
        if math.isfinite(sums[0]) and not math.isnan(sums[1]):
            return False  # so is each of them
        sick = ~np.isfinite(result.row_sums) | np.isnan(best)
        owners = [self.rows.owner[row] for row in np.flatnonzero(sick).tolist()]
        for running in dict.fromkeys(o for o in owners if o is not None):
            self._end(running, report, Failure.POISONED)
        return bool(owners)

    def _advance_mixed(
        self, result: StepResult, is_forced: Bools, given: Ints, report: Report
    ) -> None:
        """Select the tokens of rows that are not all greedy."""
        for running in self._running.values():
            if running.job.decoding.keeps_alignment:
                self.rows.record_alignment(running.rows, result.alignment)
        for running in self._beam_search.advance(self._running.values(), result, is_forced):
            self._end(running, report)

        def draw(is_free: Bools, token: Ints, log_prob: Floats) -> None:
            def all_log_probs() -> Floats:
                return self.graphs.log_probs(len(is_free))

            running = self._running.values()
            sampling.draw(self.rows, running, result, is_free, all_log_probs, token, log_prob)

        ended = greedy.advance_mixed(
            self.rows, result, self._special.end, is_forced, given, draw, report
        )
        self._finish(ended, report)

    def _move_beams(self, sources: Ints, destinations: Ints, length: int) -> None:
        """Copy caches within beams: all rows of a sentence have its source in theirs already."""
        self.graphs.move(sources.tolist(), destinations.tolist(), length, cross_length=0)

    def _finish(self, ended: list[Ended], report: Report) -> None:
        """End the sentences of rows whose only hypothesis ended."""
        for row, log_prob, finish in ended:
            running = self.rows.owner[row]
            assert running is not None
            running.keep(self.rows.hypothesis(running, row, log_prob, finish))
            self._end(running, report)

    def _end(self, running: Running, report: Report, failure: Failure | None = None) -> None:
        """Free a sentence's rows and answer it."""
        job = running.job
        del self._running[job.ticket]
        self._plain_greedy_count -= job.decoding.is_plain_greedy
        if running in self._fresh:
            self._fresh.remove(running)
        self.rows.free(running)
        if not self.shortlisting.remove(running) and job.decoding.is_constrained:
            self._constraints.remove(running)
        found = () if failure else tuple(running.finished)
        if not failure:
            report.target_tokens += len(found[0].ids) + 1
        steps = self._steps - running.steps_before
        report.answers.append(job.answer(hypotheses=found, failure=failure, steps=steps))
