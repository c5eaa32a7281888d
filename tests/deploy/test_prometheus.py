"""A real Prometheus scrapes a real server under load: every expression in deploy/ returns data."""

import json
import math
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from dragoman.v1 import translation_pb2 as pb
from support import deploy_expressions as expressions
from support.deploy_tools import DEPLOY, read_yaml, tool
from support.ports import free_port
from support.service_process import Process, is_serving, started
from support.service_running import PATIENCE

SERVER = ("--rows", "4", "--max-beam", "2", "--lanes", "1", "--threads", "1")
FULL = ("--max-waiting-requests", "2")
"""So little that a few calls at once are too many."""


class Prometheus:
    def __init__(self, address: str) -> None:
        self._address = address

    def get(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self._address}{path}?{query}", timeout=30) as found:
            return json.load(found)["data"]

    def values(self, expression: str) -> list[float]:
        """Without those that are no number."""
        result = self.get("/api/v1/query", query=expression)["result"]
        found = [float(sample["value"][1]) for sample in result]
        return [value for value in found if not math.isnan(value)]


@contextmanager
def prometheus(directory: Path, target: str) -> Iterator[Prometheus]:
    """With the configuration of deploy/, but for the target, and for intervals that are short."""
    program = tool("Debian's package prometheus", "prometheus")
    config = read_yaml(DEPLOY / "prometheus" / "prometheus.yml")
    config["global"] = {"scrape_interval": "500ms", "evaluation_interval": "500ms"}
    config["rule_files"] = [str(path) for path in expressions.RULES]
    (job,) = config["scrape_configs"]
    del job["dns_sd_configs"]
    job["static_configs"] = [{"targets": [target], "labels": expressions.POD}]
    path = directory / "prometheus.yml"
    path.write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    arguments = (f"--config.file={path}", f"--storage.tsdb.path={directory / 'data'}")
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *arguments, f"--web.listen-address={address}"], stdout=log, stderr=log
        )
    try:
        found = Prometheus(address)
        until = time.monotonic() + PATIENCE
        while not answers(found):
            assert process.poll() is None, (directory / "prometheus.log").read_text()
            assert time.monotonic() < until, "Prometheus does not answer"
            time.sleep(0.05)
        yield found
    finally:
        process.terminate()
        process.wait(PATIENCE)


def answers(found: Prometheus) -> bool:
    try:
        return found.values('up{job="dragoman"}') == [1.0]
    except OSError:
        return False


class Load:
    """All kinds of calls until it is told to stop: good ones, wrong ones, and too many at once."""

    def __init__(self, server: Process) -> None:
        self._server = server
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")
        self.error: BaseException | None = None

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        assert self.error is None

    def _run(self) -> None:
        try:
            with self._server.connected() as (stub, _):
                while not self._stop.is_set():
                    self._round(stub)
        except BaseException as error:
            self.error = error

    @staticmethod
    def _round(stub: Any) -> None:
        good = pb.TranslateRequest(texts=["Good morning, how are you?", "Thank you."])
        wrong = pb.TranslateRequest(texts=["Hello."], options=pb.Options(beam_size=99))
        many = [stub.Translate.future(good, timeout=PATIENCE) for _ in range(16)]
        many.append(stub.Translate.future(wrong, timeout=PATIENCE))
        codes = {call.code() for call in many}  # waits for each
        assert codes <= {
            grpc.StatusCode.OK,
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            grpc.StatusCode.INVALID_ARGUMENT,
        }
        stub.Score(
            pb.ScoreRequest(pairs=[pb.ScorePair(source="Good morning.", target="Bom dia.")]),
            timeout=PATIENCE,
        )
        list(stub.TranslateStream(pb.TranslateStreamRequest(text="Good night."), timeout=PATIENCE))
        items = [pb.TranslateBulkRequest(id=str(n), text="Good day.") for n in range(3)]
        list(stub.TranslateBulk(iter(items), timeout=PATIENCE))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Process, Prometheus]]:
    directory = tmp_path_factory.mktemp("prometheus")
    with (
        started(directory, *SERVER, *FULL) as server,
        prometheus(directory, server.metrics_address) as found,
    ):
        yield server, found


def wait_for(found: Prometheus, wanted: dict[str, str]) -> dict[str, list[float]]:
    """Values by expression; fails with the names of those that have none in the end."""
    got: dict[str, list[float]] = {}
    until = time.monotonic() + 60
    while missing := {name: text for name, text in wanted.items() if name not in got}:
        assert time.monotonic() < until, f"no data: {missing}"
        for name, text in missing.items():
            if values := found.values(text):
                got[name] = values
        time.sleep(0.2)
    return got


def test_every_expression_returns_data(watched: tuple[Process, Prometheus]) -> None:
    server, found = watched
    # Where nobody waits, the autoscaler is told so, instead of nothing.
    assert wait_for(found, {"adapter": expressions.adapter()}) == {"adapter": [0.0]}
    wanted = expressions.everything()
    assert len(wanted) > 60
    with Load(server):
        got = wait_for(found, wanted)
        # Not only zeros: what the load did is seen.
        for name in ("errors", "refusals"):
            assert got[f"record job:dragoman_{name}:ratio_rate5m"], name
        refused = wait_for(found, {"": "job:dragoman_refusals:ratio_rate5m > 0"})
        assert refused
    (groups,) = [found.get("/api/v1/rules")["groups"]]
    judged = [rule for group in groups for rule in group["rules"]]
    assert len(judged) == len(expressions.rules("alert")) + len(expressions.rules("record"))
    assert {rule["name"] for rule in judged if rule["health"] != "ok"} == set()
    firing = {rule["name"] for rule in judged if rule.get("state") == "firing"}
    assert firing == set()


@pytest.mark.slow  # an engine that hangs is waited for
def test_an_engine_that_hangs_raises_the_alert(tmp_path: Path) -> None:
    wedge = tmp_path / "wedge"
    with (
        started(tmp_path, *SERVER, "--stall", "20", wedge=wedge) as server,
        prometheus(tmp_path, server.metrics_address) as found,
        server.connected() as (stub, health),
    ):
        firing = 'ALERTS{alertname="DragomanEngineStalled", alertstate="firing"}'
        assert found.values(firing) == []
        wedge.touch()
        call = stub.Translate.future(pb.TranslateRequest(texts=["Hello."]), timeout=PATIENCE)
        wait_for(found, {"the alert": firing})
        # Nobody restarts it before it has decided itself that the engine is lost.
        assert is_serving(health)
        assert call.code() is grpc.StatusCode.UNAVAILABLE
        assert server.wait() == 1
        assert found.values(firing), "it is forgotten as soon as the server has ended"
