"""The items of a bulk call between being read and being handed on, in order.

There are at most as many as the window: who hands on slowly, reads slowly. Several streams take
items from it, one to each server. Pure bookkeeping, shared by the sync and the async client;
neither threads nor time.
"""

import heapq
from collections import deque

from dragoman_client._errors import CallError
from dragoman_client._results import Translation

Result = Translation | CallError


class Window:
    def __init__(self, size: int, streams: int = 1) -> None:
        self._size = size
        self._read = 0
        self._next = 0
        """Number of the item that is handed on next."""
        self._unanswered: dict[int, str] = {}
        """Texts that have no answer yet, by number."""
        self._unsent: list[int] = []
        """Numbers of the items that any stream may send next, as a heap: the oldest comes first."""
        self._sent: list[dict[int, None]] = [{} for _ in range(streams)]
        """Numbers of the items that each stream has sent and that have no answer, in order."""
        self._suspects: list[deque[int]] = [deque() for _ in range(streams)]
        """Numbers of the items that each stream sends alone, because one of them broke it."""
        self._results: dict[int, Result] = {}

    @property
    def has_room(self) -> bool:
        return self._read - self._next < self._size

    @property
    def is_empty(self) -> bool:
        return self._read == self._next

    def add(self, text: str) -> None:
        """Take in an item that was read."""
        self._unanswered[self._read] = text
        heapq.heappush(self._unsent, self._read)
        self._read += 1

    @property
    def has_unsent(self) -> bool:
        """Whether there is an item that any stream may send."""
        return bool(self._unsent)

    def next_unsent(self, stream: int = 0) -> tuple[int, str] | None:
        """Return the number and text of the item that a stream sends next."""
        if self._suspects[stream]:
            number = self._suspects[stream].popleft()
        elif self._unsent:
            number = heapq.heappop(self._unsent)
        else:
            return None
        self._sent[stream][number] = None
        return number, self._unanswered[number]

    def text(self, number: int) -> str | None:
        """Return the text of an item that has no answer yet."""
        return self._unanswered.get(number)

    def has_sent(self, stream: int = 0) -> bool:
        """Whether a stream has sent an item that has no answer yet."""
        return bool(self._sent[stream])

    def answer(self, number: int, result: Result, stream: int = 0) -> None:
        """Take in the answer to an item that the stream has sent; any other changes nothing."""
        if number in self._sent[stream]:
            del self._sent[stream][number], self._unanswered[number]
            self._results[number] = result

    @property
    def has_result(self) -> bool:
        return self._next in self._results

    def next_result(self) -> Result | None:
        """Return what can be handed on next, if it is there."""
        result = self._results.pop(self._next, None)
        if result is not None:
            self._next += 1
        return result

    def take_back(self, stream: int = 0) -> None:
        """Let any stream send what this one leaves without an answer: it was lost with it."""
        for number in (*self._sent[stream], *self._suspects[stream]):
            heapq.heappush(self._unsent, number)
        self._sent[stream].clear()
        self._suspects[stream].clear()

    def has_suspects(self, stream: int = 0) -> bool:
        """Whether the next stream is to have one item only, which ``blame`` is about."""
        return bool(self._suspects[stream])

    def suspect(self, stream: int = 0) -> None:
        """Let a stream send each item that it left without an answer alone."""
        self._suspects[stream].extendleft(reversed(self._sent[stream]))
        self._sent[stream].clear()

    def blame(self, error: CallError, stream: int = 0) -> None:
        """Answer the item that was alone in its stream: it broke it."""
        self.answer(next(iter(self._sent[stream])), error, stream)
