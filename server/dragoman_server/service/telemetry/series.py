"""Counters and histograms that cost little to add to, for what is counted at every call and turn.

prometheus_client's own take a lock for each number that they change, and a histogram changes
several: that was a tenth of the time of a front. These are written by the event loop alone, and
copied by a scrape, which runs in another thread.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class Total:
    """A number that is added to."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        self.value += amount

    def dec(self, amount: float = 1.0) -> None:
        """Take something away, where this is a gauge."""
        self.value -= amount


class Distribution:
    """How many values were at most each bound of a histogram."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Values between each bound and the one before it; the last are above all bounds."""
        self.total = 0.0
        """Sum of the values."""

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def observe_all(self, values: Iterable[float]) -> None:
        """Count values."""
        for value in values:
            self.observe(value)


S = TypeVar("S", Total, Distribution)


class Series(Collector, Generic[S]):
    """The series of one metric, by the values of their labels."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        registry: CollectorRegistry,
        new: Callable[[], S],
    ) -> None:
        self._name = f"dragoman_{name}"
        self._text = text
        self._names = labels
        self._new: Callable[[], S] = new
        self._by_labels: dict[tuple[str, ...], S] = {}
        registry.register(self)

    def labels(self, *values: str) -> S:
        """Return the series of these values."""
        try:
            return self._by_labels[values]
        except KeyError:
            if len(values) != len(self._names):
                raise ValueError(f"{self._name} has the labels {self._names}") from None
            return self._by_labels.setdefault(values, self._new())

    def _all(self) -> list[tuple[tuple[str, ...], S]]:
        return list(self._by_labels.items())  # which may grow meanwhile


class Counters(Series[Total]):
    """A counter, whose name ends with ``_total``."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry
    ) -> None:
        super().__init__(name, text, labels, registry, Total)

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(self._name, self._text, labels=self._names)
        for values, series in self._all():
            family.add_metric(values, series.value)
        yield family


class Gauges(Series[Total]):
    """A gauge that goes up and down."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry
    ) -> None:
        super().__init__(name, text, labels, registry, Total)

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(self._name, self._text, labels=self._names)
        for values, series in self._all():
            family.add_metric(values, series.value)
        yield family


class Histograms(Series[Distribution]):
    """A histogram with the same bounds in all series."""

    def __init__(
        self,
        name: str,
        text: str,
        bounds: Sequence[float],
        labels: Sequence[str],
        registry: CollectorRegistry,
    ) -> None:
        self._shown = [*map(floatToGoString, bounds), "+Inf"]
        super().__init__(name, text, labels, registry, lambda: Distribution(bounds))

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._text, labels=self._names)
        for values, series in self._all():
            below = 0
            buckets: list[tuple[str, float]] = []
            for shown, count in zip(self._shown, series.counts.copy(), strict=True):
                below += count
                buckets.append((shown, below))
            family.add_metric(values, buckets, series.total)
        yield family
