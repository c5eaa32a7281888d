"""``dragoman serve`` as a process of its own: for signals, exit codes, and what it writes."""

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from support import MODEL
from support.command import DRAGOMAN, clean_environment
from support.service_running import PATIENCE, scrape

COMMAND = DRAGOMAN[1:]
SMALL = ("--rows", "4", "--max-beam", "1", "--workers", "0", "--lanes", "1", "--threads", "1")


class Process:
    """A server that was started; ``ready`` waits until it says so."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                env=clean_environment(environment),
            )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        self.banner: list[str] = []
        self.address = self.metrics_address = ""

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line.rstrip())
        self._lines.put("")

    def wait_until_ready(self) -> None:
        """Reads the banner, whose last line is about metrics."""
        while not self.metrics_address:
            line = self._lines.get(timeout=PATIENCE)
            assert line, f"it ended with {self.process.wait(PATIENCE)}: {self._log.read_text()}"
            self.banner.append(line)
            words = line.split()
            if words[0] == "gRPC":
                self.address = words[1]
            elif words[0] == "metrics":
                self.metrics_address = words[1].removeprefix("http://").removesuffix("/metrics")

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        code = self.process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        return code

    @property
    def errors(self) -> str:
        """What it wrote to standard error."""
        return self._log.read_text()

    @property
    def log(self) -> list[dict[str, Any]]:
        """Where it is JSON."""
        return [json.loads(line) for line in self.errors.splitlines() if line.startswith("{")]

    def metrics(self) -> dict[str, float]:
        return scrape(self.metrics_address)

    @contextmanager
    def connected(self) -> Iterator[tuple[TranslationServiceStub, health_pb2_grpc.HealthStub]]:
        with grpc.insecure_channel(
            self.address, options=[("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            yield TranslationServiceStub(channel), health_pb2_grpc.HealthStub(channel)


def is_serving(health: health_pb2_grpc.HealthStub) -> bool:
    response = health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
    return bool(response.status == health_pb2.HealthCheckResponse.SERVING)


@contextmanager
def started(
    directory: Path,
    *flags: str | Path,
    bundles: tuple[Path, ...] = (MODEL,),
    wedge: Path | None = None,
    environment: Mapping[str, str] | None = None,
    until_ready: bool = True,
) -> Iterator[Process]:
    """On ports that are free. Killed in the end where it still runs.

    ``wedge``: for as long as this file exists, the engine does not move.
    """
    script = (str(Path(__file__).with_name("service_wedged.py")), str(wedge)) if wedge else COMMAND
    free = [] if "--listen" in flags else ["--listen", "127.0.0.1:0"]
    free += [] if "--http" in flags else ["--http", ""]
    arguments = [*script, "serve", *bundles, *free, "--metrics", "127.0.0.1:0", *flags]
    process = Process(list(map(str, arguments)), environment or {}, directory / "log")
    try:
        if until_ready:
            process.wait_until_ready()
        yield process
    finally:
        if process.process.poll() is None:
            process.process.kill()
        process.wait()
