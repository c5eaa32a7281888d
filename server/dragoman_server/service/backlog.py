"""How long a new request would wait, from what waits and how fast it went lately."""

from collections import deque

_WINDOW = 10.0
"""Seconds of the past that count."""
_LEAST = 0.5
"""Seconds of work below which nothing is concluded."""


class Backlog:
    """Source tokens that were read, over time; the caller has the clock."""

    def __init__(self) -> None:
        self._turns: deque[tuple[float, int, float]] = deque(maxlen=4096)

    def add(self, now: float, tokens: int, seconds: float) -> None:
        """A turn ended: so many source tokens were read in it, and it took so long."""
        self._turns.append((now, tokens, seconds))
        while self._turns and self._turns[0][0] < now - _WINDOW:
            self._turns.popleft()

    def tokens_per_second(self, lanes: int) -> float | None:
        """Source tokens that all lanes get through while they work; None where it is not known."""
        seconds = sum(turn[2] for turn in self._turns)
        if seconds < _LEAST:
            return None
        return max(1.0, lanes * sum(turn[1] for turn in self._turns) / seconds)

    def wait(self, waiting_tokens: int, lanes: int) -> float | None:
        """Seconds until that much has been read."""
        rate = self.tokens_per_second(lanes)
        return None if rate is None else waiting_tokens / rate
