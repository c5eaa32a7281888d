"""Requests of an engine on behalf of one call, all with its deadline and in its turn."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dragoman_server.engine.core import Answer, Options, Sentence
from dragoman_server.service.admission import INTERACTIVE
from dragoman_server.service.dispatch import Dispatcher
from dragoman_server.service.errors import OverloadedError
from dragoman_server.service.work import Work

T = TypeVar("T")


@dataclass(frozen=True)
class Queueing:
    """How the engine is to treat requests among those of others."""

    priority: int = INTERACTIVE
    flow: int | None = None
    """Requests with the same flow take turns as one; None: each request has a flow of its own."""


ALONE = Queueing()


@dataclass(frozen=True)
class EngineCalls:
    """The way of one call to the engine of a model."""

    dispatcher: Dispatcher
    deadline: float
    """When the call has to be over, as a moment of ``time.monotonic()``."""
    queueing: Queueing

    async def submit(
        self, sentences: Sequence[Sentence], options: Options, *, stream: bool = False
    ) -> Work:
        """Queue a request, as ``Dispatcher.submit`` does."""
        return await self.dispatcher.submit(
            sentences,
            options,
            deadline=self.deadline,
            priority=self.queueing.priority,
            flow=self.queueing.flow,
            stream=stream,
        )

    async def answers(self, sentences: Sequence[Sentence], options: Options) -> list[Answer]:
        """Queue a request, and wait for its answers."""
        with await self.submit(sentences, options) as work:
            return await work.answers()

    async def until_there_is_room(self, run: Callable[[], Awaitable[T]]) -> T:
        """Run something for a call that was admitted: it is not refused, but waits for room."""
        while True:
            try:
                return await run()
            except OverloadedError:
                await self.dispatcher.wait_for_room()
