"""The highest rate that is still served well: double or halve, then close in. Knows no server."""

from dataclasses import dataclass, field

from dragoman_client._errors import ConfigurationError


@dataclass
class RateSearch:
    """Ask it for the ``next`` rate, try that, ``tell`` whether it was met; until there is none.

    Measurements are noisy: a rate that was met and a higher one that was not are taken at their
    word, so it ends after a bounded number of trials whatever it is told.
    """

    first: float
    """Rate that is tried first, in calls a second."""
    precision: float = 0.05
    """The search ends where the lowest rate that failed is above the best by this share."""
    max_trials: int = 16
    """Most rates that are tried."""
    trials: list[tuple[float, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not 0 < self.first < float("inf"):
            raise ConfigurationError(f"the first rate is {self.first}: it must be above 0")
        if not 0.001 <= self.precision <= 1:
            raise ConfigurationError(f"precision is {self.precision}: it must be 0.001 to 1")

    @property
    def best(self) -> float | None:
        """The highest rate that was met below all that were not; None: none was."""
        met = [rate for rate, was_met in self.trials if was_met]
        return max((rate for rate in met if rate < self._ceiling), default=None)

    @property
    def _ceiling(self) -> float:
        return min((rate for rate, was_met in self.trials if not was_met), default=float("inf"))

    def next(self) -> float | None:
        if len(self.trials) >= self.max_trials:
            return None
        if not self.trials:
            return self.first
        best, ceiling = self.best, self._ceiling
        if ceiling == float("inf"):
            return 2 * max(rate for rate, _ in self.trials)
        if best is None:
            return ceiling / 2
        if ceiling <= best * (1 + self.precision):
            return None
        # Midway between them by ratio: the two ends may be far apart.
        return float((best * ceiling) ** 0.5)

    def tell(self, rate: float, met: bool) -> None:
        self.trials.append((rate, met))
