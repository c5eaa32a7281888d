"""Between the event loop and an engine: requests go in, events come back.

Everything here runs on the event loop but what says otherwise: lanes that are threads call
``Dispatcher._deliver``, and a large request is queued in a thread.
"""

import asyncio
import math
import time
from collections.abc import Callable, Sequence

from dragoman_server.bundle.reading import Bundle
from dragoman_server.engine.core import Answer, NewToken, Options, Report, Sentence
from dragoman_server.engine.engine import Engine
from dragoman_server.engine.front import EngineClosedError
from dragoman_server.engine.scheduler import QueueFullError
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.workers.engine import WorkerEngine
from dragoman_server.runtime.checks.machine import MachineCheck, check_machine
from dragoman_server.service.admission import BULK, INTERACTIVE, Admission
from dragoman_server.service.errors import CallError, UnavailableError, engine_stopped
from dragoman_server.service.work import Work

_MAX_INLINE_SENTENCES = 256
"""More sentences than these are checked and queued in a thread, so that the event loop goes on."""
_HELD_SECONDS = 0.1
"""Seconds for which reports without news may wait: to wake the event loop at every step costs more
than what it then does."""

Observe = Callable[[Report], None]
"""Takes the reports of an engine, on the event loop."""


class Dispatcher:
    """Owns a model's engine."""

    def __init__(self, bundle: Bundle, settings: EngineSettings) -> None:
        self._bundle = bundle
        self.engine: Engine | WorkerEngine = (
            WorkerEngine(bundle, settings, self._receive_one)
            if settings.resolved.workers
            else Engine(bundle, settings, self._deliver)
        )
        self.admission = Admission(self.engine, self._bulk_tokens)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._observe: Observe | None = None
        self._held: list[list[Report]] = [[] for _ in range(self.engine.resolved.lanes)]
        """Reports of each lane that nobody waits for."""
        self._handed_over = [0.0] * self.engine.resolved.lanes
        """When each lane last handed its reports over."""
        self._works: dict[int, Work] = {}
        """What is under way, by the engine's number of the request."""
        self._room = asyncio.Event()
        self._failure: Callable[[], CallError] | None = None

    def open(self) -> MachineCheck:
        """Load the model, and check what it computes here. Raises ``BundleError``.

        Takes a while, so it is not to be called on the loop.
        """
        if isinstance(self.engine, WorkerEngine):
            return self.engine.open()
        return check_machine(self._bundle, self.engine.lanes[0].graphs)

    def start(self, loop: asyncio.AbstractEventLoop, observe: Observe) -> None:
        """Warm up and begin. Takes a while, so it is not to be called on the loop."""
        self._loop = loop
        self._observe = observe
        if isinstance(self.engine, WorkerEngine):
            self.engine.start(loop)
        else:
            self.engine.start()

    def check_admission(self, deadline: float) -> None:
        """Refuse what would be refused anyway, before any work is done for it."""
        self._check_failure()
        self.admission.check_room()
        self.admission.check_deadline(deadline, INTERACTIVE, longest=1)

    async def submit(
        self,
        sentences: Sequence[Sentence],
        options: Options,
        *,
        deadline: float = math.inf,
        flow: int | None = None,
        priority: int = INTERACTIVE,
        stream: bool = False,
    ) -> Work:
        """Queue a request. ``deadline`` is a moment of ``time.monotonic()``.

        Raises ``SentenceError`` for what the model can't take, else a ``CallError``.
        """
        self._check_failure()
        longest = max((len(sentence.source) + 1 for sentence in sentences), default=0)
        self.admission.check_deadline(deadline, priority, longest)
        work = Work(self.engine, sentences, priority)

        def queue() -> None:
            """Queue the request, in any thread."""
            self.engine.submit(
                sentences,
                options,
                flow=flow,
                priority=priority,
                deadline=deadline,
                stream=stream,
                queued=lambda request: self._begin(work, request),
            )
            if work.is_left:  # while this was going on
                work.leave()

        try:
            if len(sentences) > _MAX_INLINE_SENTENCES:
                await _in_thread(queue, work)
                self._check_failure()
            else:
                queue()
        except QueueFullError:
            raise self.admission.overloaded() from None
        except EngineClosedError:
            raise engine_stopped() from None
        return work

    async def wait_for_room(self) -> None:
        """Wait until something was answered, so that a full queue may have room again."""
        self._check_failure()
        self._room.clear()
        await self._room.wait()

    def fail(self, why: Callable[[], UnavailableError]) -> None:
        """Give up the engine: whoever waits for it is told, and no one else may come."""
        self._failure = why
        for work in list(self._works.values()):
            work.push(why())
        self._works.clear()
        self._room.set()

    def _check_failure(self) -> None:
        if self._failure is not None:
            raise self._failure()

    def _bulk_tokens(self) -> int:
        works = list(self._works.values())  # which threads add to
        return sum(work.owed_tokens for work in works if work.priority == BULK)

    def _begin(self, work: Work, request: int) -> None:
        """Take note of a request, in the thread that queues it, before any of its answers."""
        work.request = request
        self._works[request] = work

    def _deliver(self, report: Report) -> None:
        """Take a report, in a lane's thread.

        What a lane reports last has answers, so nothing is held for ever.
        """
        held = self._held[report.lane]
        held.append(report)
        now = time.monotonic()
        if not report.has_news and now < self._handed_over[report.lane] + _HELD_SECONDS:
            return
        self._held[report.lane] = []
        self._handed_over[report.lane] = now
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._receive, held)
        except RuntimeError:
            if not self._loop.is_closed():  # there is no one left to tell
                raise

    def _receive_one(self, report: Report) -> None:
        self._receive((report,))

    def _receive(self, reports: Sequence[Report]) -> None:
        assert self._observe is not None
        for report in reports:
            events: list[NewToken | Answer] = [*report.tokens, *report.answers]
            for event in events:
                if work := self._works.get(event.ticket.request):
                    work.push(event)
                    if work.is_answered:
                        del self._works[event.ticket.request]
            if report.answers:
                self._room.set()
            self._observe(report)


async def _in_thread(queue: Callable[[], None], work: Work) -> None:
    """Queue in a thread. Where the caller is cancelled meanwhile, so is what is queued."""
    try:
        await asyncio.to_thread(queue)
    except asyncio.CancelledError:
        work.leave()
        raise
