"""What is counted at every call is exported as prometheus_client itself would export it."""

import random

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from dragoman_server.service.telemetry import metrics  # noqa: F401 - exports no time of creation
from dragoman_server.service.telemetry.series import Counters, Gauges, Histograms

BOUNDS = (0.005, 0.1, 1, 2.5, 64)


def test_series_read_as_prometheus_clients_own() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    histograms = (
        Histograms("wait_seconds", "Seconds.", BOUNDS, ["model"], ours),
        Histogram("dragoman_wait_seconds", "Seconds.", ["model"], buckets=BOUNDS, registry=theirs),
    )
    counters = (
        Counters("calls_total", "Calls.", ["rpc", "code"], ours),
        Counter("dragoman_calls_total", "Calls.", ["rpc", "code"], registry=theirs),
    )
    gauges = (
        Gauges("under_way", "Calls under way.", ["rpc"], ours),
        Gauge("dragoman_under_way", "Calls under way.", ["rpc"], registry=theirs),
    )
    rng = random.Random(1)
    values = [*BOUNDS, 0.0, *(rng.expovariate(0.1) for _ in range(200))]
    for histogram in histograms:
        histogram.labels("none")
        for value in values:
            histogram.labels("en-pt").observe(value)
    for counter in counters:
        counter.labels("Translate", "OK").inc()
        counter.labels("Translate", "OK").inc(2)
        counter.labels('a "name"\n', "\\").inc(0.5)
    for gauge in gauges:
        gauge.labels("Translate").inc()
        gauge.labels("Translate").dec(3)
    assert generate_latest(ours) == generate_latest(theirs)


def test_many_values_count_as_each_of_them() -> None:
    registry = CollectorRegistry()
    series = Histograms("step_seconds", "Seconds.", BOUNDS, ["model"], registry)
    one, all_at_once = series.labels("one"), series.labels("all")
    for value in (0.1, 0.2, 99.0):
        one.observe(value)
    all_at_once.observe_all((0.1, 0.2, 99.0))
    assert (one.counts, one.total) == (all_at_once.counts, all_at_once.total)


def test_labels_that_a_metric_does_not_have_are_refused() -> None:
    series = Counters("calls_total", "Calls.", ["rpc"], CollectorRegistry())
    with pytest.raises(ValueError, match="rpc"):
        series.labels("Translate", "OK")
