"""A server with workers that sleep, a load on it, and what it did, in the time of its machine."""

import asyncio
import os
import re
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dragoman_cli.bench.texts import everyday_sentences
from dragoman_client import AsyncClient
from measuring.servers import PATIENCE, Process, dragoman_server
from simulation.pace import Pace
from subjects import catalogue

FRONT = (sys.executable, "-m", "simulation.front")
CONNECTIONS = 8
"""Connections that clients share."""


@dataclass(frozen=True)
class Load:
    """What clients do: each sends its next call when the last is answered."""

    callers: int
    texts: int
    """Texts of each call."""
    seconds: float
    """Seconds here for which that is measured."""


@dataclass(frozen=True)
class Found:
    """What a simulated server did, in seconds of the simulated machine."""

    rate: float
    """Sentences a second."""
    busy: float
    """Workers that were in a turn, on average."""
    rows: float
    """Rows of a step, on average."""
    turn_seconds: float
    """Seconds of a turn, but for the encoder."""
    tokens: float
    """Steps of a sentence, on average."""
    loop_share: float
    """Share of a core that the front's event loop took."""
    rest_share: float
    """Share of a core that the front's other threads took."""
    loop_seconds: float
    """Seconds of the event loop for each sentence."""
    again: float
    """Sentences that were translated again, which are none."""


class Simulated:
    """A simulated server that runs."""

    def __init__(self, process: Process, metrics: str, pace: Pace) -> None:
        self._process = process
        self._metrics = metrics
        self._pace = pace

    def put(self, load: Load) -> Found:
        """Put a load on the server, and return what it did."""
        return asyncio.run(self._put(load))

    async def _put(self, load: Load) -> Found:
        async with AsyncClients(self._process.address) as clients:
            # Numbers are looked for in translations, and these have none.
            texts = (text for text in everyday_sentences(1) if not re.search(r"\d", text))

            async def caller(number: int) -> None:
                while True:
                    asked = [next(texts) for _ in range(load.texts)]
                    await clients.of(number).translate_batch(asked)

            callers = [asyncio.create_task(caller(number)) for number in range(load.callers)]
            dilation = self._pace.dilation
            await asyncio.sleep(load.seconds / 4)
            before = await asyncio.to_thread(self._look)
            await asyncio.sleep(load.seconds)
            after = await asyncio.to_thread(self._look)
            failed = [task for task in callers if task.done()]
            for task in callers:
                task.cancel()
            await asyncio.gather(*callers, return_exceptions=True)
            if failed:
                raise SystemExit(f"a call failed: {failed[0].exception()!r}")
        grown = {name: after[name] - before[name] for name in after}
        seconds = grown["time"] / dilation
        sentences, turns = grown["sentences"], max(1, grown["steps"])
        return Found(
            rate=sentences / seconds,
            busy=(grown["step_seconds"] + grown["encode_seconds"]) / grown["time"],
            rows=grown["rows"] / turns,
            turn_seconds=grown["step_seconds"] / turns / dilation,
            tokens=grown["tokens"] / max(1, sentences),
            loop_share=grown["loop"] / seconds,
            rest_share=(grown["process"] - grown["loop"]) / seconds,
            loop_seconds=grown["loop"] / max(1, sentences),
            again=grown["again"],
        )

    def _look(self) -> dict[str, float]:
        with urllib.request.urlopen(self._metrics) as response:  # noqa: S310 - our own
            lines = response.read().decode().splitlines()
        known: dict[str, float] = {}
        for line in lines:
            if line[:1] != "#":
                name, _, value = line.rpartition(" ")
                plain = name.partition("{")[0]
                known[plain] = known.get(plain, 0.0) + float(value)
        pid = self._process.pid
        return {
            "time": time.monotonic(),
            "sentences": known["dragoman_sentences_total"],
            "steps": known["dragoman_step_duration_seconds_count"],
            "step_seconds": known["dragoman_step_duration_seconds_sum"],
            "encode_seconds": known["dragoman_encode_duration_seconds_sum"],
            "rows": known["dragoman_step_rows_sum"],
            "tokens": known["dragoman_target_tokens_total"],
            "again": known["dragoman_retried_sentences_total"],
            "loop": _loop_seconds(pid),
            "process": _process_seconds(pid),
        }


def _loop_seconds(pid: int) -> float:
    """Return the seconds that the first thread of a process has computed."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def _process_seconds(pid: int) -> float:
    """Return the seconds that all threads of a process have computed, those included that ended."""
    of_user, of_system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(of_user) + int(of_system)) / os.sysconf("SC_CLK_TCK")


class AsyncClients:
    """Several connections to one server."""

    def __init__(self, address: str) -> None:
        self._clients = [AsyncClient(address, timeout=PATIENCE) for _ in range(CONNECTIONS)]

    async def __aenter__(self) -> "AsyncClients":
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients:
            await client.close()

    def of(self, caller: int) -> AsyncClient:
        return self._clients[caller % CONNECTIONS]


@contextmanager
def simulated(pace: Pace, workers: int, rows: int, log: Path) -> Iterator[Simulated]:
    """Start a server with workers that sleep, of so many rows each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = ["--workers", str(workers), "--threads", "1", "--no-pin", "--no-share-weights"]
    flags += ["--rows", str(workers * rows), "--max-beam", "1", "--stall", "600"]
    flags += ["--http", "", "--metrics", f"127.0.0.1:{port}", "--log-level", "warning"]
    # Calls take many times as long as they would.
    flags += ["--max-deadline", str(PATIENCE), "--connection-age", str(10 * PATIENCE)]
    variables = {**pace.environment, "OMP_NUM_THREADS": "1"}
    with dragoman_server(
        catalogue.EN_PT, log, *flags, command=FRONT, variables=variables
    ) as process:
        yield Simulated(process, f"http://127.0.0.1:{port}/metrics", pace)
