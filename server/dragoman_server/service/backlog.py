"""How long a new request would wait, from what waits and how fast it went lately."""

from collections import deque

_WINDOW = 10.0
"""Seconds of the past that count."""
_MOST = 4096
"""Turns that are kept."""
_LEAST = 0.5
"""Seconds of work below which nothing is concluded."""


class Backlog:
    """Source tokens that were read, over time; the caller has the clock."""

    def __init__(self) -> None:
        self._turns: deque[tuple[float, int, int]] = deque()
        # Kept up with each turn: a server that is full asks at every call.
        self._tokens = 0
        self._nanoseconds = 0

    def add(self, now: float, tokens: int, seconds: float) -> None:
        """A turn ended: so many source tokens were read in it, and it took so long."""
        nanoseconds = round(seconds * 1e9)  # sums of integers do not drift
        self._turns.append((now, tokens, nanoseconds))
        self._tokens += tokens
        self._nanoseconds += nanoseconds
        while self._turns[0][0] < now - _WINDOW or len(self._turns) > _MOST:
            _, tokens, nanoseconds = self._turns.popleft()
            self._tokens -= tokens
            self._nanoseconds -= nanoseconds

    def tokens_per_second(self, lanes: int) -> float | None:
        """Source tokens that all lanes get through while they work; None where it is not known."""
        seconds = self._nanoseconds / 1e9
        if seconds < _LEAST:
            return None
        return max(1.0, lanes * self._tokens / seconds)

    def wait(self, waiting_tokens: int, lanes: int) -> float | None:
        """Seconds until that much has been read."""
        rate = self.tokens_per_second(lanes)
        return None if rate is None else waiting_tokens / rate
