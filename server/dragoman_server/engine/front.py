"""The front of an engine, whoever drives its lanes: what is asked of it, what waits, what is owed.

    submit → the scheduler's queue → a lane's turn: leave, admit, encode, step → one report a turn

A sentence's answer does not depend on what else runs, when it came, or which row it got.
"""

import logging
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman_server.bundle.manifest import Manifest
from dragoman_server.engine.core import GREEDY, Failure, Options, Report, Sentence, Ticket
from dragoman_server.engine.jobs import Job, JobMaker, SentenceError
from dragoman_server.engine.queue_entry import Need
from dragoman_server.engine.scheduler import Scheduler
from dragoman_server.engine.scheduler_settings import SchedulerSettings
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.speed import Speed
from dragoman_server.engine.turn import MAX_SECONDS, Work
from dragoman_server.runtime.memory import resident_bytes

log = logging.getLogger(__name__)

Deliver = Callable[[Report], None]
"""Takes the report of each turn of each lane. Whoever drives the lane waits for it."""


class EngineClosedError(Exception):
    """The engine takes no more requests."""

    def __init__(self) -> None:
        super().__init__("the engine is closed")


@dataclass(frozen=True)
class LaneStatus:
    """How a lane is doing."""

    lane: int
    """Number of the lane."""
    alive: bool
    """What drives the lane runs."""
    busy: bool
    """The lane is in a turn; one that waits for work is not."""
    since_heartbeat: float
    """Seconds since the lane's newest turn began: a busy lane far behind is stalled."""


class Front(ABC):
    """Takes requests and hands out work. Who drives the lanes is up to its subclasses."""

    def __init__(self, manifest: Manifest, settings: EngineSettings, deliver: Deliver) -> None:
        self.manifest = manifest
        self.settings = settings
        self.resolved = settings.resolved
        self.speed = Speed()
        """How fast the lanes work, for those who have to know how long a queue takes."""
        self._maker = JobMaker(manifest, settings.max_beam)
        self._deliver = deliver
        self._scheduler = Scheduler(
            SchedulerSettings(
                lanes=self.resolved.lanes,
                rows=self.resolved.rows_per_lane,
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
        self._changes = 0
        """How often lanes were given something new to look at."""
        self._changed = threading.Condition()
        """Guards all of this and the scheduler; those who drain wait for it."""
        self._is_open = True
        """Whether requests are taken."""
        self.lost_workers = 0
        """Processes of lanes that died or hung."""
        self.rerun_sentences = 0
        """Sentences that ran again because their worker was lost."""
        self.quarantined_sentences = 0
        """Sentences that had to run alone, because several workers were lost with them."""

    @property
    @abstractmethod
    def buffer_bytes(self) -> int:
        """Bytes of memory that is reserved for all rows: the most that they will ever take."""

    @property
    @abstractmethod
    def processes(self) -> list[int]:
        """The processes that the lanes run in."""

    @property
    def resident_bytes(self) -> int:
        """Bytes that these processes have in memory now, with weights and all."""
        return resident_bytes(self.processes)

    @abstractmethod
    def status(self) -> list[LaneStatus]:
        """Return how each lane is doing."""

    @abstractmethod
    def find_lost_lane(self, stall_seconds: float) -> LaneStatus | None:
        """Return a lane that is gone for good, or has not moved for so long though it has work."""

    @abstractmethod
    def close(self) -> None:
        """Stop, and answer what is not finished as stopped."""

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
                job.ticket = Ticket(request, number)
                job.timing.submitted = now
                self._jobs[job.ticket] = job
            queued(request)
            self._wake()
        return request

    def cancel(self, request: int) -> None:
        """Cancel a request: its sentences leave at the next step; those that wait never run."""
        with self._changed:
            self._scheduler.cancel(request)
            self._wake()

    def drain(self, seconds: float) -> bool:
        """Take no more requests, and wait for the answers owed. Returns whether all have come."""
        with self._changed:
            self._is_open = False
            return self._changed.wait_for(lambda: not self._owed, timeout=seconds)

    def release(self, report: Report) -> None:
        """Take back the rows of sentences that were answered, and learn how long they took."""
        if report.answers:
            with self._changed:
                self._scheduler.release(answer.ticket for answer in report.answers)
                for answer in report.answers:
                    if not answer.failure:
                        held = answer.timing.finished - answer.timing.admitted
                        self.speed.add_sentence(answer.source_tokens + 1, held)
                if self._scheduler.waiting:  # for the rows that are free now
                    self._wake()

    def complete(self, report: Report) -> None:
        """Deliver the report of a turn."""
        with self._changed:
            self.speed.add_turn(time.monotonic(), report.source_tokens, report.turn_seconds)
        self._hand_over(report)

    def _wake(self) -> None:
        """Tell whoever drives the lanes, and those who drain, that something has changed.

        Called with the lock held.
        """
        self._changes += 1
        self._changed.notify_all()

    def _work_for(self, lane: int) -> Work:
        """Decide what a lane does next. Called with the lock held."""
        now = time.monotonic()
        assigned = self._scheduler.assign(lane, now, self.speed.pace)
        return Work(
            began=now,
            leaving=assigned.leaving,
            dropped=[(self._jobs.pop(ticket), why) for ticket, why in assigned.dropped],
            admitted=[self._jobs.pop(ticket) for ticket in assigned.admitted],
            until=min(now + MAX_SECONDS, self._scheduler.next_deadline),
            changes=self._changes,
        )

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
