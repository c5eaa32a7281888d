"""Sentences that were in several crashes, each run alone in a worker that has nothing else.

The one that ends this worker too, more than once, is to blame. The others were only in its company.
"""

from collections import deque
from collections.abc import Callable, Iterable

from dragoman_server.engine.core import Failure
from dragoman_server.engine.jobs import Job
from dragoman_server.engine.workers.link import LinkState, WorkerLink


class Quarantine:
    """A queue of suspects, and the worker that exists as long as there are any."""

    def __init__(self, start: Callable[[], WorkerLink]) -> None:
        """``start`` starts the worker, and sees to it that its messages are read."""
        self._start = start
        self._waiting: deque[Job] = deque()
        self.link: WorkerLink | None = None
        """The worker, while there is one."""

    def __len__(self) -> int:
        """Sentences that wait for the worker or run in it."""
        return len(self._waiting) + (len(self.link.jobs) if self.link else 0)

    def add(self, job: Job) -> None:
        """Take in a suspect."""
        self._waiting.append(job)
        if self.link is None:
            self.link = self._start()

    def go_on(self) -> None:
        """Give the worker its next suspect, once it is ready and has none."""
        link = self.link
        if link and link.state is LinkState.READY and not link.jobs and self._waiting:
            link.send_work([], [self._waiting.popleft()])

    def lost(self, again: Iterable[Job]) -> None:
        """Take note that the worker is gone, and start another where suspects are left.

        ``again`` are those that it had, if they are to run once more.
        """
        self._waiting.extendleft(again)
        self.link = self._start() if self._waiting else None

    def cancel(self, request: int, reason: Failure) -> list[Job]:
        """Let the sentences of a request go. Returns those that will never run."""
        dropped = [job for job in self._waiting if job.ticket.request == request]
        self._waiting = deque(job for job in self._waiting if job.ticket.request != request)
        if self.link:
            running = [ticket for ticket in self.link.jobs if ticket.request == request]
            self.link.send_work([(ticket, reason) for ticket in running], [])
        return dropped

    def clear(self) -> list[Job]:
        """Return everything that is here, which is here no more."""
        jobs = [*self._waiting, *(self.link.jobs.values() if self.link else ())]
        self._waiting.clear()
        if self.link:
            self.link.jobs.clear()
        return jobs
