"""When calls are to be sent: moments that are settled before anything is sent. Knows no clock.

An open loop stands for many people who do not know of each other: they come when they come, whether
the server keeps up or not. Intervals are then exponential, and the arrivals a Poisson process.
"""

import random
from collections.abc import Iterator

from dragoman_client._errors import ConfigurationError


def poisson_arrivals(rate: float, seconds: float, seed: int) -> Iterator[float]:
    """Seconds from the beginning, growing, up to ``seconds``; ``rate`` a second on average."""
    if not 0 < rate < float("inf"):
        raise ConfigurationError(f"the rate is {rate}: it must be above 0 calls a second")
    draws = random.Random(seed)  # noqa: S311 - arrivals, not secrets
    moment = draws.expovariate(rate)
    while moment < seconds:
        yield moment
        moment += draws.expovariate(rate)
