"""A lane in a thread of its own: takes work from the engine turn by turn, and reports each turn."""

import logging
import threading
import time
from dataclasses import dataclass
from typing import Protocol

from dragoman_server.engine.core import Failure, Report, Ticket
from dragoman_server.engine.jobs import Job
from dragoman_server.engine.lane import Lane

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Work:
    """What a lane does in one turn."""

    began: float
    """Moment of ``time.monotonic()`` at which the turn was decided."""
    leaving: list[tuple[Ticket, Failure]]
    """Running sentences that leave before their end."""
    dropped: list[tuple[Job, Failure]]
    """Sentences that will never run."""
    admitted: list[Job]
    """Sentences that begin."""


class LaneHost(Protocol):
    """What a lane's thread needs of its engine."""

    def next_work(self, lane: Lane) -> Work | None:
        """Wait for work. None ends the thread."""

    def release(self, report: Report) -> None:
        """Take back the rows of sentences that were answered."""

    def complete(self, report: Report) -> None:
        """Take the report of a turn, with its figures."""

    def lane_ended(self, lane: Lane, failure: Failure) -> None:
        """Answer what the lane still has. A fault ends the engine."""


@dataclass(frozen=True)
class LaneStatus:
    """How a lane is doing."""

    lane: int
    """Number of the lane."""
    alive: bool
    """The lane's thread runs."""
    busy: bool
    """The lane is in a turn; one that waits for work is not."""
    since_heartbeat: float
    """Seconds since the lane's newest turn began: a busy lane far behind is stalled."""


class LaneThread:
    """The thread of a lane. Between two turns it waits for its host."""

    def __init__(self, lane: Lane, host: LaneHost) -> None:
        self._lane = lane
        self._host = host
        self._is_busy = False
        self._heartbeat = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"lane-{lane.number}", daemon=True)

    @property
    def status(self) -> LaneStatus:
        """How the lane is doing."""
        since = time.monotonic() - self._heartbeat
        return LaneStatus(self._lane.number, self.is_alive, self._is_busy, since)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to take work."""
        self._thread.start()

    def join(self, until: float) -> None:
        """Wait for the thread to end, until a moment of ``time.monotonic()``."""
        if self.is_alive:
            self._thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        failure = Failure.STOPPED
        try:
            while (work := self._host.next_work(self._lane)) is not None:
                self._heartbeat = work.began
                self._is_busy = True
                self._take_turn(work)
                self._is_busy = False
        except Exception:
            # Nothing is known to get here; if something does, the engine ends rather than hangs.
            log.critical("lane %d died", self._lane.number, exc_info=True)
            failure = Failure.FAULT
        self._host.lane_ended(self._lane, failure)
        self._is_busy = False

    def _take_turn(self, work: Work) -> None:
        lane, report = self._lane, Report(self._lane.number)
        report.answers += [job.answer(failure=failure) for job, failure in work.dropped]
        graph_seconds = lane.graphs.seconds
        self._work(work, report)
        self._host.release(report)
        report.graph_seconds = lane.graphs.seconds - graph_seconds
        report.turn_seconds = time.monotonic() - work.began
        self._host.complete(report)

    def _work(self, work: Work, report: Report) -> None:
        lane = self._lane
        try:
            lane.leave(work.leaving, report)
            if work.admitted:
                lane.admit(work.admitted, report)
            lane.step(report)
        except Exception:
            log.exception("a step of lane %d failed, with %d sentences", lane.number, lane.running)
            report.faults += 1
            lane.fail_all(Failure.FAULT, report)
            answered = {answer.ticket for answer in report.answers}
            report.answers += [
                job.answer(failure=Failure.FAULT)
                for job in work.admitted
                if job.ticket not in answered
            ]
