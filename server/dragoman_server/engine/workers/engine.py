"""An engine whose lanes are processes of their own, on an event loop.

The front is never waited for between two turns of a worker, nor a worker by the front: messages go
both ways when there is news. A worker that is lost loses nothing. Decoding is deterministic, so its
sentences run again in others, or in its successor, and streams go on at the next token.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Iterable
from dataclasses import replace

from dragoman_server.bundle.reading import Bundle
from dragoman_server.engine.core import Failure, Report, Ticket
from dragoman_server.engine.front import Deliver, Front, LaneStatus
from dragoman_server.engine.jobs import Job
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.workers.channel import ChannelClosedError
from dragoman_server.engine.workers.link import LinkState, WorkerLink
from dragoman_server.engine.workers.messages import READY, REFUSED, Message, unpack_reports
from dragoman_server.engine.workers.opening import Opened
from dragoman_server.engine.workers.quarantine import Quarantine
from dragoman_server.engine.workers.reruns import Reruns
from dragoman_server.engine.workers.starting import Delays, cache_of, openings_for, start_all
from dragoman_server.runtime.checks.machine import MachineCheck

log = logging.getLogger(__name__)

_SOUND_SECONDS = 1.0
"""Seconds for which a worker is ready before its end says nothing about the next one."""


class WorkerEngine(Front):
    """Decodes requests. ``deliver`` is given the reports of turns, on the event loop."""

    def __init__(self, bundle: Bundle, settings: EngineSettings, deliver: Deliver) -> None:
        super().__init__(bundle.manifest, settings, deliver)
        self._openings = openings_for(bundle, settings)
        self._links: dict[int, WorkerLink] = {}
        """The worker of each lane that has one."""
        self._opened: Opened | None = None
        self._delays = Delays()
        self._unserved_since: float | None = None
        """Since when no worker takes sentences; None while one does."""
        self._reruns = Reruns()
        self._quarantine = Quarantine(self._start_quarantine)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._is_flush_due = False
        self._deadline_timer: asyncio.TimerHandle | None = None

    @property
    def buffer_bytes(self) -> int:
        """Bytes of memory for all rows."""
        return len(self._openings) * (self._opened.buffer_bytes if self._opened else 0)

    @property
    def processes(self) -> list[int]:
        """The workers."""
        return [link.pid for link in self._all_links]

    def open(self) -> MachineCheck:
        """Start all workers, and wait until they are ready. Not to be called on the event loop.

        Returns what they found when they replayed the golden sentences. Raises ``BundleError``.
        """
        started = start_all(self._openings, cache_of(self.settings))
        self._openings = started.openings
        self._opened = started.opened[0]
        self._links = {link.lane: link for link in started.links}
        return MachineCheck(
            max(each.golden_error for each in started.opened),
            any(each.alignments_depend for each in started.opened),
        )

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to take requests, which are served on this loop."""
        self._loop = loop
        loop.call_soon_threadsafe(self._attach_all)

    def status(self) -> list[LaneStatus]:
        """Return how each lane is doing: one whose worker is being replaced is alive."""
        now = time.monotonic()
        return [
            LaneStatus(link.lane, True, link.is_busy, now - link.heard_at)
            for link in list(self._links.values())
        ]

    def find_lost_lane(self, stall_seconds: float) -> LaneStatus | None:
        """Replace workers that hang. Returns a lane where all have been gone for too long."""
        now = time.monotonic()
        for link in self._all_links:
            if link.is_busy and now - link.heard_at > stall_seconds:
                self._lose(link, "does not answer")
        if self._unserved_since is not None:
            gone = now - self._unserved_since
            if gone > stall_seconds:
                return LaneStatus(0, alive=False, busy=True, since_heartbeat=gone)
        return None

    def cancel(self, request: int) -> None:
        """Cancel a request: its sentences leave at the next step; those that wait never run."""
        super().cancel(request)
        with self._changed:
            dropped = self._quarantine.cancel(request, Failure.CANCELLED)
        self._answer((job, Failure.CANCELLED) for job in dropped)

    def close(self) -> None:
        """Stop, and answer what is not finished as stopped. Not to be called on the event loop."""
        with self._changed:
            self._is_open = False
        loop = self._loop
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._detach_all(), loop).result()
        links = self._all_links
        for link in links:
            link.end()
        stopped = self._quarantine.clear()
        stopped += [job for link in links for job in link.jobs.values()]
        for link in links:
            link.jobs.clear()
        report = Report(0)
        report.answers += [job.answer(failure=Failure.STOPPED) for job in stopped]
        self._answer_waiting(report)

    # What follows runs on the event loop.

    def _attach_all(self) -> None:
        self._loop_thread = threading.get_ident()
        for link in self._links.values():
            self._attach(link)
        with self._changed:
            self._wake()

    async def _detach_all(self) -> None:
        for link in self._all_links:
            self._detach(link)

    def _attach(self, link: WorkerLink) -> None:
        assert self._loop is not None
        self._loop.add_reader(link.fileno(), self._receive, link)

    def _detach(self, link: WorkerLink) -> None:
        assert self._loop is not None
        if link.state is not LinkState.LOST:
            self._loop.remove_reader(link.fileno())
            self._loop.remove_writer(link.fileno())

    def _wake(self) -> None:
        super()._wake()
        if self._loop is None or self._is_flush_due:
            return
        self._is_flush_due = True
        if threading.get_ident() == self._loop_thread:
            self._loop.call_soon(self._flush)
        else:
            self._loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        """Give every worker what there is for it, and answer what will never run."""
        lost: list[WorkerLink] = []
        never: list[tuple[Job, Failure]] = []
        with self._changed:
            self._is_flush_due = False
            self._scheduler.expire(time.monotonic())
            for lane in self._scheduler.lanes_with_work():
                link = self._links[lane]
                try:
                    self._give_work(link, never)
                except ChannelClosedError:
                    lost.append(link)
            never += [(self._jobs.pop(t), why) for t, why in self._scheduler.take_dropped()]
            self._set_deadline_timer()
        self._answer(never)
        for link in lost:
            self._lose(link, "has died")

    def _give_work(self, link: WorkerLink, never: list[tuple[Job, Failure]]) -> None:
        if link.state is not LinkState.READY:
            return
        while self._scheduler.has_work(link.lane):
            work = self._work_for(link.lane)
            never += work.dropped
            link.send_work(work.leaving, work.admitted)
        self._flush_later(link)

    def _flush_later(self, link: WorkerLink) -> None:
        """Send the rest of what did not fit into the socket once there is room."""
        if link.has_unsent:
            assert self._loop is not None
            self._loop.add_writer(link.fileno(), self._send_rest, link)

    def _send_rest(self, link: WorkerLink) -> None:
        try:
            link.flush()
        except ChannelClosedError:
            self._lose(link, "has died")
            return
        if not link.has_unsent:
            assert self._loop is not None
            self._loop.remove_writer(link.fileno())

    def _set_deadline_timer(self) -> None:
        """Have the next deadline noticed, whether or not a worker has news then."""
        assert self._loop is not None
        deadline = self._scheduler.next_deadline
        if self._deadline_timer is not None:
            if self._deadline_timer.when() == deadline:
                return
            self._deadline_timer.cancel()
            self._deadline_timer = None
        if deadline < math.inf:
            self._deadline_timer = self._loop.call_at(deadline, self._flush)

    def _receive(self, link: WorkerLink) -> None:
        try:
            messages = link.receive()
        except ChannelClosedError:
            self._lose(link, "has died")
            return
        for message in messages:
            self._take(link, message)
        if link is self._quarantine.link:
            self._continue_quarantine()

    def _take(self, link: WorkerLink, message: Message) -> None:
        if message[0] == READY:
            link.state = LinkState.READY
            link.started_at = time.monotonic()
            if link is not self._quarantine.link:
                log.info("worker %d is ready again", link.lane)
                with self._changed:
                    self._unserved_since = None
                    self._scheduler.open_lane(link.lane)
                    self._wake()
        elif message[0] == REFUSED:
            log.error("worker %d can't be started again: %s", link.lane, message[1])
        else:
            for report in unpack_reports(message, link.lane, link.jobs):
                report.tokens = [token for token in report.tokens if self._reruns.is_new(token)]
                for answer in report.answers:
                    del link.jobs[answer.ticket]
                    link.leaving.pop(answer.ticket, None)
                self._reruns.forget(report.answers)
                self.release(report)
                self.complete(report)

    def _lose(self, link: WorkerLink, why: str) -> None:
        """Let a worker go, and give what it had to others."""
        assert self._loop is not None
        if link.state is LinkState.LOST:
            return
        was_ready = link.state is LinkState.READY
        self._detach(link)
        jobs, link.jobs = link.jobs, {}
        self._loop.run_in_executor(None, link.kill)
        link.state = LinkState.LOST
        self.lost_workers += 1
        facts = {"worker": link.lane, "pid": link.pid, "sentences": len(jobs)}
        log.error("a worker of %s %s", self.manifest.name, why, extra={"facts": facts})
        if link is self._quarantine.link:
            self._lose_quarantined(jobs, link.leaving)
            return
        with self._changed:
            link.leaving.update(self._scheduler.close_lane(link.lane))
            del self._links[link.lane]
            if self._unserved_since is None and not self._has_ready_worker:
                self._unserved_since = time.monotonic()
            gone = [job for job in jobs.values() if job.ticket in link.leaving]
            for ticket in reversed([ticket for ticket in jobs if ticket not in link.leaving]):
                self._run_again(jobs[ticket])
            self._wake()
        self._answer((job, link.leaving[job.ticket]) for job in gone)
        was_sound = was_ready and time.monotonic() - link.started_at > _SOUND_SECONDS
        delay = self._delays.next(link.lane, was_sound)
        self._loop.call_later(delay, self._start_again, link.lane)

    def _lose_quarantined(self, jobs: dict[Ticket, Job], leaving: dict[Ticket, Failure]) -> None:
        """Run the sentence that was alone in a worker again, until it is sure to be to blame."""
        again: list[Job] = []
        for ticket, job in jobs.items():
            self._reruns.add_crash(ticket)
            if ticket in leaving or self._reruns.is_guilty(ticket):
                self._answer([(job, leaving.get(ticket, Failure.FAULT))])
            else:
                again.append(job)
        self._quarantine.lost(again)
        self._continue_quarantine()

    @property
    def _all_links(self) -> list[WorkerLink]:
        """The workers of all lanes, and the one that has a suspect."""
        return [*self._links.values(), *filter(None, [self._quarantine.link])]

    @property
    def _has_ready_worker(self) -> bool:
        return any(link.state is LinkState.READY for link in self._links.values())

    def _run_again(self, job: Job) -> None:
        """Let a sentence wait again whose worker was lost, or run alone if that happens often."""
        ticket = job.ticket
        if self._reruns.add_crash(ticket):
            self._scheduler.release([ticket])
            self.quarantined_sentences += 1
            self._quarantine.add(job)
        else:
            self._scheduler.take_back(ticket)
            self._jobs[ticket] = job
            self.rerun_sentences += 1

    def _start_again(self, lane: int) -> None:
        if self._is_open:
            self._links[lane] = link = WorkerLink.opened(self._openings[lane])
            self._attach(link)

    def _start_quarantine(self) -> WorkerLink:
        opening = self._openings[0]
        lane = len(self._openings)
        link = WorkerLink.opened(
            replace(opening, lane=lane, rows=self.settings.max_beam, cpus=frozenset())
        )
        self._attach(link)
        return link

    def _continue_quarantine(self) -> None:
        link = self._quarantine.link
        try:
            self._quarantine.go_on()
        except ChannelClosedError:
            assert link is not None
            self._lose(link, "has died")
            return
        if link and not len(self._quarantine):
            assert self._loop is not None
            self._detach(link)
            link.state = LinkState.LOST
            self._quarantine.link = None
            self._loop.run_in_executor(None, link.end)

    def _answer(self, failed: Iterable[tuple[Job, Failure]]) -> None:
        """Answer sentences that no worker will answer."""
        report = Report(0)
        report.answers += [job.answer(failure=failure) for job, failure in failed]
        if report.answers:
            self._reruns.forget(report.answers)
            self._hand_over(report)
