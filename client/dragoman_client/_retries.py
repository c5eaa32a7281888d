"""When to try a call again, and after how long. Knows no clock: the caller has it."""

import random
from dataclasses import dataclass

from dragoman_client._errors import CallError, ConfigurationError, OverloadedError, UnavailableError


@dataclass(frozen=True, kw_only=True)
class Retries:
    """Only what a later try can mend is tried again: a full queue, a server that is not there."""

    attempts: int = 5
    """In all; 1: no retries."""
    first_delay: float = 0.1
    """Seconds before the second attempt; doubled for each further one."""
    longest_delay: float = 10.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ConfigurationError(f"attempts is {self.attempts}: it must be at least 1")
        if not 0 < self.first_delay <= self.longest_delay:
            raise ConfigurationError(
                f"first_delay is {self.first_delay}: it must be above 0 and at most longest_delay, "
                f"{self.longest_delay}"
            )

    def delay(self, error: CallError, attempt: int, remaining: float) -> float | None:
        """Seconds to wait after this attempt, the first being 1; None: it is of no use.

        The server's own word counts, where it has said when to come back.
        """
        if attempt >= self.attempts or not is_passing(error):
            return None
        least = error.retry_after or 0.0
        step = min(self.longest_delay, self.first_delay * 2.0 ** (attempt - 1))
        # Clients that were refused together should not come back together.
        wait = least + random.uniform(0.5, 1.0) * step  # noqa: S311
        return wait if wait < remaining else None


def is_passing(error: CallError) -> bool:
    """Whether the same call may well succeed later."""
    if isinstance(error, OverloadedError):
        return error.retry_after is not None  # else gRPC says that a message is too long
    return isinstance(error, UnavailableError)
