"""Whether a request may join the queue of an engine, and when to come back where it may not."""

import time
from collections.abc import Callable

from dragoman_server.engine.front import Front
from dragoman_server.service.errors import ExpiredError, OverloadedError

INTERACTIVE, BULK = 1, 0
"""Priorities: someone waits for the answer of an interactive request."""
_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS = 0.1, 30.0
"""Bounds of the time that a refused client is told to wait."""
_UNKNOWN_RETRY_SECONDS = 1.0
"""Seconds that a refused client is told to wait while the engine's speed is not known."""
_WAIT_MARGIN = 1.25
"""Factor on the expected wait. Queues move unevenly: of those whose wait is just short enough, many
would expire in them."""


class Admission:
    """Looks at the queue of one engine before a request joins it."""

    def __init__(self, engine: Front, bulk_tokens: Callable[[], int]) -> None:
        """``bulk_tokens`` counts the source tokens that bulk streams have in the engine."""
        self._engine = engine
        self._bulk_tokens = bulk_tokens

    def check_room(self) -> None:
        """Refuse where even the smallest request would find no room."""
        if self._engine.is_full:
            raise self.overloaded()

    def check_deadline(self, deadline: float, priority: int, longest: int) -> None:
        """Refuse what can't be done in time.

        ``deadline`` is a moment of ``time.monotonic()``, ``longest`` the source tokens of the
        request's longest sentence, its end token included.
        """
        left = deadline - time.monotonic()
        if left <= 0:
            raise ExpiredError("the deadline has passed")
        wait = self.expected_wait(priority)
        # Where nothing waits, it is taken: what it would take is known from fuller times only.
        if wait and _WAIT_MARGIN * wait + self._engine.speed.pace * longest > left:
            raise ExpiredError(
                "the deadline can't be met: the queue is longer", reason="DEADLINE_UNREACHABLE"
            )

    def overloaded(self) -> OverloadedError:
        """Return the error of a request that finds no room, with the time to come back after."""
        return OverloadedError("the queue is full", self._retry_seconds())

    def expected_wait(self, priority: int) -> float | None:
        """Return the seconds that a new request would wait at least; None while not known."""
        engine = self._engine
        tokens = engine.waiting_tokens
        if tokens and priority != BULK:  # it goes before what bulk streams have waiting
            tokens = max(0, tokens - self._bulk_tokens())
        return engine.speed.wait(tokens, engine.resolved.lanes) if tokens else 0.0

    def _retry_seconds(self) -> float:
        """Return the seconds after which all that waits now has been read."""
        wait = self.expected_wait(BULK)
        if wait is None:
            return _UNKNOWN_RETRY_SECONDS
        return min(_MAX_RETRY_SECONDS, max(_MIN_RETRY_SECONDS, wait))
