"""The items of a long stream between being read and being handed on, in order.

There are at most as many as the window: who hands on slowly, reads slowly. Pure bookkeeping, shared
by the sync and the async client; neither threads nor time.
"""

from collections import deque

from dragoman_client._errors import CallError
from dragoman_client._results import Translation

Result = Translation | CallError


class Window:
    def __init__(self, size: int) -> None:
        self._size = size
        self._read = 0
        self._next = 0
        """The number of the item that is handed on next."""
        self._unanswered: dict[int, str] = {}
        """Texts that have no answer yet, by number, in their order."""
        self._unsent: deque[int] = deque()
        self._results: dict[int, Result] = {}
        self._suspects = 0
        """How many of the first unanswered items are sent each in a stream of its own."""

    @property
    def has_room(self) -> bool:
        return self._read - self._next < self._size

    @property
    def is_empty(self) -> bool:
        return self._read == self._next

    def add(self, text: str) -> None:
        """Take in an item that was read."""
        self._unanswered[self._read] = text
        self._unsent.append(self._read)
        self._read += 1

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def next_unsent(self) -> tuple[int, str] | None:
        """Return the number and text of the item to send next."""
        if not self._unsent:
            return None
        number = self._unsent.popleft()
        return number, self._unanswered[number]

    def send_all_again(self) -> None:
        """Send all items without an answer again: they were lost with the stream."""
        self._unsent = deque(self._unanswered)

    def answer(self, number: int, result: Result) -> None:
        """Take in an answer. A second one, as after a broken stream, changes nothing."""
        if self._unanswered.pop(number, None) is not None:
            self._results[number] = result
            self._suspects = max(0, self._suspects - 1)

    def next_result(self) -> Result | None:
        """Return what can be handed on next, if it is there."""
        result = self._results.pop(self._next, None)
        if result is not None:
            self._next += 1
        return result

    def text(self, number: int) -> str | None:
        """Return the text of an item that has no answer yet."""
        return self._unanswered.get(number)

    @property
    def has_suspects(self) -> bool:
        """Whether the next stream is to have one item only, which ``blame`` is about."""
        return self._suspects > 0

    def suspect_all(self) -> bool:
        """Suspect all unanswered items of a broken stream; return whether there are any."""
        self._suspects = len(self._unanswered)
        return self.has_suspects

    def find_out_whose(self, error: CallError, alone: bool) -> None:
        """Answer the item that ended the stream: it was alone there, or it is searched for.

        Raises the error where no item is left that could have ended it.
        """
        if alone:
            error.field = error.field or "text"
            self.blame(error)
        elif not self.suspect_all():
            raise error

    def blame(self, error: CallError) -> None:
        """Answer the item that was alone in its stream: it broke it."""
        self.answer(next(iter(self._unanswered)), error)
