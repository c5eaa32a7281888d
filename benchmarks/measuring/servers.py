"""Servers as processes of their own, with their memory, and a client of them in this process."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dragoman_client import AsyncClient, Options, Translation
from dragoman_server.runtime.memory import resident_bytes

PATIENCE = 600.0
"""Seconds that a call may take: nothing that is measured is to run into its deadline."""
_BENCHMARKS = Path(__file__).parents[1]
_DRAGOMAN = (sys.executable, "-m", "dragoman_cli")


@dataclass(frozen=True)
class Process:
    """A server that is ready."""

    address: str
    pid: int

    def memory(self) -> int:
        """Return the bytes in memory of the process and its workers; what they share counts once.

        It is Linux's proportional set size.
        """
        tasks = Path(f"/proc/{self.pid}/task")
        if not tasks.exists():
            raise SystemExit("memory is measured on Linux only")
        workers = [
            pid for task in tasks.iterdir() for pid in (task / "children").read_text().split()
        ]
        return resident_bytes([self.pid, *map(int, workers)])


class MemoryWatch:
    """Looks at the memory of a server again and again, in a thread."""

    def __init__(self, process: Process, every: float = 0.25) -> None:
        self._process = process
        self._every = every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.seen: list[int] = []
        """Bytes, at each look."""

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._every):
            self.seen.append(self._process.memory())


@contextmanager
def dragoman_server(
    bundle: Path,
    log: Path,
    *flags: str,
    command: Sequence[str] = _DRAGOMAN,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Process]:
    """Start ``dragoman serve`` on a free port.

    ``command`` is what plays ``dragoman``, ``variables`` are added to its environment.
    """
    arguments = [
        *command,
        "serve",
        str(bundle),
        "--listen",
        "127.0.0.1:0",
        "--http",
        "",
        "--metrics",
        "",
    ]
    with _started([*arguments, *flags], log, variables) as process:
        yield process


@contextmanager
def ctranslate2_server(model: Path, tokenizer: Path, log: Path, *flags: str) -> Iterator[Process]:
    """Start CTranslate2 behind a plain gRPC server on a free port."""
    arguments = ["-m", "peers.ctranslate2_server", str(model), str(tokenizer), *flags]
    with _started([sys.executable, *arguments], log) as process:
        yield process


@contextmanager
def _started(
    command: Sequence[str], log: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Process]:
    """Start a server that says where it listens in a line that begins with gRPC."""
    kept = {name: value for name, value in os.environ.items() if "DRAGOMAN" not in name}
    paths = [str(_BENCHMARKS), os.environ.get("PYTHONPATH", "")]
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    kept |= variables
    with log.open("a") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=kept
        )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if (words := line.split()) and words[0] == "gRPC":
                yield Process(words[1], process.pid)
                break
        else:
            raise SystemExit(f"the server did not start:\n{log.read_text()[-2000:]}")
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


class Caller:
    """The SDK's async client on an event loop of its own, for code without one."""

    def __init__(self, address: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = AsyncClient(address, timeout=PATIENCE)

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def translate(
        self, texts: Sequence[str], concurrent: int, options: Options
    ) -> list[Translation]:
        """Send a call for each text, so many under way at a time."""
        found: list[Translation | None] = [None] * len(texts)

        async def all_of_them() -> None:
            left = iter(enumerate(texts))

            async def person() -> None:
                for number, text in left:
                    found[number] = await self._client.translate(text, options=options)

            await asyncio.gather(*(person() for _ in range(concurrent)))

        self._do(all_of_them())
        return [one for one in found if one is not None]
