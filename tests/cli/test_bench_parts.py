"""The parts of ``dragoman bench`` by what must hold of them: no server is needed."""

import json
import math
import statistics
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_cli.bench.find_rate import RateSearch
from dragoman_cli.bench.schedule import poisson_arrivals
from dragoman_cli.bench.statistics import Histogram, Outcome, Statistics, Timeline
from dragoman_cli.bench.texts import everyday_sentences, lines_of
from dragoman_cli.bench.view import sparks

# When calls are sent


@given(st.floats(1.0, 1000.0), st.integers(0, 2**32))
def test_arrivals_come_at_the_rate_that_was_asked_for(rate: float, seed: int) -> None:
    count = len(list(poisson_arrivals(rate, 400 / rate, seed)))
    assert abs(count - 400) < 6 * math.sqrt(400)


def test_arrivals_are_a_poisson_process() -> None:
    arrivals = list(poisson_arrivals(50.0, 400.0, seed=1))
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] < 400.0
    intervals = [later - one for one, later in pairwise(arrivals)]
    mean = statistics.mean(intervals)
    assert mean == pytest.approx(1 / 50, rel=0.03)
    # An exponential distribution: as wide as it is long, and without memory.
    assert statistics.stdev(intervals) == pytest.approx(mean, rel=0.03)
    for waited in (0.5, 1.0, 2.0):
        longer = sum(interval > waited * mean for interval in intervals) / len(intervals)
        assert longer == pytest.approx(math.exp(-waited), abs=0.015)
    # Counts of equal times vary as much as their mean, and do not know of each other.
    counts = [0] * 400
    for moment in arrivals:
        counts[int(moment)] += 1
    assert statistics.variance(counts) == pytest.approx(50, rel=0.25)
    assert abs(statistics.correlation(intervals[:-1], intervals[1:])) < 0.03


def test_arrivals_repeat_with_their_seed() -> None:
    one, same, other = (list(poisson_arrivals(20.0, 5.0, seed)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


# What is counted


@given(st.lists(st.floats(1e-6, 1e4), min_size=1, max_size=300), st.floats(1, 100))
def test_percentiles_are_right_to_two_percent(values: list[float], percent: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    exact = sorted(values)[math.ceil(len(values) * percent / 100) - 1]
    assert exact * 0.9999 <= histogram.percentile(percent) <= exact * 1.0201
    assert histogram.max == max(values)
    assert histogram.mean == pytest.approx(statistics.fmean(values))


@given(st.lists(st.floats(0, 1e4), max_size=200))
def test_a_timeline_widens_and_loses_nothing(moments: list[float]) -> None:
    timeline = Timeline(width=0.5)
    for moment in moments:
        timeline.at(moment).answered += 1
    assert len(timeline.slots) <= 240
    assert sum(slot.answered for slot in timeline.slots) == len(moments)
    for moment in moments:
        assert timeline.at(moment).answered


def test_memory_is_bounded_whatever_is_answered() -> None:
    counted = Statistics()
    for number in range(20_000):
        took = 10.0 ** (number % 7 - 5)
        error = ("INTERNAL", f"REASON {number}") if number % 5 == 0 else None
        counted.add(Outcome(number, number, number + took, number + took / 2, 1, 9, 9, error))
    assert len(counted.errors) <= 65
    assert sum(failures.count for failures in counted.errors.values()) == counted.failed == 4_000
    assert len(counted.timeline.slots) <= 240
    assert len(json.dumps(counted.to_json())) < 100_000


def test_what_was_to_be_sent_in_the_warm_up_does_not_count() -> None:
    counted = Statistics(warm_up=1.0)
    counted.stopped = 3.0
    counted.add(Outcome(0.9, 0.9, 1.5, sentences=1))
    counted.add(Outcome(1.1, 1.1, 1.5, sentences=1, target_tokens=4))
    counted.add(Outcome(2.9, 2.9, 3.5, sentences=1, target_tokens=4))  # after the end: no pace
    assert (counted.arrived, counted.answered, counted.in_time) == (2, 2, 1)
    assert counted.seconds == 2.0
    assert counted.rate(counted.target_tokens) == 2.0


def test_a_failed_call_is_late() -> None:
    counted = Statistics()
    counted.add(Outcome(0.0, 0.0, 0.1))
    counted.add(Outcome(0.0, 0.0, 0.1, error=("INTERNAL", "")))
    counted.leave_unsent(0.0)
    counted.add(Outcome(0.0, 0.0, 9.0))
    assert counted.share_within(0.2) == 0.25


# The highest rate


@given(st.floats(0.5, 5000), st.floats(0.01, 10_000), st.sampled_from([0.02, 0.05, 0.2]))
def test_the_search_closes_in_on_the_highest_rate(
    highest: float, first: float, precision: float
) -> None:
    search = RateSearch(first, precision=precision, max_trials=64)
    while (rate := search.next()) is not None:
        search.tell(rate, rate <= highest)
    assert search.best is not None
    assert highest / (1 + precision) <= search.best <= highest


@given(st.data())
def test_the_search_ends_whatever_it_is_told(data: st.DataObject) -> None:
    search = RateSearch(10.0, max_trials=12)
    while (rate := search.next()) is not None:
        assert 0 < rate < math.inf
        search.tell(rate, data.draw(st.booleans()))
    assert len(search.trials) <= 12
    if search.best is not None:
        assert (search.best, True) in search.trials
        assert all(met for rate, met in search.trials if rate <= search.best)


def test_a_target_that_nothing_meets_has_no_rate() -> None:
    search = RateSearch(10.0, max_trials=5)
    while (rate := search.next()) is not None:
        search.tell(rate, False)
    assert search.best is None


# Texts


def test_sentences_are_many_and_of_all_lengths() -> None:
    made = list(islice(everyday_sentences(1), 2000))
    words = [len(text.split()) for text in made]
    assert min(words) in (2, 3)
    assert max(words) > 25
    assert len(set(made)) > 1500
    assert made == list(islice(everyday_sentences(1), 2000))


def test_lines_of_a_file_come_over_and_over(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("one\n\n  two \n")
    assert list(islice(lines_of(path), 5)) == [
        *("one", "two", "one", "two", "one"),
    ]


def test_sparks_are_as_high_as_the_values() -> None:
    assert sparks([0.0, 4.0, math.nan, 8.0]) == "▁▅ █"
    assert sparks([0.0, 0.0]) == "▁▁"
    assert sparks([]) == ""
