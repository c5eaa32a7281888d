"""An engine whose lanes are threads of this process: for libraries, and servers of one core."""

import logging
import os
import time

from dragoman_server.bundle.reading import RunnableBundle
from dragoman_server.engine.core import Failure, Report
from dragoman_server.engine.front import Deliver, Front, LaneStatus
from dragoman_server.engine.lane import Lane
from dragoman_server.engine.lane_thread import LaneThread
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.turn import Work
from dragoman_server.engine.warm_up import warm_up
from dragoman_server.runtime.graphs import Graphs, GraphSettings

log = logging.getLogger(__name__)

_CLOSING_SECONDS = 10.0
"""Seconds that a closing engine waits for the calls that are running before it interrupts them."""


class Engine(Front):
    """Decodes requests. ``deliver`` is given a report of each turn, in the lane's own thread."""

    def __init__(self, bundle: RunnableBundle, settings: EngineSettings, deliver: Deliver) -> None:
        super().__init__(bundle.manifest, settings, deliver)
        resolved = self.resolved
        first = Graphs(
            bundle,
            GraphSettings(
                rows=resolved.rows_per_lane,
                device=settings.device,
                threads=resolved.session_threads,
                # Among several lanes, one that spins takes a core from another.
                spin=resolved.lanes == 1,
                touch_memory=settings.reserve_memory,
            ),
        )
        graphs = [first, *(first.replica() for _ in range(resolved.lanes - 1))]
        self.lanes = [Lane(each, number, bundle.shortlist) for number, each in enumerate(graphs)]
        self._stopping = False
        """Whether lanes are to end."""
        self._threads = [LaneThread(lane, self) for lane in self.lanes]

    @property
    def buffer_bytes(self) -> int:
        """Bytes of memory that is reserved for all rows: the most that they will ever take."""
        return sum(lane.graphs.buffer_bytes + lane.rows.bytes for lane in self.lanes)

    @property
    def processes(self) -> list[int]:
        """This process."""
        return [os.getpid()]

    def status(self) -> list[LaneStatus]:
        """Return how each lane is doing."""
        return [thread.status for thread in self._threads]

    def find_lost_lane(self, stall_seconds: float) -> LaneStatus | None:
        """Return a lane that is gone for good, or has not moved for so long though it has work."""
        for lane in self.status():
            if not lane.alive or (lane.busy and lane.since_heartbeat > stall_seconds):
                return lane
        return None

    def start(self) -> None:
        """Warm up at the largest shapes, so that memory does not grow later, and begin."""
        for lane in self.lanes:
            warm_up(lane, self.settings.max_encode_tokens)
        for thread in self._threads:
            thread.start()

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

        For the lane's thread, as is ``lane_ended``.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping or lane.running or self._scheduler.has_work(lane.number)
            )
            return None if self._stopping else self._work_for(lane.number)

    def may_go_on(self, work: Work) -> bool:
        """Whether there is nothing new for a lane since it was given this work."""
        return work.changes == self._changes and time.monotonic() < work.until

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
            self._changes += 1
            self._changed.notify_all()
