"""How fast an engine works, learnt from what it did lately.

It answers two questions: how long the source tokens in the queue will take to be read, and how long
a sentence will hold its rows once it has begun. Has no clock and no lock: the engine has both.
"""

from collections import deque

_WINDOW_SECONDS = 10.0
"""Turns that ended longer ago do not count."""
_MAX_TURNS = 4096
"""Most turns that are remembered."""
_MIN_SECONDS = 0.5
"""Seconds of work below which nothing is concluded about the queue."""
_NEWEST_WEIGHT = 1 / 16
"""Weight of the newest sentence in the mean over sentences."""
_MARGIN = 1.25
"""Factor above the mean: some sentences take longer than others."""


class Speed:
    """Means over the newest turns and sentences."""

    def __init__(self) -> None:
        self._turns: deque[tuple[float, int, int]] = deque()
        # Kept up with each turn: a server that is full asks at every call.
        self._tokens = 0
        self._nanoseconds = 0
        self._mean_pace = 0.0

    def add_turn(self, now: float, tokens: int, seconds: float) -> None:
        """Take in a turn that ends now: the source tokens read in it, and how long it took."""
        nanoseconds = round(seconds * 1e9)  # sums of integers do not drift
        self._turns.append((now, tokens, nanoseconds))
        self._tokens += tokens
        self._nanoseconds += nanoseconds
        while self._turns[0][0] < now - _WINDOW_SECONDS or len(self._turns) > _MAX_TURNS:
            _, tokens, nanoseconds = self._turns.popleft()
            self._tokens -= tokens
            self._nanoseconds -= nanoseconds

    def add_sentence(self, tokens: int, seconds: float) -> None:
        """Take in a sentence that ended: its source tokens, and how long it held its rows."""
        weight = _NEWEST_WEIGHT if self._mean_pace else 1.0
        self._mean_pace += weight * (seconds / tokens - self._mean_pace)

    def tokens_per_second(self, lanes: int) -> float | None:
        """Return the source tokens that lanes read in a second of work; None while not known."""
        seconds = self._nanoseconds / 1e9
        if seconds < _MIN_SECONDS:
            return None
        return max(1.0, lanes * self._tokens / seconds)

    def wait(self, waiting_tokens: int, lanes: int) -> float | None:
        """Return the seconds until that many source tokens are read; None while not known."""
        rate = self.tokens_per_second(lanes)
        return None if rate is None else waiting_tokens / rate

    @property
    def pace(self) -> float:
        """Seconds for which a sentence holds its rows, for each of its source tokens; 0 at first.

        A little above the mean, so that most sentences take no longer.
        """
        return _MARGIN * self._mean_pace
