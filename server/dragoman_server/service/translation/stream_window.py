"""The sentences of a stream: translated ahead of what was sent by a window, given in order.

They go to the engine in halves of the window, the next half when the one before begins to be sent:
a client that reads slowly holds back the engine, and not the network alone.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from dragoman_server.engine.core import Answer, NewToken
from dragoman_server.service.errors import OverloadedError
from dragoman_server.service.work import Work

S = TypeVar("S")


class StreamWindow(Generic[S]):
    """Sentences under way. As a context manager: what is left is cancelled at the end."""

    def __init__(
        self,
        sentences: Sequence[S],
        window: int,
        *,
        submit: Callable[[Sequence[S]], Awaitable[Work]],
        wait_for_room: Callable[[], Awaitable[None]],
    ) -> None:
        self._size = size = (window + 1) // 2
        self._halves = [sentences[at : at + size] for at in range(0, len(sentences), size)]
        self._submit = submit
        self._wait_for_room = wait_for_room
        self._reached = -1
        self._submitted: list[_InOrder] = []

    def __enter__(self) -> "StreamWindow[S]":
        return self

    def __exit__(self, *raised: object) -> None:
        for half in self._submitted:
            half.work.leave()

    async def next(self, sentence: int) -> NewToken | Answer:
        """Wait for a sentence's next token, and at last its answer."""
        half, within = divmod(sentence, self._size)
        if sentence > self._reached:
            self._reached = sentence
            await self._keep_ahead(half)
        return await self._submitted[half].next(within)

    async def _keep_ahead(self, half: int) -> None:
        while len(self._submitted) < min(half + 2, len(self._halves)):
            try:
                work = await self._submit(self._halves[len(self._submitted)])
            except OverloadedError:
                if not self._submitted:
                    raise  # nothing was sent yet, so it can be refused
                if half < len(self._submitted):
                    return  # there is something to send; once more with the next sentence
                await self._wait_for_room()
            else:
                self._submitted.append(_InOrder(work))


class _InOrder:
    """The events of several sentences, one sentence after the other; later ones are held back."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._held: dict[int, deque[NewToken | Answer]] = {}

    async def next(self, sentence: int) -> NewToken | Answer:
        held = self._held.setdefault(sentence, deque())
        while not held:
            event = await self.work.event()
            self._held.setdefault(event.ticket.sentence, deque()).append(event)
        return held.popleft()
