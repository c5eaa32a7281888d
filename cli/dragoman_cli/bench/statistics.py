"""What a load came to, in memory that does not grow with it.

Durations go into histograms whose buckets are 2% wide, as HdrHistogram's: percentiles are right to
that, over any number of calls. The timeline has a bounded number of slots, which widen as time
passes.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

PERCENTILES = (50, 90, 95, 99)
_SHORTEST = 1e-6
"""Seconds that anything shorter counts as."""
_WIDTH = math.log(1.02)
"""Width of a bucket, as a logarithm."""
_MAX_SLOTS = 240
"""Most slots of a timeline."""
_MAX_KINDS = 64
"""Most kinds of errors that are counted apart: what answers may not be a server of ours."""
OTHER = "OTHER"
"""The code that further kinds of errors are counted under."""


class Histogram:
    """Durations in seconds. Its buckets are few: from a microsecond to a day there are 1,300."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.max = 0.0
        self._buckets: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        self.count += 1
        self.total += seconds
        self.max = max(self.max, seconds)
        self._buckets[_bucket(seconds)] += 1

    def merge(self, other: "Histogram") -> None:
        self.count += other.count
        self.total += other.total
        self.max = max(self.max, other.max)
        self._buckets.update(other._buckets)

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else math.nan

    def percentile(self, percent: float) -> float:
        """Return the seconds that so many percent do not exceed; nan where there are none."""
        left = math.ceil(self.count * percent / 100)
        for upper, count in self.buckets():
            left -= count
            if left <= 0:
                return min(upper, self.max)
        return math.nan

    def within(self, seconds: float) -> int:
        """Return how many took at most so many seconds."""
        last = _bucket(seconds)
        return sum(count for bucket, count in self._buckets.items() if bucket <= last)

    def buckets(self) -> Iterator[tuple[float, int]]:
        """Yield the upper end of each bucket that is not empty, and how many are in it; rising."""
        for bucket in sorted(self._buckets):
            yield _SHORTEST * math.exp(bucket * _WIDTH), self._buckets[bucket]

    def to_json(self) -> dict[str, float] | None:
        """Return percentiles, mean and maximum in milliseconds."""
        if not self.count:
            return None
        found = {f"p{percent}": self.percentile(percent) for percent in PERCENTILES}
        found |= {"mean": self.mean, "max": self.max}
        return {name: round(1000 * value, 3) for name, value in found.items()}


def _bucket(seconds: float) -> int:
    """Return the number of a bucket; ``n`` ends at ``_SHORTEST * 1.02^n``, which is in it."""
    if seconds <= _SHORTEST:
        return 0
    return math.ceil(math.log(seconds / _SHORTEST) / _WIDTH - 1e-9)


@dataclass
class Slot:
    """A part of the time that a load takes."""

    arrived: int = 0
    """Calls that were to be sent in this part."""
    answered: int = 0
    """Calls that were answered in this part."""
    failed: int = 0
    """Calls that failed in this part."""
    tokens: int = 0
    """Target tokens of the answers."""
    latency: Histogram = field(default_factory=Histogram)
    """Latencies of the calls that were answered in this part."""

    def merge(self, other: "Slot") -> None:
        self.arrived += other.arrived
        self.answered += other.answered
        self.failed += other.failed
        self.tokens += other.tokens
        self.latency.merge(other.latency)


class Timeline:
    """Slots of equal width; where there are too many, two become one."""

    def __init__(self, width: float = 0.5) -> None:
        self.width = width
        self.slots: list[Slot] = []

    def at(self, moment: float) -> Slot:
        while moment >= self.width * _MAX_SLOTS:
            self._widen()
        number = max(0, int(moment / self.width))
        while len(self.slots) <= number:
            self.slots.append(Slot())
        return self.slots[number]

    def _widen(self) -> None:
        self.width *= 2
        for left, right in zip(self.slots[::2], self.slots[1::2], strict=False):
            left.merge(right)
        self.slots = self.slots[::2]


@dataclass(frozen=True)
class Outcome:
    """A call that ended. Moments are seconds from the load's beginning."""

    intended: float
    """When the call was to be sent; its latency counts from here."""
    sent: float
    """When the call was sent."""
    ended: float
    """When the call was answered, or failed."""
    first_token: float | None = None
    """When the first text came, where the call was streamed."""
    sentences: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    error: tuple[str, str] | None = None
    """Code and reason of the error; None where the call was answered."""


@dataclass
class Failures:
    """Calls that ended with the same error."""

    count: int = 0
    after: Histogram = field(default_factory=Histogram)
    """Seconds from when a call was sent to its error."""


class Statistics:
    """Everything that is counted of a load.

    What was to be sent before ``warm_up`` does not count. Rates are of what ended until
    ``stop``, when sending ended, so that the slow end of a load is not taken for its pace.
    """

    def __init__(self, warm_up: float = 0.0) -> None:
        self.warm_up = warm_up
        self.stopped = math.inf
        self.now = 0.0
        self.arrived = self.answered = self.failed = self.unsent = 0
        self.in_time = self.sentences = self.source_tokens = self.target_tokens = 0
        self.latency, self.first_token = Histogram(), Histogram()
        self.per_token, self.lag = Histogram(), Histogram()
        self.errors: dict[tuple[str, str], Failures] = {}
        self.timeline = Timeline()

    def add(self, outcome: Outcome) -> None:
        self.tick(outcome.ended)
        if outcome.intended < self.warm_up:
            return
        self.lag.add(outcome.sent - outcome.intended)
        self.arrived += 1
        self.timeline.at(outcome.intended).arrived += 1
        slot = self.timeline.at(outcome.ended)
        if outcome.error is not None:
            self.failed += 1
            slot.failed += 1
            failures = self._failures(outcome.error)
            failures.count += 1
            failures.after.add(outcome.ended - outcome.sent)
            return
        latency = outcome.ended - outcome.intended
        self.answered += 1
        self.latency.add(latency)
        slot.answered += 1
        slot.tokens += outcome.target_tokens
        slot.latency.add(latency)
        if outcome.ended <= self.stopped:
            self.in_time += 1
            self.sentences += outcome.sentences
            self.source_tokens += outcome.source_tokens
            self.target_tokens += outcome.target_tokens
        if outcome.first_token is not None:
            self.first_token.add(outcome.first_token - outcome.intended)
            if outcome.target_tokens:
                # After the first come the others and the end token.
                rest = outcome.ended - outcome.first_token
                self.per_token.add(rest / outcome.target_tokens)

    def leave_unsent(self, intended: float) -> None:
        """Count a call whose time came, but that was not sent before the load ended."""
        if intended >= self.warm_up:
            self.arrived += 1
            self.unsent += 1
            self.timeline.at(intended).arrived += 1

    def tick(self, now: float) -> None:
        """Let time pass, where nothing ends."""
        self.now = max(self.now, now)

    def stop(self, moment: float) -> None:
        """Take note that nothing is sent from now on."""
        self.stopped = moment
        self.tick(moment)

    @property
    def seconds(self) -> float:
        return max(0.0, min(self.now, self.stopped) - self.warm_up)

    def rate(self, count: int) -> float:
        return count / self.seconds if self.seconds else 0.0

    def share_within(self, seconds: float) -> float:
        """Return the share of all calls that were answered so soon; a failure is late."""
        return self.latency.within(seconds) / self.arrived if self.arrived else 0.0

    def _failures(self, error: tuple[str, str]) -> Failures:
        if error not in self.errors and len(self.errors) >= _MAX_KINDS:
            error = (OTHER, "")
        return self.errors.setdefault(error, Failures())

    def to_json(self) -> dict[str, Any]:
        """Return everything as a table; times are in milliseconds where no name says otherwise."""
        return {
            "seconds": round(self.seconds, 3),
            "calls": {
                "arrived": self.arrived,
                "answered": self.answered,
                "failed": self.failed,
                "unsent": self.unsent,
            },
            "throughput": {
                "calls_per_second": round(self.rate(self.in_time), 3),
                "sentences_per_second": round(self.rate(self.sentences), 3),
                "source_tokens_per_second": round(self.rate(self.source_tokens), 3),
                "target_tokens_per_second": round(self.rate(self.target_tokens), 3),
            },
            "latency_ms": self.latency.to_json(),
            "first_token_ms": self.first_token.to_json(),
            "per_token_ms": self.per_token.to_json(),
            "client_lag_ms": self.lag.to_json(),
            "errors": [
                {
                    "code": code,
                    "reason": reason,
                    "count": failures.count,
                    "after_ms": failures.after.to_json(),
                }
                for (code, reason), failures in sorted(self.errors.items())
            ],
            "timeline": [
                {
                    "second": round(number * self.timeline.width, 3),
                    "arrived": slot.arrived,
                    "answered": slot.answered,
                    "failed": slot.failed,
                    "target_tokens": slot.tokens,
                    "latency_ms": slot.latency.to_json(),
                }
                for number, slot in enumerate(self.timeline.slots)
            ],
        }
