"""A lane: the rows of one replica, and a turn of theirs: leave, admit, encode, step, select.

It knows no queue, no thread and no clock but the one for its own figures.
"""

import logging
import math
import time
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.engine import beam as beams
from dragoman_server.engine import constraints, sampling
from dragoman_server.engine.core import Answer, Failure, Finish, NewToken, Options, Report, Ticket
from dragoman_server.engine.rows import Job, Rows, Running
from dragoman_server.runtime.adjustments import NO_ADJUSTMENTS, Adjustments
from dragoman_server.runtime.arrays import Ints
from dragoman_server.runtime.graphs import Graphs
from dragoman_server.runtime.results import StepResult

log = logging.getLogger(__name__)

_CALL_TOKENS = 16
"""Positions of padding that are worth a call of the encoder less."""


class Lane:
    def __init__(self, graphs: Graphs, number: int, shortlist: Shortlist | None = None) -> None:
        manifest = graphs.manifest
        self._shortlist = shortlist
        self.graphs = graphs
        self.number = number
        self.rows = Rows(
            graphs.settings.rows, manifest.max_target_tokens, manifest.max_source_tokens
        )
        self._special = manifest.special_ids
        self._vocabulary = manifest.dimensions.target_vocabulary
        self._ends_in_beam = manifest.ends_in_beam
        self._ends = np.full(graphs.settings.rows, self._special.end, np.int64)
        self._every = np.arange(graphs.settings.rows)
        self._steps = 0
        self._running: dict[Ticket, Running] = {}
        self._fresh: list[Running] = []
        """Of these, those that have taken no step yet."""
        self._plain = 0
        """Of these, how many are."""
        self._listed = 0
        """Of these, how many choose among the tokens of a list."""
        self._constrained: dict[Options, list[Running]] = {}

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
            running = self.rows.place(job, self._special.begin, self._candidates(job.options))
            job.timing.admitted = now
            running.steps_before = self._steps
            self._running[job.ticket] = running
            self._fresh.append(running)
            self._plain += running.is_plain
            self._list(running)
            if running.tokens is None and constraints.is_constrained(job.options):
                self._constrained.setdefault(job.options, []).append(running)
            placed.append(running)
        placed.sort(key=lambda r: len(r.job.sentence.source))
        for group in _groups_of_like_length(placed):
            try:
                self._encode(group, report)
            except Exception:
                log.exception("the encoder failed, with %d sentences", len(group))
                report.faults += 1
                for running in group:
                    if running.job.ticket in self._running:
                        self._end(running, report, Failure.FAULT)

    def step(self, report: Report) -> None:
        """One token for every sentence."""
        self._compact()
        rows, count = self.rows, self.rows.count
        if not count:
            return
        is_plain = self._plain == len(self._running)
        past = rows.past[:count]
        given = self._ends[:count]
        if not is_plain:
            is_forced = past < rows.forced_length[:count]
            given = np.where(is_forced, rows.forced[self._every[:count], past], given)
        result = self._decode(count, given)
        report.rows = count
        report.step_seconds = result.seconds
        self._steps += 1
        now = time.monotonic()
        for running in self._fresh:
            running.job.timing.first_token = now
        self._fresh.clear()
        if self._drop_poisoned(result, report):
            is_plain = False  # a row without an owner is none that goes on
        if is_plain:
            self._advance_plain(result, report)
            return
        is_forced = past < rows.forced_length[:count]  # no longer those of dropped rows
        self._record_alignment(result)
        self._advance_beams(result, is_forced, report)
        self._advance_others(result, is_forced, given, report)

    def _list(self, running: Running) -> None:
        """Where there is a shortlist, give a sentence its list; but for what needs any token."""
        if self._shortlist is None or not _is_plain_search(running.job):
            return
        tokens = self._shortlist.candidates(running.job.sentence.source)
        if tokens is None or len(tokens) <= 2 * running.job.options.beam:
            return  # it may need others, or looks at more
        assert self.graphs.lists is not None
        self.graphs.lists.fill(running.rows, tokens)
        running.tokens = tokens
        self.rows.listed[running.rows] = True
        self._listed += 1

    def _decode(self, count: int, given: Ints) -> StepResult:
        """The graphs' part of a step: rows with lists by one, others by another."""
        rows = self.rows
        inputs = (rows.token[:count], rows.past[:count], rows.source_length[:count])
        candidates = min(int(np.maximum.reduce(rows.candidates[:count])), self._vocabulary)

        def among_all() -> StepResult:
            return self.graphs.step(
                *inputs, candidates=candidates, given_ids=given, adjustments=self._adjustments()
            )

        if not self._listed:
            return among_all()
        assert self.graphs.lists is not None
        is_early = rows.past[:count] - rows.start[:count] < rows.least[:count]
        self.graphs.lists.offsets[:count, 0] = np.where(is_early, -np.inf, 0.0)
        by_lists = self.graphs.step_listed(*inputs, candidates=candidates)
        if self._listed == len(self._running):
            return by_lists
        # Both graphs do all rows: the caches get the same twice, and this is rare.
        listed, seconds = np.flatnonzero(rows.listed[:count]), by_lists.seconds
        kept = [of_all[listed] for of_all in by_lists.chosen]
        result = among_all()
        for of_all, of_listed in zip(result.chosen, kept, strict=True):
            of_all[listed] = of_listed
        result.seconds += seconds
        return result

    def _candidates(self, options: Options) -> int:
        """How many of the best tokens the selection of a row looks at."""
        if options.beam > 1:
            return 2 * options.beam
        if options.sampling and sampling.is_listed(options.sampling):
            return options.sampling.top_k
        return 1

    def _encode(self, group: list[Running], report: Report) -> None:
        lengths = np.array([len(r.job.sentence.source) + 1 for r in group])
        ids = np.full((len(group), int(lengths.max())), self._special.pad, np.int64)
        for line, running in zip(ids, group, strict=True):
            source = running.job.sentence.source
            line[: len(source)] = source
            line[len(source)] = self._special.end
        sentences = np.repeat(np.arange(len(group)), [len(r.rows) for r in group])
        rows = np.array([row for r in group for row in r.rows])
        encoded = self.graphs.encode(ids, lengths, sentences, rows)
        now = time.monotonic()
        for running in group:
            running.job.timing.encoded = now
        for running, total in zip(group, encoded.sentence_sums.tolist(), strict=True):
            if not math.isfinite(total):
                self._end(running, report, Failure.POISONED)
        report.encode_seconds += encoded.seconds
        report.encoded += len(group)
        report.source_tokens += int(lengths.sum())
        report.padding += ids.size - int(lengths.sum())

    def _compact(self) -> None:
        sources, destinations = self.rows.holes_to_fill()
        if sources:
            self.graphs.move(
                sources,
                destinations,
                self_length=int(self.rows.past[sources].max()),
                cross_length=int(self.rows.source_length[sources].max()),
            )
            self.rows.move(sources, destinations)
            if self._listed and self.graphs.lists is not None:
                self.graphs.lists.move(sources, destinations)

    def _adjustments(self) -> Adjustments:
        if not self._constrained:
            return NO_ADJUSTMENTS
        rows = self.rows
        groups = []
        for options, members in self._constrained.items():
            lines = np.array([row for running in members for row in running.rows])
            # What is forced comes whatever the options say, at the model's own price.
            lines = lines[rows.past[lines] >= rows.forced_length[lines]]
            if len(lines):
                groups.append((options, lines))
        return constraints.adjustments(
            rows, groups, vocabulary=self._vocabulary, end=self._special.end
        )

    def _drop_poisoned(self, result: StepResult, report: Report) -> bool:
        """Returns whether there were any."""
        best = result.top_log_probs[:, 0]
        sums = float(np.add.reduce(result.row_sums)), float(np.add.reduce(best))
        if math.isfinite(sums[0]) and not math.isnan(sums[1]):
            return False  # so is each of them
        sick = ~np.isfinite(result.row_sums) | np.isnan(best)
        owners = [self.rows.owner[row] for row in np.flatnonzero(sick).tolist()]
        for running in dict.fromkeys(o for o in owners if o is not None):
            self._end(running, report, Failure.POISONED)
        return bool(owners)

    def _record_alignment(self, result: StepResult) -> None:
        for running in self._running.values():
            if running.job.options.alignment:
                self.rows.record_alignment(running.rows, result.alignment)

    def _advance_beams(
        self, result: StepResult, is_forced: npt.NDArray[np.bool_], report: Report
    ) -> None:
        rows, end = self.rows, self._special.end
        groups: dict[int, list[Running]] = {}
        done: list[Running] = []
        for running in self._running.values():
            row, beam = running.rows[0], running.job.options.beam
            if beam == 1 or is_forced[row]:
                continue
            if rows.past[row] + 1 >= rows.limit[row]:
                beams.finish_at_limit(rows, running, result, end)
                done.append(running)
            else:
                groups.setdefault(beam, []).append(running)
        for group in groups.values():
            done += beams.advance(
                *(rows, group, result, end, self._move_beams), ends_in_beam=self._ends_in_beam
            )
        for running in done:
            self._end(running, report)

    def _move_beams(
        self, sources: npt.NDArray[np.int64], destinations: npt.NDArray[np.int64], length: int
    ) -> None:
        """All hypotheses of a sentence have its source in their cross caches already."""
        self.graphs.move(sources.tolist(), destinations.tolist(), length, cross_length=0)

    def _advance_plain(self, result: StepResult, report: Report) -> None:
        """As ``_advance_others``, where all rows are plain: it is most of what a server does."""
        rows, end = self.rows, self._special.end
        count = len(result.top_ids)
        past = rows.past[:count]
        token, log_prob = result.top_ids[:, 0], result.top_log_probs[:, 0]
        ends = (token == end) | (past + 1 >= rows.limit[:count])
        going: slice | npt.NDArray[np.int64] = slice(0, count)
        if np.logical_or.reduce(ends):
            going = np.flatnonzero(~ends)
            for row in np.flatnonzero(ends).tolist():
                if token[row] == end:
                    self._finish(row, float(log_prob[row]), Finish.END, report)
                else:  # cut off: what is given is the end token
                    self._finish(row, float(result.given_log_probs[row]), Finish.LENGTH, report)
        rows.ids[self._every[going], past[going]] = token[going]
        rows.log_probs[self._every[going], past[going]] = log_prob[going]
        rows.total[going] += log_prob[going]
        rows.token[going] = token[going]
        rows.past[going] += 1
        streamed = rows.stream[going]
        if np.logical_or.reduce(streamed):
            self._show(self._every[going][streamed], token, log_prob, report)

    def _advance_others(
        self,
        result: StepResult,
        is_forced: npt.NDArray[np.bool_],
        given: npt.NDArray[np.int64],
        report: Report,
    ) -> None:
        """Rows that choose for themselves, and rows whose token is given."""
        rows, end = self.rows, self._special.end
        count = len(is_forced)
        past = rows.past[:count]
        single = rows.single[:count]
        if not np.logical_or.reduce(single | is_forced):
            return  # beams alone
        at_limit = single & ~is_forced & (past + 1 >= rows.limit[:count])
        token = result.top_ids[:, 0].copy()
        log_prob = result.top_log_probs[:, 0].copy()
        self._draw(result, single & ~is_forced & ~at_limit, token, log_prob)
        is_given = is_forced | at_limit
        by_itself = token == end
        token[is_given] = given[is_given]
        log_prob[is_given] = result.given_log_probs[is_given]
        is_start = past < rows.start[:count]
        log_prob[is_start] = 0.0

        for row in np.flatnonzero(single & (token == end)).tolist():
            cut = at_limit[row] and not by_itself[row]
            finish = Finish.LENGTH if cut else Finish.END
            self._finish(row, float(log_prob[row]), finish, report)
        going = np.flatnonzero((rows.single[:count] | is_forced) & (token != end))
        shown = going[rows.stream[going] & ~is_start[going]]
        rows.ids[going, past[going]] = token[going]
        rows.log_probs[going, past[going]] = log_prob[going]
        rows.total[going] += log_prob[going]
        rows.token[going] = token[going]
        rows.past[going] += 1
        self._show(shown, token, log_prob, report)

    def _finish(self, row: int, log_prob: float, finish: Finish, report: Report) -> None:
        """A row of its own ends, by a token of this log-probability."""
        running = self.rows.owner[row]
        assert running is not None
        beams.keep(running, beams.hypothesis(self.rows, running, row, log_prob, finish))
        self._end(running, report)

    def _show(
        self,
        shown: npt.NDArray[np.int64],
        token: npt.NDArray[np.int64],
        log_prob: npt.NDArray[np.float32],
        report: Report,
    ) -> None:
        """New tokens, for those who want them as they come."""
        for row in shown.tolist():
            running = self.rows.owner[row]
            assert running is not None
            report.tokens.append(
                NewToken(running.job.ticket, int(token[row]), float(log_prob[row]))
            )

    def _draw(
        self,
        result: StepResult,
        free: npt.NDArray[np.bool_],
        token: npt.NDArray[np.int64],
        log_prob: npt.NDArray[np.float32],
    ) -> None:
        """Put what is drawn in the place of the best token, in the rows that sample."""
        rows = self.rows
        listed: list[tuple[int, Running]] = []
        others: list[tuple[int, Running]] = []
        for running in self._running.values():
            row, options = running.rows[0], running.job.options
            if options.sampling and free[row]:
                (listed if sampling.is_listed(options.sampling) else others).append((row, running))
        if not listed and not others:
            return
        drawn = [*listed, *others]
        uniform = sampling.uniform(
            np.array([running.job.seed for _, running in drawn], np.uint64),
            rows.past[[row for row, _ in drawn]],
        )
        if listed:
            at = np.array([row for row, _ in listed])
            samplings = [s for _, r in listed if (s := r.job.options.sampling)]
            places = sampling.draw_listed(
                result.top_log_probs[at], samplings, uniform[: len(listed)]
            )
            token[at] = result.top_ids[at, places]
            log_prob[at] = result.top_log_probs[at, places]
        if not others:
            return
        log_probs = self.graphs.log_probs(len(free))
        for (row, running), number in zip(others, uniform[len(listed) :].tolist(), strict=True):
            chosen = running.job.options.sampling
            assert chosen is not None
            token[row] = sampling.draw_any(log_probs[row], chosen, number)
            log_prob[row] = log_probs[row, token[row]]

    def _end(self, running: Running, report: Report, failure: Failure | None = None) -> None:
        """Free a sentence's rows and answer it."""
        job = running.job
        del self._running[job.ticket]
        self._plain -= running.is_plain
        if running in self._fresh:
            self._fresh.remove(running)
        self.rows.free(running)
        if running.tokens is not None:
            assert self.graphs.lists is not None
            self.graphs.lists.free(running.tokens)
            self._listed -= 1
        elif constraints.is_constrained(job.options):
            members = self._constrained[job.options]
            members.remove(running)
            if not members:
                del self._constrained[job.options]
        job.timing.finished = time.monotonic()
        if not failure:
            report.target_tokens += len(running.finished[0].ids) + 1
        report.answers.append(
            Answer(
                job.ticket,
                hypotheses=() if failure else tuple(running.finished),
                failure=failure,
                timing=job.timing,
                source_tokens=len(job.sentence.source),
                steps=self._steps - running.steps_before,
            )
        )


def _is_plain_search(job: Job) -> bool:
    """The best translation, whatever its words; not one that is drawn, given or kept from some."""
    options, sentence = job.options, job.sentence
    return not (
        options.sampling
        or options.repetition_penalty != 1.0
        or options.no_repeat_ngram
        or options.suppressed
        or sentence.prefix
        or sentence.target is not None
    )


def _groups_of_like_length(placed: list[Running]) -> Iterator[list[Running]]:
    """Sentences, shortest first, in calls of the encoder: as few as padding is worth."""
    group: list[Running] = []
    for running in placed:
        length = len(running.job.sentence.source) + 1
        padding = sum(length - len(r.job.sentence.source) - 1 for r in group)
        if group and padding > _CALL_TOKENS:
            yield group
            group = []
        group.append(running)
    if group:
        yield group
