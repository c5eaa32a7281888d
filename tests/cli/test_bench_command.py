"""``dragoman bench``: its parts by what must hold of them, and the command against real servers."""

import asyncio
import json
import math
import os
import pty
import signal
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from dragoman_cli.bench.command import bench
from dragoman_cli.bench.find_rate import RateSearch
from dragoman_cli.bench.load import Load, LoadSettings
from dragoman_cli.bench.plot import Tried, draw
from dragoman_cli.bench.schedule import poisson_arrivals
from dragoman_cli.bench.statistics import Histogram, Outcome, Statistics, Timeline
from dragoman_cli.bench.texts import everyday_sentences, lines_of
from dragoman_cli.bench.view import sparks
from dragoman_client import AsyncClient, Client, ConfigurationError, Retries, Translation
from support import MODEL
from support.client_servers import (
    COMMAND,
    CTRL_C,
    Scripted,
    dragoman,
    error_of,
    listening,
    nobody,
    running_dragoman,
    status,
)
from support.service_running import PATIENCE, Running, held, serving, settings_for, wait_until

ONCE = Retries(attempts=1)
FULL = status(grpc.StatusCode.RESOURCE_EXHAUSTED, reason="QUEUE_FULL", retry_after=0.01)
LATENCIES = {"p50", "p90", "p95", "p99", "mean", "max"}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving(settings_for(MODEL)) as running:
        yield running


@pytest.fixture(scope="module")
def at(running: Running) -> dict[str, str]:
    """The environment that names the server."""
    return {"DRAGOMAN_ADDRESS": running.server.address}


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


# Loads


def load_of(
    address: str, then: Callable[[Load], None] = lambda load: None, **settings: Any
) -> Load:
    """Run a load to its end; ``then`` is called in another thread when it has begun."""

    async def run() -> Load:
        async with AsyncClient(address, timeout=PATIENCE, retries=ONCE) as client:
            load = Load(client, everyday_sentences(1), {}, LoadSettings(**settings))
            thread = threading.Thread(target=then, args=(load,))
            loop = asyncio.get_running_loop()
            loop.call_soon(thread.start)
            await load.run()
            thread.join(PATIENCE)
            return load

    return asyncio.run(run())


def test_waiting_for_a_slow_server_counts_from_when_a_call_was_to_be_sent(running: Running) -> None:
    """One call may be under way, and is held: those behind it are sent late, and say so."""
    settings = {"rate": 40.0, "seconds": 1.5, "warm_up": 0.0, "seed": 3}
    arrivals = list(poisson_arrivals(40.0, 1.5, 3))
    opened: list[float] = []

    with held(running.engine) as gate:

        def open_later(load: Load) -> None:
            gate.wait()
            wait_until(lambda: load.now > 0.6, "some calls to be late")
            opened.append(load.now)
            gate.open()

        load = load_of(
            running.server.address, open_later, max_under_way=1, stream_share=0.0, **settings
        )
    counted = load.statistics
    assert counted.failed == 0
    assert counted.arrived == counted.answered + counted.unsent == len(arrivals)
    # None that was to be sent before the gate opened can have been answered earlier than that.
    waited = sorted((opened[0] - moment for moment in arrivals if moment < opened[0]), reverse=True)
    assert len(waited) > 10
    assert counted.latency.max >= waited[0]
    for least in waited[: counted.answered]:
        longer = counted.answered - counted.latency.within(least * 0.97)
        assert longer >= sum(each >= least for each in waited[: counted.answered])
    assert counted.lag.max >= waited[1] * 0.97


def test_what_could_not_be_sent_in_time_is_not_forgotten(running: Running) -> None:
    with held(running.engine) as gate:

        def open_later(load: Load) -> None:
            wait_until(lambda: load.now > 0.5, "the end")
            gate.open()

        load = load_of(
            running.server.address,
            open_later,
            rate=50.0,
            seconds=0.4,
            warm_up=0.0,
            max_under_way=1,
        )
    arrivals = len(list(poisson_arrivals(50.0, 0.4, 1)))
    assert (load.statistics.answered, load.statistics.unsent) == (1, arrivals - 1)
    assert load.statistics.share_within(60.0) < 0.2


def test_a_closed_loop_has_so_many_calls_under_way(running: Running) -> None:
    most: list[int] = []

    with held(running.engine) as gate:

        def look(load: Load) -> None:
            wait_until(
                lambda: running.engine.waiting_requests + running.engine.used_rows >= 5,
                "five calls",
            )
            most.append(load.under_way)
            gate.open()

        load = load_of(running.server.address, look, concurrency=5, calls=20, stream_share=0.0)
    assert most == [5]
    assert (load.statistics.answered, load.statistics.arrived) == (20, 20)
    assert load.statistics.sentences >= 20


def test_streamed_calls_show_the_first_token(running: Running) -> None:
    load = load_of(running.server.address, concurrency=2, calls=8, stream_share=1.0)
    counted = load.statistics
    assert counted.first_token.count == counted.latency.count == 8
    assert counted.first_token.total < counted.latency.total
    assert 0 < counted.per_token.count <= 8
    assert counted.target_tokens > 20


def test_a_stream_hands_over_the_whole_translation_at_its_end(running: Running) -> None:
    whole: list[Translation] = []
    with Client(running.server.address, timeout=PATIENCE) as client:
        pieces = list(client.stream("Good morning. Good night.", ended=whole.append))
        assert len(pieces) > 1
        assert whole[0] == client.translate("Good morning. Good night.")
    assert ("".join(pieces), len(whole)) == (whole[0].text, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"rate": 0.0}, {"rate": math.nan}, {"seconds": -1.0}, {"concurrency": 0}),
        *({"calls": 0}, {"stream_share": 1.5}, {"warm_up": -1.0}, {"rate": 5.0, "calls": 5}),
    ],
)
def test_settings_that_can_t_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        LoadSettings(**wrong)


# The command


def measured(*arguments: str, **more: Any) -> dict[str, Any]:
    run = dragoman("bench", "--json", *arguments, **more)
    assert (run.returncode, run.stderr) == (0, b""), run.stderr.decode()
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_json_of_an_open_loop(at: dict[str, str]) -> None:
    found = measured(
        *("--rate", "20", "--seconds", "1", "--warm-up", "0.2", "--stream-share", "0.5"),
        environment=at,
    )
    assert set(found) == {
        *("format", "loop", "load", "where", "interrupted", "abandoned", "measured"),
    }
    assert (found["format"], found["loop"], found["interrupted"]) == (1, "open", False)
    assert found["where"].startswith("en-pt at ")
    figures = found["measured"]
    assert set(figures) == {
        *("seconds", "calls", "throughput", "latency_ms", "first_token_ms", "per_token_ms"),
        *("client_lag_ms", "errors", "timeline"),
    }
    arrivals = [moment for moment in poisson_arrivals(20.0, 1.2, 1) if moment >= 0.2]
    assert figures["calls"] == {
        "arrived": len(arrivals),
        "answered": len(arrivals),
        "failed": 0,
        "unsent": 0,
    }
    for name in ("latency_ms", "first_token_ms", "per_token_ms", "client_lag_ms"):
        assert set(figures[name]) == LATENCIES
        ordered = [figures[name][key] for key in ("p50", "p90", "p95", "p99", "max")]
        assert ordered == sorted(ordered)
    assert figures["throughput"]["sentences_per_second"] > 0
    assert figures["throughput"]["target_tokens_per_second"] > 0
    assert sum(slot["answered"] for slot in figures["timeline"]) == len(arrivals)
    assert figures["errors"] == []


def test_errors_are_counted_by_code_and_reason_and_nothing_is_tried_again() -> None:
    wrong = status(grpc.StatusCode.INTERNAL, reason="ENGINE_FAULT")
    servicer = Scripted(None, FULL, wrong, FULL, None)
    with listening(servicer) as address:
        found = measured(
            *("--calls", "9", "--concurrency", "1", "--stream-share", "0"),
            environment={"DRAGOMAN_ADDRESS": address},
        )
    assert servicer.calls == 10  # the first to see whether it can be asked at all
    assert found["measured"]["calls"]["answered"] == 6
    counted = {(e["code"], e["reason"]): e["count"] for e in found["measured"]["errors"]}
    assert counted == {("RESOURCE_EXHAUSTED", "QUEUE_FULL"): 2, ("INTERNAL", "ENGINE_FAULT"): 1}
    assert all(set(error["after_ms"]) == LATENCIES for error in found["measured"]["errors"])


def test_where_every_call_is_refused_it_says_so_after_the_figures() -> None:
    with listening(Scripted(None, *[FULL] * 3)) as address:
        run = dragoman(
            *("bench", "--calls", "3", "--stream-share", "0", "--address", address),
        )
    assert error_of(run, 3) == "so it is"
    assert "RESOURCE_EXHAUSTED" in run.stdout.decode()


def test_the_report_and_the_picture(at: dict[str, str], tmp_path: Path) -> None:
    picture = tmp_path / "load.png"
    run = dragoman(
        *("bench", "--calls", "12", "--stream-share", "0.5", "--plot", picture), environment=at
    )
    assert (run.returncode, run.stderr) == (0, b"")
    said = run.stdout.decode()
    for part in ("sentences/s", "12 answered", "p95", "whole call", "first token", str(picture)):
        assert part in said
    pixels = imread(picture)  # reads the whole of it, so it is one
    assert pixels.shape[0] > 800
    assert pixels.shape[1] > 1200
    assert pixels[..., :3].std() > 0.05
    assert not list(tmp_path.glob(".partial*"))


def test_the_highest_rate_is_one_that_was_met_below_all_that_were_not(at: dict[str, str]) -> None:
    run = dragoman(
        *("bench", "--find-rate", "--target-p95", "0.05", "--seconds", "0.2", "--warm-up", "0"),
        "--json",
        environment=at,
    )
    found = json.loads(run.stdout)
    search = found["find_rate"]
    met = [trial["rate"] for trial in search["trials"] if trial["met"]]
    missed = [trial["rate"] for trial in search["trials"] if not trial["met"]]
    assert met or missed
    assert search["rate"] == max((rate for rate in met if rate < min(missed)), default=None)
    assert run.returncode == (5 if search["rate"] is None else 0)
    assert all((trial["in_time"] >= 0.95) == trial["met"] for trial in search["trials"])
    if search["rate"] is not None:
        assert (found["loop"], found["load"]["rate"]) == ("open", search["rate"])


def test_a_search_is_drawn_and_so_is_a_load_without_an_answer(tmp_path: Path) -> None:
    picture = tmp_path / "search.png"
    tried = [Tried(10.0, 0.1, True), Tried(20.0, 0.4, False), Tried(40.0, math.nan, False)]
    draw(Statistics(), "nothing", picture, trials=tried, target=0.2)
    assert imread(picture)[..., :3].std() > 0.02


def test_no_rate_meets_a_microsecond(at: dict[str, str]) -> None:
    run = dragoman(
        *("bench", "--find-rate", "--target-p95", "0.000001", "--seconds", "0.05"),
        *("--warm-up", "0"),
        environment=at,
    )
    assert (run.returncode, run.stderr) == (5, b"")
    assert "no rate that was tried met" in run.stdout.decode()


@pytest.mark.parametrize("flags", [("--rate", "20"), ("--concurrency", "3")])
def test_ctrl_c_shows_what_was_measured(
    running: Running, at: dict[str, str], flags: tuple[str, str]
) -> None:
    answered = 'dragoman_requests_total{code="OK",rpc="Translate"}'
    before = running.metric(answered)
    arguments = ("bench", "--json", "--seconds", "600", "--warm-up", "0", *flags)
    with running_dragoman(*arguments, environment=at) as process:
        wait_until(lambda: running.metric(answered) > before + 10, "some calls")
        process.send_signal(signal.SIGINT)
        said, complaint = process.communicate(timeout=PATIENCE)
    assert (process.returncode, complaint) == (130, b"")
    found = json.loads(said)
    assert found["interrupted"] is True
    assert found["measured"]["calls"]["answered"] >= 5
    assert found["measured"]["calls"]["failed"] == 0
    assert 0 < found["measured"]["seconds"] < 500
    running.wait_until_idle()  # what was under way has been cancelled on the server too


def test_the_live_view_is_shown_on_a_terminal(at: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, **at, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(
        [*CTRL_C, *COMMAND, "bench", "--seconds", "0.6", "--warm-up", "0"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # so Linux says that the other end is closed
        pass
    finally:
        os.close(ours)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "answered/s" in shown.decode()
    assert "closed loop, 8 under way" in shown.decode()
    assert "sentences/s" in said.decode()


def test_sparks_are_as_high_as_the_values() -> None:
    assert sparks([0.0, 4.0, math.nan, 8.0]) == "▁▅ █"
    assert sparks([0.0, 0.0]) == "▁▁"
    assert sparks([]) == ""


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"find_rate": True}, "--target-p95"),
        ({"find_rate": True, "target_p95": 1.0, "rate": 5.0}, "--rate"),
        ({"find_rate": True, "target_p95": 5.0, "seconds": 10.0}, "--seconds"),
        ({"target_p95": 0.0}, "--target-p95"),
        ({"rate": -3.0}, "rate is -3"),
        ({"plot": Path("load.gif")}, ".png"),
        ({"file": Path("/dev/null")}, "regular file"),
    ],
)
def test_what_is_wrong_is_found_before_a_server_is_asked(wrong: dict[str, Any], says: str) -> None:
    with nobody() as address, pytest.raises(ConfigurationError, match=says):
        bench(address=address, **wrong)


@pytest.mark.parametrize(
    ("flags", "says"),
    [(("--model", "other"), "dragoman models"), (("--find-rate",), "--target-p95")],
)
def test_what_is_wrong_is_said_in_one_line(
    at: dict[str, str], flags: tuple[str, ...], says: str
) -> None:
    assert says in error_of(dragoman("bench", *flags, environment=at), 2)


def test_files_without_text_are_refused(at: dict[str, str], tmp_path: Path) -> None:
    empty, binary, missing = tmp_path / "empty", tmp_path / "binary", tmp_path / "missing"
    empty.write_text("\n\n")
    binary.write_bytes(b"\xff\xfe\n")
    with pytest.raises(ConfigurationError, match="no text"):
        next(lines_of(empty))
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        next(lines_of(binary))
    assert str(missing) in error_of(dragoman("bench", "--file", missing, environment=at), 1)


def test_where_no_server_is_it_says_how_to_start_one() -> None:
    with nobody() as address:
        run = dragoman("bench", "--timeout", "1", "--address", address)
    assert "dragoman serve" in error_of(run, 3)


def test_the_sdk_does_not_load_it() -> None:
    script = (
        "import sys, dragoman_client\n"
        "assert not [name for name in sys.modules if 'bench' in name], sys.modules\n"
        "import dragoman_cli.bench.command\n"
        "assert not {'numpy', 'matplotlib', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE)
