"""A lane in a thread of its own: takes work from the engine turn by turn, and reports each turn."""

import logging
import threading
import time
from functools import partial
from typing import Protocol

from dragoman_server.engine.core import Failure, Report
from dragoman_server.engine.front import LaneStatus
from dragoman_server.engine.lane import Lane
from dragoman_server.engine.turn import Work, take_turn

log = logging.getLogger(__name__)


class LaneHost(Protocol):
    """What a lane's thread needs of its engine."""

    def next_work(self, lane: Lane) -> Work | None:
        """Wait for work. None ends the thread."""

    def may_go_on(self, work: Work) -> bool:
        """Whether there is nothing new for a lane since it was given this work."""

    def release(self, report: Report) -> None:
        """Take back the rows of sentences that were answered."""

    def complete(self, report: Report) -> None:
        """Take the report of a turn, with its figures."""

    def lane_ended(self, lane: Lane, failure: Failure) -> None:
        """Answer what the lane still has. A fault ends the engine."""


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
                report = take_turn(self._lane, work, partial(self._host.may_go_on, work))
                self._host.release(report)
                self._host.complete(report)
                self._is_busy = False
        except Exception:
            # Nothing is known to get here; if something does, the engine ends rather than hangs.
            log.critical("lane %d died", self._lane.number, exc_info=True)
            failure = Failure.FAULT
        self._host.lane_ended(self._lane, failure)
        self._is_busy = False
