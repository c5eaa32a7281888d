"""One request of an engine that is under way, on the event loop: its tokens and answers."""

import asyncio
from collections import deque
from collections.abc import Sequence
from types import TracebackType

from dragoman_server.engine.core import Answer, NewToken, Sentence
from dragoman_server.engine.front import Front
from dragoman_server.service.errors import CallError


class Work:
    """The sentences of one request, under way. As a context manager: what is left is cancelled."""

    def __init__(self, engine: Front, sentences: Sequence[Sentence], priority: int) -> None:
        self.request: int | None = None
        """The engine's number of the request; None while it is not queued yet."""
        self.priority = priority
        self.is_left = False
        """Whether nobody waits for the answers any more."""
        self.owed_tokens = sum(len(sentence.source) + 1 for sentence in sentences)
        """Source tokens of the sentences that are not answered, end tokens included."""
        self._engine = engine
        self._sentences = self._owed = len(sentences)
        self._events: deque[NewToken | Answer | CallError] = deque()
        """What was reported and not taken yet."""
        self._waiter: asyncio.Future[None] | None = None
        """Of the task that waits for events; there is one at most."""
        self._waits_for_all = False
        """Whether that task has no use for less than all answers."""

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
        """Cancel what is not answered: nobody waits for it any more."""
        self.is_left = True  # before the request is looked at: whoever queues it does the reverse
        if self.request is not None and not self.is_answered:
            self._engine.cancel(self.request)

    @property
    def is_answered(self) -> bool:
        return not self._owed

    def push(self, event: NewToken | Answer | CallError) -> None:
        """Take what the engine reports of this request, or why it will not report any more."""
        if isinstance(event, Answer):
            self._owed -= 1
            self.owed_tokens -= event.source_tokens + 1
        self._events.append(event)
        is_enough = not self._waits_for_all or not self._owed or isinstance(event, CallError)
        if is_enough and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def event(self) -> NewToken | Answer:
        """Wait for the next token or answer. As many answers come as there are sentences."""
        if not self._events:
            await self._wait()
        event = self._events.popleft()
        if isinstance(event, CallError):
            raise event
        return event

    async def answers(self) -> list[Answer]:
        """Wait for all answers, and return them in the order of the sentences."""
        self._waits_for_all = True
        found: list[Answer] = []
        while len(found) < self._sentences:
            if isinstance(event := await self.event(), Answer):
                found.append(event)
        return sorted(found, key=lambda answer: answer.ticket.sentence)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
