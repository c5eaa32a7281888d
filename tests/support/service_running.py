"""A server in this process, on an event loop of its own, and real clients of it over loopback."""

import asyncio
import json
import logging
import shutil
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_server.engine.core import Report
from dragoman_server.engine.engine import Engine
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.workers.engine import WorkerEngine
from dragoman_server.listeners import protocols
from dragoman_server.service.dispatch import Dispatcher
from dragoman_server.service.server import Server
from dragoman_server.service.settings import Limits, ServerSettings
from support import MODEL, engine_reports
from support.engine_reports import Gate

PATIENCE = 120.0
"""Seconds after which a test that waits fails; nothing waits that long."""
LONG = pb.Options(min_tokens=255, max_tokens=256)
"""As many steps as the default model can take, whatever it says."""
CALLS = "dragoman.calls"
"""The logger of calls."""


def few_rows(rows: int = 2, **settings: Any) -> EngineSettings:
    """One lane. Where nobody wants a beam, a row more than asked for is for whoever holds none."""
    return EngineSettings(
        **{"rows": rows, "workers": 0, "lanes": 1, "threads": 1, "max_beam": 1, **settings},
    )


def wait_until(holds: Callable[[], bool], what: str = "it") -> None:
    """For what there is no event to wait for."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.002)


class Running:
    """A server that runs."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.loop = loop
        self._channels = ExitStack()
        self.channel = self.connect()
        self.stub = TranslationServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def connect(self, *options: tuple[str, Any]) -> grpc.Channel:
        """A connection of its own."""
        own = ("grpc.use_local_subchannel_pool", 1)
        channel = grpc.insecure_channel(self.server.address, options=(own, *options))
        return self._channels.enter_context(channel)

    def disconnect(self) -> None:
        self._channels.close()

    @property
    def engine(self) -> Engine:
        """Of the first model, whose lanes are threads."""
        engine = next(iter(self.server.models)).dispatcher.engine
        assert isinstance(engine, Engine)
        return engine

    @property
    def workers(self) -> WorkerEngine:
        """The engine of the first model, whose lanes are processes."""
        engine = next(iter(self.server.models)).dispatcher.engine
        assert isinstance(engine, WorkerEngine)
        return engine

    def on_loop(self, work: Callable[[], Any]) -> Any:
        """What the server's own thread sees."""
        found: Future[Any] = Future()

        def run() -> None:
            try:
                found.set_result(work())
            except BaseException as error:
                found.set_exception(error)

        self.loop.call_soon_threadsafe(run)
        return found.result(PATIENCE)

    def tasks(self) -> int:
        """On the event loop, of whatever kind."""
        return int(self.on_loop(lambda: len(asyncio.all_tasks())))

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.server.stop)

    def is_healthy(self) -> bool:
        response = self.health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
        return bool(response.status == health_pb2.HealthCheckResponse.SERVING)

    def translate(
        self, *texts: str, options: pb.Options | None = None, model: str = ""
    ) -> list[pb.Translation]:
        request = pb.TranslateRequest(texts=texts, options=options, model=model)
        return list(self.stub.Translate(request, timeout=PATIENCE).translations)

    def metrics(self) -> dict[str, float]:
        return scrape(self.server.metrics_address)

    def metric(self, name: str) -> float:
        return self.metrics()[name]

    def wait_until_idle(self) -> None:
        """Nothing is left of any call: no row, no place in a queue, no work to wait for."""
        for model in self.server.models:
            _wait_until_free(model.dispatcher)
        calls = self.server.calls
        wait_until(lambda: not (calls.under_way or calls._streams), "the end of all calls")


def _wait_until_free(dispatcher: Dispatcher) -> None:
    engine = dispatcher.engine
    wait_until(lambda: not (engine.waiting or engine.running or engine.used_rows), "free rows")
    wait_until(lambda: not dispatcher._works, "the end of all works")


def scrape(address: str) -> dict[str, float]:
    """Series and their values."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE) as response:
        lines = response.read().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def settings_for(
    *bundles: Path,
    engine: EngineSettings | None = None,
    limits: Limits | None = None,
    **settings: Any,
) -> ServerSettings:
    return ServerSettings(
        **{
            "bundles": bundles or (MODEL,),
            "listen": "127.0.0.1:0",
            "metrics": "127.0.0.1:0",
            "http": "",
            "engine": engine or few_rows(16, max_beam=8),
            "limits": limits or Limits(),
            # Lanes are held by tests for as long as those need.
            "stall": 600.0,
            "grace": PATIENCE,
            **settings,
        }
    )


@contextmanager
def serving(
    settings: ServerSettings, *, until_ready: bool = True, code: int = 0
) -> Iterator[Running]:
    """A server on a thread of its own. Whatever it has not finished is cut off in the end."""
    started: Future[tuple[Server, asyncio.AbstractEventLoop]] = Future()
    ready = threading.Event()
    ended: Future[int] = Future()

    async def run() -> int:
        server = Server(settings, protocols(settings))
        started.set_result((server, asyncio.get_running_loop()))
        return await server.run(lambda _: ready.set())

    def main() -> None:
        try:
            ended.set_result(asyncio.run(run()))
        except BaseException as error:
            ended.set_exception(error)

    thread = threading.Thread(target=main, name="server", daemon=True)
    thread.start()
    server, loop = started.result(PATIENCE)
    wait_until(lambda: bool(server.address) or ended.done(), "an address")
    if until_ready:
        wait_until(lambda: ready.is_set() or ended.done(), "a server that is ready")
    if ended.done():
        ended.result()  # raises what it raised
    running = Running(server, loop)
    try:
        yield running
    finally:
        running.disconnect()
        if not loop.is_closed():
            running.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the server does not end"
    assert ended.result() == code


@dataclass(frozen=True)
class Refusal:
    """What a client is told when a call ends other than well."""

    code: grpc.StatusCode
    reason: str
    message: str
    metadata: dict[str, str]
    fields: tuple[str, ...]
    """That BadRequest names."""
    retry: float | None
    """Seconds, of RetryInfo."""


def read_status(status: Status) -> Refusal:
    """Checks what holds for every status of ours."""
    infos, fields, retry = [], [], None
    for detail in status.details:
        if detail.Is(ErrorInfo.DESCRIPTOR):
            detail.Unpack(info := ErrorInfo())
            infos.append(info)
        elif detail.Is(BadRequest.DESCRIPTOR):
            detail.Unpack(bad := BadRequest())
            fields += [violation.field for violation in bad.field_violations]
            assert all(violation.description for violation in bad.field_violations)
        else:
            assert detail.Is(RetryInfo.DESCRIPTOR)
            detail.Unpack(again := RetryInfo())
            retry = again.retry_delay.ToTimedelta().total_seconds()
    (info,) = infos
    assert info.domain == "dragoman"
    assert info.metadata["request_id"]
    code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
    assert bool(fields) == (code is grpc.StatusCode.INVALID_ARGUMENT)
    assert (retry is not None) == (code.name in ("RESOURCE_EXHAUSTED", "UNAVAILABLE"))
    return Refusal(code, info.reason, status.message, dict(info.metadata), tuple(fields), retry)


def refusal(call: Callable[[], object]) -> Refusal:
    """Makes a call that is to be refused."""
    try:
        call()
    except grpc.RpcError as error:
        return refusal_of(error)
    raise AssertionError("it was not refused")


def refusal_of(error: Any) -> Refusal:
    status = rpc_status.from_call(error)
    assert status is not None, f"{error.code()} without details: {error.details()}"
    found = read_status(status)
    assert error.details() == found.message
    assert dict(error.trailing_metadata())["x-request-id"] == found.metadata["request_id"]
    return found


class Reports(engine_reports.Reports):
    """The reports of an engine that runs; whoever took them before still does."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine
        self._deliver = engine._deliver
        engine._deliver = self._take

    def _take(self, report: Report) -> None:
        self.take(report)
        self._deliver(report)

    def leave(self) -> None:
        self.engine._deliver = self._deliver


@contextmanager
def reports_of(engine: Engine) -> Iterator[Reports]:
    reports = Reports(engine)
    try:
        yield reports
    finally:
        reports.leave()


@contextmanager
def held(engine: Engine) -> Iterator[Gate]:
    """A lane of this engine waits at its next report until the block ends, or the gate is open."""
    gate = Gate()
    with reports_of(engine) as reports:
        reports.at_report = gate
        try:
            yield gate
        finally:
            gate.open()


@contextmanager
def full(running: Running) -> Iterator[list[Any]]:
    """Every row is held by a call that takes long, until the block ends; yields those calls."""
    engine = running.engine
    rows = engine.resolved.lanes * engine.resolved.rows_per_lane
    gate = Gate()

    def hold(report: Report) -> None:
        wait_until(lambda: engine.waiting_requests + engine.used_rows >= rows, "calls for all rows")
        if engine.used_rows == rows:
            gate(report)

    with reports_of(engine) as reports:
        reports.at_report = hold
        name = engine.manifest.name
        request = pb.TranslateRequest(texts=["Hello."], options=LONG, model=name)
        try:
            calls = [running.stub.Translate.future(request, PATIENCE) for _ in range(rows)]
            gate.wait()
            yield calls
        finally:
            gate.open()


def teach_pace(running: Running, tokens_per_second: int = 1000) -> None:
    """As if the first model had been busy for a while: it knows how long a queue would take."""
    speed = running.engine.speed
    running.on_loop(lambda: speed.add_turn(time.monotonic(), 60 * tokens_per_second, 60.0))


def variant(
    directory: Path, name: str, source: str = "en", target: str = "pt", **more: object
) -> Path:
    """The default model under another name; ``more`` are other keys of its manifest."""
    path = shutil.copytree(MODEL, directory / name)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest |= {"name": name, "source_language": source, "target_language": target, **more}
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def facts_of(records: list[logging.LogRecord]) -> list[dict[str, Any]]:
    """Of the calls in a log."""
    return [record.facts for record in records if record.name == CALLS and hasattr(record, "facts")]
