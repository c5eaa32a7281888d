"""From the first moment to the exit code, with real signals to a real process."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import grpc
import pytest
from grpc import StatusCode
from grpc_health.v1 import health_pb2

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_server.errors import BundleError, ServerError
from support import MODEL
from support.service_process import COMMAND, SMALL, Process, is_serving, started
from support.service_running import (
    LONG,
    PATIENCE,
    few_rows,
    refusal_of,
    serving,
    settings_for,
    variant,
    wait_until,
)

TEXT = "This is the first sentence. Here is another one!\nAnd the last of all."
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def wedge(tmp_path: Path) -> Path:
    """For as long as this file exists, an engine does not move."""
    return tmp_path / "wedge"


class Load:
    """Clients that call again and again until they are turned away."""

    def __init__(self, stub: TranslationServiceStub) -> None:
        self.stub = stub
        self.fine: set[str] = set()
        self.refused: dict[str, grpc.RpcError] = {}
        self.enough = threading.Event()

    def call(self, client: int) -> None:
        for number in range(10_000):
            name = f"{client}-{number}"
            try:
                self._call(client, metadata=[("x-request-id", name)], timeout=PATIENCE)
            except grpc.RpcError as error:
                self.refused[name] = error
                return
            self.fine.add(name)
            if len(self.fine) >= 20:
                self.enough.set()

    def _call(self, client: int, **how: Any) -> None:
        if client % 3:
            request = pb.TranslateRequest(texts=[TEXT] * 2)
            assert len(self.stub.Translate(request, **how).translations) == 2
        else:
            events = self.stub.TranslateStream(pb.TranslateStreamRequest(text=TEXT), **how)
            *deltas, last = events
            assert "".join(event.delta for event in deltas) == last.translation.text


def test_at_sigterm_under_load_nothing_that_was_admitted_is_lost(
    tmp_path: Path, wedge: Path
) -> None:
    grace = 100
    with (
        started(tmp_path, *SMALL, "--grace", str(grace), wedge=wedge) as process,
        process.connected() as (stub, health),
        ThreadPoolExecutor(12) as pool,
    ):
        load = Load(stub)
        clients = [pool.submit(load.call, client) for client in range(12)]
        assert load.enough.wait(PATIENCE)
        # What is under way takes a few seconds, so that the server has to wait for it.
        wedge.touch()
        age = 'dragoman_engine_heartbeat_age_seconds{model="en-pt"}'
        wait_until(lambda: process.metrics()[age] > 0.2, "an engine that is held")
        began = time.monotonic()
        process.signal(signal.SIGTERM)
        wait_until(lambda: not is_serving(health), "the drain")
        wait_until(lambda: process.metrics()[age] > 3, "a while")
        wedge.unlink()
        assert process.wait() == 0
        assert time.monotonic() - began < grace
        for client in clients:
            client.result(PATIENCE)
    calls = {line["request_id"]: line for line in process.log if "rpc" in line}
    # What the server calls well done has come to its client, whole.
    assert {name for name, line in calls.items() if line["code"] == "OK"} == load.fine
    for name, error in load.refused.items():
        if name in calls:
            found = refusal_of(error)
            assert found.code is StatusCode.UNAVAILABLE
            assert found.reason == calls[name]["reason"] == "DRAINING"
        else:  # it came when gRPC was closing, or closed
            assert error.code() in (StatusCode.UNAVAILABLE, StatusCode.CANCELLED)
    assert any(name in calls for name in load.refused), "none was told why"
    assert {line["code"] for line in calls.values()} <= {"OK", "UNAVAILABLE"}
    (drained,) = (line for line in process.log if line["message"] == "drained")
    assert drained["cut_off"] == 0
    messages = [line["message"] for line in process.log]
    assert messages.index("now serving") < messages.index("told to stop by SIGTERM")
    assert messages.index("told to stop by SIGTERM") < messages.index("now draining")


def calls_that_hang(process: Process, stub: TranslationServiceStub, wedge: Path) -> list[Any]:
    """One of each kind, the engine of which is wedged."""
    wedge.touch()
    item = pb.TranslateBulkRequest(id="1", text="Hello.")
    calls = [
        stub.Translate.future(pb.TranslateRequest(texts=["Hello."]), timeout=PATIENCE),
        stub.TranslateStream(pb.TranslateStreamRequest(text="Hello."), timeout=PATIENCE),
        stub.TranslateBulk(iter([item]), timeout=PATIENCE),
        stub.Score.future(
            pb.ScoreRequest(pairs=[pb.ScorePair(source="a", target="b")]), timeout=PATIENCE
        ),
    ]
    waiting = 'dragoman_waiting_sentences{model="en-pt"}'
    running = 'dragoman_running_sentences{model="en-pt"}'
    wait_until(lambda: (m := process.metrics())[waiting] + m[running] == 4, "calls that hang")
    return calls


def test_an_engine_that_is_wedged_is_reported_and_ends_the_process(
    tmp_path: Path, wedge: Path
) -> None:
    with (
        started(tmp_path, *SMALL, "--stall", "3", wedge=wedge) as process,
        process.connected() as (stub, health),
    ):
        watched = health.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
        assert next(watched).status == health_pb2.HealthCheckResponse.SERVING
        calls = calls_that_hang(process, stub, wedge)
        assert is_serving(health)
        assert next(watched).status == NOT_SERVING
        (answer,) = take_one(calls[2])
        assert answer.error.code == StatusCode.UNAVAILABLE.value[0]
        for call in (calls[0], calls[1], calls[3]):
            found = refusal_of(call.exception(PATIENCE))
            assert (found.code, found.reason) == (StatusCode.UNAVAILABLE, "ENGINE_STOPPED")
        assert process.wait() == 1
    (critical,) = (line for line in process.log if line["level"] == "critical")
    assert critical["message"] == "the engine of en-pt does not answer"
    assert critical["seconds"] > 3


def take_one(stream: Any) -> list[pb.TranslateBulkResponse]:
    return [next(stream)]


def test_an_engine_that_is_found_wedged_while_draining_ends_the_process_too(
    tmp_path: Path, wedge: Path
) -> None:
    with (
        started(tmp_path, *SMALL, "--stall", "3", "--grace", "1000", wedge=wedge) as process,
        process.connected() as (stub, _),
    ):
        calls = calls_that_hang(process, stub, wedge)
        process.signal(signal.SIGTERM)
        assert refusal_of(calls[0].exception(PATIENCE)).reason == "ENGINE_STOPPED"
        assert process.wait() == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_process_at_once(
    tmp_path: Path, wedge: Path, number: signal.Signals
) -> None:
    with (
        started(tmp_path, *SMALL, "--grace", "1000", wedge=wedge) as process,
        process.connected() as (stub, health),
    ):
        calls = calls_that_hang(process, stub, wedge)
        process.signal(number)
        wait_until(lambda: not is_serving(health), "the drain")
        assert process.process.poll() is None
        process.signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM
        assert calls[0].exception(PATIENCE).code() is StatusCode.UNAVAILABLE


def test_when_the_grace_is_over_the_process_ends_whatever_hangs(
    tmp_path: Path, wedge: Path
) -> None:
    with (
        started(tmp_path, *SMALL, "--grace", "0.5", "--stall", "900", wedge=wedge) as process,
        process.connected() as (stub, _),
    ):
        calls = calls_that_hang(process, stub, wedge)
        process.signal(signal.SIGTERM)
        assert refusal_of(calls[0].exception(PATIENCE)).reason == "DRAINING"
        assert process.wait() == 0
    (over,) = (line for line in process.log if line["message"] == "the grace is over")
    assert over["cut_off"] == 4


def test_an_engine_that_dies_fails_its_callers_and_ends_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(settings_for(engine=few_rows(1)), code=1) as running:
        request = pb.TranslateRequest(texts=["Hello."] * 10, options=LONG)
        calls = [running.stub.Translate.future(request, timeout=PATIENCE) for _ in range(5)]
        wait_until(lambda: running.engine.waiting_requests > 0 and running.engine.running > 0)

        def die(lane: int, now: float, pace: float = 0.0) -> NoReturn:
            raise MemoryError

        running.engine._scheduler.assign = die  # type: ignore[method-assign]
        reasons = {refusal_of(call.exception(PATIENCE)).reason for call in calls}
        # Those in the step may have been its cause.
        assert reasons <= {"ENGINE_FAULT", "ENGINE_STOPPED"}
        assert "ENGINE_STOPPED" in reasons
    assert "the engine of en-pt has died" in caplog.text


@pytest.fixture
def slow_bundle(tmp_path: Path) -> Path:
    """Its manifest is a pipe that nobody writes to: it can't be read."""
    path = variant(tmp_path, "slow")
    (path / "manifest.json").unlink()
    os.mkfifo(path / "manifest.json")
    return path


def test_a_server_that_is_told_to_stop_while_it_loads_ends(
    tmp_path: Path, slow_bundle: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    flags = (*SMALL, "--listen", address)
    with started(tmp_path, *flags, bundles=(MODEL, slow_bundle), until_ready=False) as process:
        process.address = address
        with process.connected() as (_, health):
            response = health.Check(
                health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=PATIENCE
            )
            assert response.status == NOT_SERVING
            process.signal(signal.SIGTERM)
            assert process.wait() == 0
    messages = [line["message"] for line in process.log]
    assert "told to stop before the models were loaded" in messages
    assert "now serving" not in messages


def test_the_banner_says_what_is_served_and_where(tmp_path: Path) -> None:
    with started(tmp_path, *SMALL) as process:
        ready, model, grpc_line, metrics_line = process.banner
        assert ready == "Dragoman is ready."
        for part in ("en-pt", "en → pt", "int8 on cpu", "1 × 5 rows", "MiB"):
            assert part in model
        assert process.address in grpc_line
        assert "no TLS, no keys" in grpc_line
        assert f"http://{process.metrics_address}/metrics" in metrics_line
        process.signal()
        assert process.wait() == 0


def test_a_server_that_can_not_start_says_why_in_a_line(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    run = subprocess.run(
        [sys.executable, *COMMAND, "serve", nowhere, "--http", "", "--metrics", "127.0.0.1:0"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr == f"dragoman: {nowhere}: no such bundle\n"


def test_a_bundle_that_can_not_be_served_is_refused(tmp_path: Path) -> None:
    odd = variant(tmp_path, "odd", source="?")
    with (
        pytest.raises(BundleError, match=r"'[?]' is not a language tag"),
        serving(settings_for(odd)),
    ):
        pass
    nothing_left = settings_for(odd, skip_refused=True)
    with pytest.raises(ServerError, match="no bundle could be loaded"), serving(nothing_left):
        pass


def test_an_address_that_is_taken_is_not_shared_in_silence() -> None:
    with serving(settings_for(engine=few_rows(1))) as running:
        same = settings_for(listen=running.server.address)
        with pytest.raises(ServerError, match=r"can't be listened on.*--listen"), serving(same):
            pass
        metrics = running.server.metrics_address
        same = settings_for(metrics=metrics)
        taken = f"can't be served on {metrics}.*--metrics"
        with pytest.raises(ServerError, match=taken), serving(same):
            pass
        assert running.translate("Hello.")


def test_clients_connect_again_from_time_to_time_and_lose_no_call() -> None:
    with serving(settings_for(MODEL, connection_age=0.3)) as running:
        states: list[grpc.ChannelConnectivity] = []
        running.channel.subscribe(states.append)
        request = pb.TranslateStreamRequest(text="Hello.\n" * 20, options=LONG)
        *_, last = running.stub.TranslateStream(request, timeout=PATIENCE)  # longer than that
        assert len(last.translation.segments) == 20
        # It had been told to go, and went when the call had ended.
        wait_until(lambda: grpc.ChannelConnectivity.IDLE in states[1:], "the end of a connection")
        assert running.translate("Good morning.")[0].text
