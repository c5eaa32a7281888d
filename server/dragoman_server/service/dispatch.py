"""Between the event loop and an engine's threads: requests go in, events come back.

Everything here runs on the event loop but what says otherwise: lanes call ``Dispatcher._deliver``,
and a large request is queued in a thread.
"""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from dragoman_server.bundle.reading import Bundle
from dragoman_server.engine.core import Answer, NewToken, Options, Report, Sentence
from dragoman_server.engine.engine import Engine, EngineClosedError
from dragoman_server.engine.scheduler import QueueFullError
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.service.errors import (
    CallError,
    ExpiredError,
    OverloadedError,
    UnavailableError,
    engine_stopped,
)

INTERACTIVE, BULK = 1, 0
"""Priorities: for the first, someone waits."""
_RETRY_SECONDS = (0.1, 30.0)
"""Least and most that a refused client is told to wait."""
_INLINE_SENTENCES = 256
"""More are checked and queued in a thread, so that the event loop goes on."""
_WAIT_MARGIN = 1.25
"""Queues move unevenly: of those whose wait is just short enough, many would expire in them."""
_HELD_SECONDS = 0.1
"""For which reports without news may wait: to wake the event loop at every step costs more than
what it then does."""

Observe = Callable[[Report], None]


class Work:
    """The sentences of one request, under way. As a context manager: what is left is cancelled."""

    def __init__(self, engine: Engine, sentences: Sequence[Sentence], priority: int) -> None:
        self.request: int | None = None
        """None while it is not queued yet."""
        self.priority = priority
        self.is_left = False
        """Nobody waits for it any more."""
        self.owed_tokens = sum(len(sentence.source) + 1 for sentence in sentences)
        """Of sources that are not answered."""
        self._engine = engine
        self._sentences = self._owed = len(sentences)
        self._events: asyncio.Queue[NewToken | Answer | CallError] = asyncio.Queue()

    def __enter__(self) -> "Work":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Nobody waits for it any more: what is not answered is cancelled."""
        self.is_left = True  # before the request is looked at: whoever queues it does the reverse
        if self.request is not None and not self.is_answered:
            self._engine.cancel(self.request)

    @property
    def is_answered(self) -> bool:
        return not self._owed

    def push(self, event: NewToken | Answer | CallError) -> None:
        if isinstance(event, Answer):
            self._owed -= 1
            self.owed_tokens -= event.source_tokens + 1
        self._events.put_nowait(event)

    async def event(self) -> NewToken | Answer:
        """The next token or answer. As many answers come as there are sentences."""
        event = await self._events.get()
        if isinstance(event, CallError):
            raise event
        return event

    async def answers(self) -> list[Answer]:
        """All of them, in the order of the sentences."""
        found: list[Answer] = []
        while len(found) < self._sentences:
            if isinstance(event := await self.event(), Answer):
                found.append(event)
        return sorted(found, key=lambda answer: answer.ticket.sentence)


class Dispatcher:
    """Owns a model's engine."""

    def __init__(self, bundle: Bundle, settings: EngineSettings) -> None:
        self.engine = Engine(bundle, settings, self._deliver)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._observe: Observe | None = None
        self._held: list[list[Report]] = [[] for _ in self.engine.lanes]
        """Of each lane, reports that nobody waits for."""
        self._handed_over = [0.0] * len(self.engine.lanes)
        """When each lane last did."""
        self._works: dict[int, Work] = {}
        self._room = asyncio.Event()
        self._failure: Callable[[], CallError] | None = None

    def start(self, loop: asyncio.AbstractEventLoop, observe: Observe) -> None:
        """Warm up and begin; takes a while, so not on the loop."""
        self._loop = loop
        self._observe = observe
        self.engine.start()

    def check_admission(self, deadline: float) -> None:
        """Refuse what would be refused anyway, before any work is done for it."""
        self._check_failure()
        if self.engine.is_full:
            raise self._overloaded()
        self._check_deadline(deadline, INTERACTIVE, longest=1)

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
        self._check_deadline(deadline, priority, longest)
        work = Work(self.engine, sentences, priority)

        def queue() -> None:
            """In any thread."""
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
            if len(sentences) > _INLINE_SENTENCES:
                await _in_thread(queue, work)
                self._check_failure()
            else:
                queue()
        except QueueFullError:
            raise self._overloaded() from None
        except EngineClosedError:
            raise engine_stopped() from None
        return work

    async def wait_for_room(self) -> None:
        """Until something was answered, so that a full queue may have room again."""
        self._check_failure()
        self._room.clear()
        await self._room.wait()

    def expected_wait(self, priority: int) -> float | None:
        """Seconds that a new request would wait at least; None where that is not known."""
        engine = self.engine
        tokens = engine.waiting_tokens
        if tokens and priority != BULK:  # it goes before what bulk streams have waiting
            bulk = [work for work in list(self._works.values()) if work.priority == BULK]
            tokens = max(0, tokens - sum(work.owed_tokens for work in bulk))
        return engine.speed.wait(tokens, engine.resolved.lanes) if tokens else 0.0

    def retry_seconds(self) -> float:
        """When to come back: all that waits now has been read by then."""
        least, most = _RETRY_SECONDS
        wait = self.expected_wait(BULK)
        return 1.0 if wait is None else min(most, max(least, wait))

    def _overloaded(self) -> OverloadedError:
        return OverloadedError("the queue is full", self.retry_seconds())

    def fail(self, why: Callable[[], UnavailableError]) -> None:
        """The engine is lost: whoever waits for it is told, and no one else may come."""
        self._failure = why
        for work in list(self._works.values()):
            work.push(why())
        self._works.clear()
        self._room.set()

    def _check_failure(self) -> None:
        if self._failure is not None:
            raise self._failure()

    def _check_deadline(self, deadline: float, priority: int, longest: int) -> None:
        """``longest`` is of the request's sentences, in tokens."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise ExpiredError("the deadline has passed")
        wait = self.expected_wait(priority)
        # Where nothing waits, it is taken: what it would take is known from fuller times only.
        if wait and _WAIT_MARGIN * wait + self.engine.speed.pace * longest > left:
            raise ExpiredError(
                "the deadline can't be met: the queue is longer", reason="DEADLINE_UNREACHABLE"
            )

    def _begin(self, work: Work, request: int) -> None:
        """In the thread that queues; none of its answers has been delivered."""
        work.request = request
        self._works[request] = work

    def _deliver(self, report: Report) -> None:
        """In a lane's thread. What a lane reports last has answers, so nothing is held for ever."""
        held = self._held[report.lane]
        held.append(report)
        now = time.monotonic()
        has_news = report.tokens or report.answers or report.faults
        if not has_news and now < self._handed_over[report.lane] + _HELD_SECONDS:
            return
        self._held[report.lane] = []
        self._handed_over[report.lane] = now
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._receive, held)
        except RuntimeError:
            if not self._loop.is_closed():  # there is no one left to tell
                raise

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
    """Where the caller is cancelled meanwhile, what is queued is cancelled too."""
    try:
        await asyncio.to_thread(queue)
    except asyncio.CancelledError:
        work.leave()
        raise
