"""Which of several streams sends the next item: the one that would be done with it first.

Servers differ in speed, and in what else they have to do, so each gets items in proportion to how
fast it answers. How long a server needs for what it has is the number of its items under way times
the time between two of its answers. Knows no clock: the caller has it.
"""

from dataclasses import dataclass

_FIRST = 4
"""Items that a server gets before its first answer; one more for each answer from then on."""
_MEMORY = 64
"""Answers over which the time between two of them is averaged."""
_EVENNESS = 0.1
"""How much more a stream that had all items under way would count. It keeps shares even where the
speed says nothing: a server that is not full answers the faster, the more it has."""


@dataclass
class _Pace:
    """How a stream gets on."""

    is_open: bool = False
    is_waiting: bool = False
    """Whether it would send an item at once: it is not held back by its server."""
    under_way: int = 0
    """Items that were sent and have no answer."""
    answered: int = 0
    """Answers since the stream was opened."""
    gap: float | None = None
    """Mean seconds between two answers while items are under way; None before the first."""
    since: float = 0.0
    """Time of the last answer, or of the first item that was sent after it."""

    @property
    def can_send(self) -> bool:
        return self.is_waiting and self.under_way < _FIRST + self.answered


class Shares:
    def __init__(self, streams: int) -> None:
        self._paces = [_Pace() for _ in range(streams)]

    def open(self, stream: int) -> None:
        """Count a stream in, as one that is not known."""
        self._paces[stream] = _Pace(is_open=True)

    def close(self, stream: int) -> None:
        """Leave a stream out, and what it has under way."""
        self._paces[stream] = _Pace()

    def wait(self, stream: int) -> None:
        """Note that a stream waits for an item to send."""
        self._paces[stream].is_waiting = True

    def send(self, stream: int, now: float) -> None:
        """Note that a stream has sent an item."""
        pace = self._paces[stream]
        if pace.under_way == 0:
            pace.since = now
        pace.under_way += 1
        pace.is_waiting = False

    def answer(self, stream: int, now: float) -> None:
        """Note that a stream has answered an item."""
        pace = self._paces[stream]
        pace.under_way -= 1
        pace.answered += 1
        gap, before = now - pace.since, pace.gap or 0.0
        pace.gap = before + (gap - before) / min(pace.answered, _MEMORY)
        pace.since = now

    def is_turn_of(self, stream: int) -> bool:
        """Whether the next item is for this stream."""
        own, others = self._paces[stream], [pace for pace in self._paces if pace.is_open]
        if len(others) == 1:
            return own.is_open
        if not own.can_send:
            return False
        known = [pace.gap for pace in others if pace.gap is not None]
        usual = sum(known) / len(known) if known else 1.0
        total = sum(pace.under_way for pace in others) or 1

        def rest(pace: _Pace) -> float:
            """Return the seconds until a server is done with what it has, evenness included."""
            each = usual if pace.gap is None else pace.gap
            return pace.under_way * each * (1.0 + _EVENNESS * pace.under_way / total)

        return rest(own) <= min(rest(pace) for pace in others if pace.can_send)
