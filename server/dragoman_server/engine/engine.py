"""The engine: lanes in threads of their own, fed by one scheduler.

    submit → the scheduler's queue → a lane's turn: leave, admit, encode, step → one report a turn

A sentence's answer does not depend on what else runs, when it came, or which row it got.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from dragoman_server.bundle.reading import RunnableBundle
from dragoman_server.engine.core import GREEDY, Failure, Options, Report, Sentence, Ticket, Timing
from dragoman_server.engine.jobs import Job, JobMaker, SentenceError
from dragoman_server.engine.lane import Lane
from dragoman_server.engine.lane_thread import LaneStatus, LaneThread, Work
from dragoman_server.engine.scheduler import Need, Scheduler
from dragoman_server.engine.scheduler_settings import SchedulerSettings
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.speed import Speed
from dragoman_server.engine.warm_up import warm_up
from dragoman_server.runtime.graphs import Graphs, GraphSettings

log = logging.getLogger(__name__)

Deliver = Callable[[Report], None]
"""Takes the reports of all lanes, each in the lane's own thread; the lane waits for it."""

_CLOSING_SECONDS = 10.0
"""Seconds that a closing engine waits for the calls that are running before it interrupts them."""


class EngineClosedError(Exception):
    """The engine takes no more requests."""

    def __init__(self) -> None:
        super().__init__("the engine is closed")


class Engine:
    """Decodes requests. ``deliver`` is given a report of each turn of each lane."""

    def __init__(self, bundle: RunnableBundle, settings: EngineSettings, deliver: Deliver) -> None:
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
                spin=resolved.lanes == 1,
            ),
        )
        graphs = [first, *(first.replica() for _ in range(resolved.lanes - 1))]
        self.lanes = [Lane(each, number, bundle.shortlist) for number, each in enumerate(graphs)]
        self._maker = JobMaker(bundle.manifest, settings.max_beam)
        self._deliver = deliver
        self._scheduler = Scheduler(
            SchedulerSettings(
                lanes=resolved.lanes,
                rows=resolved.rows_per_lane,
                reserve=settings.max_beam,
                queue=settings,
            )
        )
        self._jobs: dict[Ticket, Job] = {}
        """Jobs of the sentences that wait."""
        self._owed = 0
        """Sentences whose answer has not been delivered."""
        self._requests = 0
        """Requests so far, which is also the number of the next."""
        self.speed = Speed()
        """How fast the lanes work, for those who have to know how long a queue takes."""
        self._changed = threading.Condition()
        """Guards what follows and the scheduler; lanes and those who drain wait for it."""
        self._is_open = True
        """Whether requests are taken."""
        self._stopping = False
        """Whether lanes are to end."""
        self._threads = [LaneThread(lane, self) for lane in self.lanes]

    @property
    def buffer_bytes(self) -> int:
        """Bytes of memory for all rows, taken at the start."""
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
        """Source tokens in the queue."""
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
        """Rows that sentences hold, in all lanes."""
        return self._scheduler.used_rows

    def status(self) -> list[LaneStatus]:
        """Return how each lane is doing."""
        return [thread.status for thread in self._threads]

    def start(self) -> None:
        """Warm up at the largest shapes, so that memory does not grow later, and begin."""
        for lane in self.lanes:
            warm_up(lane, self.settings.max_encode_tokens)
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
        """Queue a request. Returns its number, which is in the tickets of its answers.

        ``deadline`` is a moment of ``time.monotonic()``. Flows are served round robin; without a
        ``flow``, the request is its own. With ``stream``, tokens are delivered as they come; a
        beam has none before its end. ``queued`` is told the number before any answer can come.
        Raises ``SentenceError`` for what the model can't take, ``QueueFullError``, and
        ``EngineClosedError``.
        """
        if not sentences:
            raise SentenceError("sentences", "are none: a request has at least one")
        jobs = [self._maker.job(sentence, options, stream=stream) for sentence in sentences]
        needs = [Need(job.decoding.beam, job.source_length) for job in jobs]
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
        """Cancel a request: its sentences leave at the next step; those that wait never run."""
        with self._changed:
            self._scheduler.cancel(request)
            self._changed.notify_all()

    def drain(self, seconds: float) -> bool:
        """Take no more requests, and wait for the answers owed. Returns whether all have come."""
        with self._changed:
            self._is_open = False
            return self._changed.wait_for(lambda: not self._owed, timeout=seconds)

    def close(self) -> None:
        """Stop, and answer what is not finished as stopped."""
        self._stop()
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
            thread.join(until)
        return not any(thread.is_alive for thread in self._threads)

    def next_work(self, lane: Lane) -> Work | None:
        """Wait for something that this lane has to do; None when the engine stops.

        For the lane's thread, as are the three below.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping or lane.running or self._scheduler.has_work(lane.number)
            )
            if self._stopping:
                return None
            now = time.monotonic()
            assigned = self._scheduler.assign(lane.number, now, self.speed.pace)
            return Work(
                began=now,
                leaving=assigned.leaving,
                dropped=[(self._jobs.pop(ticket), why) for ticket, why in assigned.dropped],
                admitted=[self._jobs.pop(ticket) for ticket in assigned.admitted],
            )

    def release(self, report: Report) -> None:
        """Take back the rows of sentences that were answered, and learn how long they took."""
        if report.answers:
            with self._changed:
                self._scheduler.release(answer.ticket for answer in report.answers)
                for answer in report.answers:
                    if not answer.failure:
                        held = answer.timing.finished - answer.timing.admitted
                        self.speed.add_sentence(answer.source_tokens + 1, held)
                self._changed.notify_all()

    def complete(self, report: Report) -> None:
        """Deliver the report of a turn."""
        with self._changed:
            self.speed.add_turn(time.monotonic(), report.source_tokens, report.turn_seconds)
        self._hand_over(report)

    def lane_ended(self, lane: Lane, failure: Failure) -> None:
        """Answer everything that this lane has, and what no lane will take any more."""
        if failure is Failure.FAULT:
            self._stop()
        report = Report(lane.number)
        lane.fail_all(failure, report)
        self._answer_waiting(report)

    def _stop(self) -> None:
        """Take no more requests, and end all lanes."""
        with self._changed:
            self._is_open = False
            self._stopping = True
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

    def _answer_waiting(self, report: Report) -> None:
        """Answer what waits as stopped, and deliver the report if it has any answers."""
        with self._changed:
            while self._jobs:
                _, job = self._jobs.popitem()
                self._scheduler.cancel(job.ticket.request)
                report.answers.append(job.answer(failure=Failure.STOPPED))
        if report.answers:
            self.release(report)
            self._hand_over(report)
