"""The engine: lanes in threads of their own, fed by one scheduler.

    submit → the scheduler's queue → a lane's turn: leave, admit, encode, step → one report a turn

A sentence's answer does not depend on what else runs, when it came, or which row it got.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dragoman_server.bundle.reading import Bundle
from dragoman_server.bundle.shortlist import shortlist_of
from dragoman_server.engine.core import (
    GREEDY,
    Answer,
    Failure,
    Options,
    Report,
    Sentence,
    Ticket,
    Timing,
)
from dragoman_server.engine.jobs import JobMaker, SentenceError
from dragoman_server.engine.lane import Lane
from dragoman_server.engine.rows import Job
from dragoman_server.engine.sampling import LISTED
from dragoman_server.engine.scheduler import Need, Scheduler, SchedulerSettings, Turn
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.speed import Speed
from dragoman_server.runtime.graphs import Graphs, GraphSettings

log = logging.getLogger(__name__)

Deliver = Callable[[Report], None]
"""Takes the reports of all lanes, each in the lane's own thread; the lane waits for it."""

_CLOSING_SECONDS = 10.0
"""How long a closing engine waits for the calls that are running before it interrupts them."""


class EngineClosedError(Exception):
    """The engine takes no more requests."""

    def __init__(self) -> None:
        super().__init__("the engine is closed")


@dataclass(frozen=True)
class LaneStatus:
    lane: int
    alive: bool
    """Its thread runs."""
    busy: bool
    """It is in a turn; a lane that waits for work is not."""
    since_heartbeat: float
    """Seconds since that turn began, or the last one ended: a busy lane far behind is stalled."""


class Engine:
    def __init__(self, bundle: Bundle, settings: EngineSettings, deliver: Deliver) -> None:
        self.manifest = bundle.manifest
        self.settings = settings
        resolved = self.resolved = settings.resolved
        first = Graphs(
            bundle,
            GraphSettings(
                rows=resolved.rows_per_lane,
                device=settings.device,
                threads=resolved.session_threads,
                # Among several lanes, one that spins takes a core from another.
                spin=resolved.replicas == 1,
            ),
        )
        graphs = [first, *(first.replica() for _ in range(resolved.replicas - 1))]
        shortlist = shortlist_of(bundle.path, bundle.manifest)
        self.lanes = [Lane(each, number, shortlist) for number, each in enumerate(graphs)]
        self._maker = JobMaker(bundle.manifest, settings.max_beam)
        self._deliver = deliver
        self._scheduler = Scheduler(
            SchedulerSettings(
                lanes=resolved.replicas,
                rows=resolved.rows_per_lane,
                reserve=settings.max_beam,
                encode_tokens=settings.encode_tokens,
                max_waiting_sentences=settings.max_waiting_sentences,
                max_waiting_requests=settings.max_waiting_requests,
                max_waiting_tokens=settings.max_waiting_tokens,
            )
        )
        self._jobs: dict[Ticket, Job] = {}
        """Of the sentences that wait."""
        self._owed = 0
        """Sentences whose answer has not been delivered."""
        self._requests = 0
        self.speed = Speed()
        """How fast the lanes work, for those who have to know how long a queue takes."""
        self._changed = threading.Condition()
        self._is_open = True
        self._stopping = False
        self._busy = [False] * resolved.replicas
        self._heartbeats = [time.monotonic()] * resolved.replicas
        self._threads = [
            threading.Thread(
                target=self._run, args=(lane,), name=f"lane-{lane.number}", daemon=True
            )
            for lane in self.lanes
        ]

    @property
    def buffer_bytes(self) -> int:
        """Memory of all rows, taken at the start."""
        return sum(lane.graphs.buffer_bytes + lane.rows.bytes for lane in self.lanes)

    @property
    def waiting(self) -> int:
        """Sentences in the queue."""
        return self._scheduler.waiting

    @property
    def waiting_requests(self) -> int:
        """Requests of which nothing has begun."""
        return self._scheduler.waiting_requests

    @property
    def waiting_tokens(self) -> int:
        """Of the sources in the queue."""
        return self._scheduler.waiting_tokens

    @property
    def is_full(self) -> bool:
        """Whether even the smallest request would be refused."""
        return self._scheduler.is_full

    @property
    def running(self) -> int:
        """Sentences that hold rows."""
        return self._scheduler.running

    @property
    def used_rows(self) -> int:
        return self._scheduler.used_rows

    def status(self) -> list[LaneStatus]:
        now = time.monotonic()
        return [
            LaneStatus(number, thread.is_alive(), busy, now - beat)
            for number, (thread, busy, beat) in enumerate(
                zip(self._threads, self._busy, self._heartbeats, strict=True)
            )
        ]

    def start(self) -> None:
        """Warm up at the largest shapes, so that memory does not grow later, and begin."""
        for lane in self.lanes:
            warm_up(lane.graphs, self.settings.encode_tokens)
        for thread in self._threads:
            thread.start()

    def submit(
        self,
        sentences: Sequence[Sentence],
        options: Options = GREEDY,
        *,
        flow: int | None = None,
        priority: int = 0,
        deadline: float = math.inf,
        stream: bool = False,
        queued: Callable[[int], None] = lambda request: None,
    ) -> int:
        """Queue a request; its number is in the tickets of its answers.

        ``deadline`` is a moment of ``time.monotonic()``. Sentences of a ``flow`` take turns with
        those of other flows. With ``stream``, tokens are delivered as they come; a beam has none
        before its end. ``queued`` is told the number before any answer can come.
        Raises ``SentenceError`` for what the model can't take, ``QueueFullError``, and
        ``EngineClosedError``.
        """
        if not sentences:
            raise SentenceError("sentences", "are none: a request has at least one")
        jobs = [self._maker.job(sentence, options, stream=stream) for sentence in sentences]
        needs = [Need(job.options.beam, len(job.sentence.source) + 1) for job in jobs]
        now = time.monotonic()
        with self._changed:
            if not self._is_open:
                raise EngineClosedError
            request = self._requests
            self._scheduler.submit(request, needs, flow=flow, priority=priority, deadline=deadline)
            self._requests += 1
            self._owed += len(jobs)
            for number, job in enumerate(jobs):
                ticket = Ticket(request, number)
                self._jobs[ticket] = replace(job, ticket=ticket, timing=Timing(submitted=now))
            queued(request)
            self._changed.notify_all()
        return request

    def cancel(self, request: int) -> None:
        """Its sentences leave at the next step; those that wait never run."""
        with self._changed:
            self._scheduler.cancel(request)
            self._changed.notify_all()

    def drain(self, seconds: float) -> bool:
        """Take no more requests, and wait for the answers owed. False where they take longer."""
        with self._changed:
            self._is_open = False
            return self._changed.wait_for(lambda: not self._owed, timeout=seconds)

    def close(self) -> None:
        """Stop. What is not finished is answered as stopped."""
        with self._changed:
            self._is_open = False
            self._stopping = True
            self._changed.notify_all()
        if not self._join(_CLOSING_SECONDS):
            for lane in self.lanes:
                lane.graphs.interrupt()
            if not self._join(_CLOSING_SECONDS):
                log.error("a lane does not end")
        self._answer_waiting(Report(0))

    def _join(self, seconds: float) -> bool:
        """Wait for the lanes to end. Returns whether they have."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self, lane: Lane) -> None:
        try:
            while not self._stopping:
                self._take_turn(lane)
            self._fail_lane(lane, Failure.STOPPED)
        except Exception:
            # Nothing is known to get here; if something does, the engine ends rather than hangs.
            log.critical("lane %d died", lane.number, exc_info=True)
            with self._changed:
                self._is_open = False
                self._stopping = True
                self._changed.notify_all()
            self._fail_lane(lane, Failure.FAULT)

    def _take_turn(self, lane: Lane) -> None:
        with self._changed:
            self._busy[lane.number] = False
            self._changed.wait_for(
                lambda: self._stopping or lane.running or self._scheduler.has_work(lane.number)
            )
            if self._stopping:
                return
            began = self._heartbeats[lane.number] = time.monotonic()
            self._busy[lane.number] = True
            turn = self._scheduler.turn(lane.number, began, self.speed.pace)
            jobs = [self._jobs.pop(ticket) for ticket in turn.admitted]
            dropped = [(self._jobs.pop(ticket), why) for ticket, why in turn.dropped]
        report = Report(lane.number)
        for job, failure in dropped:
            report.answers.append(_unanswered(job, failure))
        graph_seconds = lane.graphs.seconds
        self._work(lane, turn, jobs, report)
        self._release(report)
        report.graph_seconds = lane.graphs.seconds - graph_seconds
        ended = time.monotonic()
        report.turn_seconds = ended - began
        with self._changed:
            self.speed.add_turn(ended, report.source_tokens, report.turn_seconds)
        self._hand_over(report)

    def _work(self, lane: Lane, turn: Turn, jobs: list[Job], report: Report) -> None:
        try:
            lane.leave(turn.leaving, report)
            if jobs:
                lane.admit(jobs, report)
            lane.step(report)
        except Exception:
            log.exception("a step of lane %d failed, with %d sentences", lane.number, lane.running)
            report.faults += 1
            lane.fail_all(Failure.FAULT, report)
            answered = {answer.ticket for answer in report.answers}
            report.answers += [
                _unanswered(job, Failure.FAULT) for job in jobs if job.ticket not in answered
            ]

    def _release(self, report: Report) -> None:
        if report.answers:
            with self._changed:
                self._scheduler.release(answer.ticket for answer in report.answers)
                for answer in report.answers:
                    if not answer.failure:
                        held = answer.timing.finished - answer.timing.admitted
                        self.speed.add_sentence(answer.source_tokens + 1, held)
                self._changed.notify_all()

    def _hand_over(self, report: Report) -> None:
        try:
            self._deliver(report)
        except Exception:
            log.exception("a report of lane %d could not be delivered", report.lane)
        if report.answers:
            with self._changed:
                self._owed -= len(report.answers)
                self._changed.notify_all()

    def _fail_lane(self, lane: Lane, failure: Failure) -> None:
        """Answer everything that this lane has, and what no lane will take any more."""
        report = Report(lane.number)
        lane.fail_all(failure, report)
        self._answer_waiting(report)
        with self._changed:
            self._busy[lane.number] = False

    def _answer_waiting(self, report: Report) -> None:
        with self._changed:
            while self._jobs:
                _, job = self._jobs.popitem()
                self._scheduler.cancel(job.ticket.request)
                report.answers.append(_unanswered(job, Failure.STOPPED))
        if report.answers:
            self._release(report)
            self._hand_over(report)


def _unanswered(job: Job, failure: Failure) -> Answer:
    job.timing.finished = time.monotonic()
    return Answer(
        job.ticket,
        failure=failure,
        timing=job.timing,
        source_tokens=len(job.sentence.source),
    )


def warm_up(graphs: Graphs, encode_tokens: int) -> None:
    """Run each graph at the largest shapes it will meet."""
    rows, manifest = graphs.settings.rows, graphs.manifest
    longest, end = manifest.max_source_tokens, manifest.special_ids.end
    for length in {longest, min(longest, max(2, encode_tokens // rows))}:
        sentences = max(1, min(rows, encode_tokens // length))
        filled = np.arange(rows) % sentences
        ids = np.full((sentences, length), end, np.int64)
        graphs.encode(ids, np.full(sentences, length), filled, np.arange(rows))
    last = manifest.max_target_tokens - 1
    graphs.step(
        np.full(rows, end, np.int64),
        np.full(rows, last, np.int64),
        np.full(rows, longest, np.int64),
        candidates=min(LISTED, manifest.dimensions.target_vocabulary),
    )
    if graphs.lists is not None:
        graphs.lists.fill_all()
        graphs.step_listed(
            np.full(rows, end, np.int64),
            np.full(rows, last, np.int64),
            np.full(rows, longest, np.int64),
            candidates=min(LISTED, manifest.dimensions.target_vocabulary),
        )
        graphs.lists.clear()
    half = rows // 2
    if half:
        graphs.move(range(half), range(half, 2 * half), last + 1, longest)
