"""Between the event loop and an engine's threads: requests go in, events come back.

Everything here runs on the event loop but ``Dispatcher._deliver``, which the lanes call.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType

from dragoman_server.bundle import Bundle
from dragoman_server.engine.core import Answer, NewToken, Options, Report, Sentence
from dragoman_server.engine.engine import Engine, EngineClosedError
from dragoman_server.engine.scheduler import QueueFullError
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.service.backlog import Backlog
from dragoman_server.service.errors import (
    CallError,
    ExpiredError,
    OverloadedError,
    UnavailableError,
)

INTERACTIVE, BULK = 1, 0
"""Priorities: for the first, someone waits."""
_RETRY_SECONDS = (0.1, 30.0)
"""Least and most that a refused client is told to wait."""

Observe = Callable[[Report], None]


class Work:
    """The sentences of one request, under way. As a context manager: what is left is cancelled."""

    def __init__(self, engine: Engine, sentences: int) -> None:
        self.request = -1
        self._engine = engine
        self._sentences = sentences
        self._owed = sentences
        self._events: asyncio.Queue[NewToken | Answer | CallError] = asyncio.Queue()

    def __enter__(self) -> "Work":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.is_answered:
            self._engine.cancel(self.request)

    @property
    def is_answered(self) -> bool:
        return not self._owed

    def push(self, event: NewToken | Answer | CallError) -> None:
        if isinstance(event, Answer):
            self._owed -= 1
        self._events.put_nowait(event)

    async def events(self) -> AsyncIterator[NewToken | Answer]:
        """Tokens and answers as they come, until every sentence is answered."""
        answered = 0
        while answered < self._sentences:
            event = await self._events.get()
            if isinstance(event, CallError):
                raise event
            answered += isinstance(event, Answer)
            yield event

    async def answers(self) -> list[Answer]:
        """All of them, in the order of the sentences."""
        found = [event async for event in self.events() if isinstance(event, Answer)]
        return sorted(found, key=lambda answer: answer.ticket.sentence)


class Dispatcher:
    """Owns a model's engine."""

    def __init__(self, bundle: Bundle, settings: EngineSettings, observe: Observe) -> None:
        self.engine = Engine(bundle, settings, self._deliver)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._observe = observe
        self._works: dict[int, Work] = {}
        self._backlog = Backlog()
        self._room = asyncio.Event()
        self._failed = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Warm up and begin; takes a while, so not on the loop."""
        self._loop = loop
        self.engine.start()

    def submit(
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
        self._check_deadline(deadline)
        work = Work(self.engine, len(sentences))
        try:
            work.request = self.engine.submit(
                sentences,
                options,
                flow=flow,
                priority=priority,
                deadline=deadline,
                stream=stream,
            )
        except QueueFullError:
            raise OverloadedError("the queue is full", self.retry_seconds()) from None
        except EngineClosedError:
            raise _stopped() from None
        self._works[work.request] = work  # reports are taken on this loop, so none came before
        return work

    async def wait_for_room(self) -> None:
        """Until something was answered, so that a full queue may have room again."""
        self._room.clear()
        await self._room.wait()

    def expected_wait(self) -> float | None:
        """Seconds that a new request would wait; None where that is not known."""
        engine = self.engine
        if not engine.waiting_tokens:
            return 0.0
        return self._backlog.wait(engine.waiting_tokens, engine.resolved.replicas)

    def retry_seconds(self) -> float:
        least, most = _RETRY_SECONDS
        wait = self.expected_wait()
        return 1.0 if wait is None else min(most, max(least, wait))

    def fail(self) -> None:
        """The engine is lost: whoever waits for it is told, and no one else may come."""
        self._failed = True
        for work in self._works.values():
            work.push(_stopped())
        self._works.clear()
        self._room.set()

    def _check_deadline(self, deadline: float) -> None:
        if self._failed:
            raise _stopped()
        left = deadline - time.monotonic()
        if left <= 0:
            raise ExpiredError("the deadline has passed")
        wait = self.expected_wait()
        if wait is not None and wait > left:
            raise ExpiredError(
                "the deadline can't be met: the queue is longer", reason="DEADLINE_UNREACHABLE"
            )

    def _deliver(self, report: Report) -> None:
        """In a lane's thread."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._receive, report)
        except RuntimeError:
            if not self._loop.is_closed():  # there is no one left to tell
                raise

    def _receive(self, report: Report) -> None:
        self._backlog.add(time.monotonic(), report.source_tokens, report.turn_seconds)
        for token in report.tokens:
            if work := self._works.get(token.ticket.request):
                work.push(token)
        for answer in report.answers:
            if work := self._works.get(answer.ticket.request):
                work.push(answer)
                if work.is_answered:
                    del self._works[work.request]
        if report.answers:
            self._room.set()
        self._observe(report)


def _stopped() -> UnavailableError:
    return UnavailableError("the model's engine has stopped", 1.0, reason="ENGINE_STOPPED")
