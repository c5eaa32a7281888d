"""``dragoman bench`` as a command against real servers: figures, pictures and errors."""

import json
import math
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from matplotlib.image import imread

from dragoman_cli.bench.command import bench
from dragoman_cli.bench.plot import Tried, draw
from dragoman_cli.bench.schedule import poisson_arrivals
from dragoman_cli.bench.statistics import Statistics
from dragoman_cli.bench.texts import lines_of
from dragoman_client import ConfigurationError
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
from support.service_running import PATIENCE, Running, wait_until

FULL = status(grpc.StatusCode.RESOURCE_EXHAUSTED, reason="QUEUE_FULL", retry_after=0.01)
LATENCIES = {"p50", "p90", "p95", "p99", "mean", "max"}


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
    # What a busy machine answers after the window does not count as throughput.
    assert set(figures["throughput"]) == {
        *("calls_per_second", "sentences_per_second"),
        *("source_tokens_per_second", "target_tokens_per_second"),
    }
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
    [
        (("--model", "other"), "dragoman models"),
        (("--find-rate",), "--target-p95"),
        (("--rate", "5", "--concurrency", "8"), "--concurrency is for a closed loop"),
    ],
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
