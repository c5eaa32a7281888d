"""When to try a call again, and after how long. Knows no clock: the caller has it."""

from dataclasses import dataclass

from dragoman_client._errors import CallError, ConfigurationError, OverloadedError, UnavailableError
from dragoman_client._field_docs import documented
from dragoman_client._types import require_number, require_whole


@documented
@dataclass(frozen=True, kw_only=True)
class Retries:
    """When calls are tried again: only where a later try can help, as with a full queue."""

    attempts: int = 5
    """Attempts of a call, the first included; 1 for no retries."""
    first_delay: float = 0.1
    """Seconds before the second attempt; doubled for each further one."""
    max_delay: float = 10.0
    """Most seconds between two attempts, beside what the server asks for."""
    outage: float = 60.0
    """Seconds for which ``translate_many`` waits for a server that was there, and went away."""

    def __post_init__(self) -> None:
        require_whole("attempts", self.attempts)
        for name in ("first_delay", "max_delay", "outage"):
            require_number(name, getattr(self, name))
        if self.attempts < 1:
            raise ConfigurationError(f"attempts is {self.attempts}: it must be at least 1")
        if not 0 < self.first_delay <= self.max_delay:
            raise ConfigurationError(
                f"first_delay is {self.first_delay}: it must be above 0 and at most max_delay, "
                f"{self.max_delay}"
            )
        if not self.outage >= 0:
            raise ConfigurationError(f"outage is {self.outage}: it must be at least 0")

    def delay(self, error: CallError, attempt: int, remaining: float) -> float | None:
        """Return the seconds to wait after this attempt, the first being 1; None for no more.

        The server's own word counts, where it has said when to come back.
        """
        if attempt >= self.attempts or not is_passing(error):
            return None
        wait = self._wait(error, attempt)
        return wait if wait < remaining else None

    def delay_in_outage(self, error: CallError, attempt: int, lasted: float) -> float | None:
        """Return the same for a stream that was interrupted so many seconds ago."""
        if self.attempts == 1 or not is_passing(error):
            return None
        wait = self._wait(error, attempt)
        return wait if lasted + wait < self.outage else None

    def _wait(self, error: CallError, attempt: int) -> float:
        import random  # only here: the SDK is to be quick to import

        doublings = min(attempt - 1, 60)  # an outage may be long, and a float has an end
        step = min(self.max_delay, self.first_delay * 2.0**doublings)
        # Clients that were refused together should not come back together.
        return (error.retry_after or 0.0) + random.uniform(0.5, 1.0) * step  # noqa: S311


class Interruptions:
    """Of a long stream: how often it broke since its last answer, and since when it is broken."""

    def __init__(self, retries: Retries) -> None:
        self._retries = retries
        self._was_there = False
        """Whether a server of ours has answered at all; else the address may be wrong."""
        self._attempt = 1
        self._since: float | None = None

    def answered(self) -> None:
        self._was_there = True
        self._attempt = 1
        self._since = None

    def delay(self, error: CallError, now: float) -> float | None:
        """Return the seconds until the next attempt; None where it is of no use."""
        self._was_there = self._was_there or bool(error.reason)
        if self._since is None:
            self._since = now
        lasted, attempt = now - self._since, self._attempt
        self._attempt += 1
        if self._was_there:
            return self._retries.delay_in_outage(error, attempt, lasted)
        return self._retries.delay(error, attempt, self._retries.outage - lasted)


def is_passing(error: CallError) -> bool:
    """Whether the same call may well succeed later."""
    if isinstance(error, OverloadedError):
        return error.retry_after is not None  # else nobody said that waiting would help
    return isinstance(error, UnavailableError)
