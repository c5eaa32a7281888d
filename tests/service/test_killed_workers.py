"""A server whose workers are killed and stopped for a minute under sixteen clients: nothing fails.

What the suite does in little (``test_workers``) is done here at length, from outside, with a server
that is a process of its own: ``make test-slow``.
"""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import gt
from pathlib import Path

import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from support.service_process import Process, started
from support.service_running import wait_until

pytestmark = pytest.mark.slow

SECONDS = 60.0
EVERY = 2.0
"""Seconds between two kills, if calls are answered meanwhile: on a busy machine, workers that are
killed before they have started would make clients wait for ever."""
CLIENTS = 16
PATIENCE = 300.0
"""Seconds that a call may take: it waits for workers that start, on a machine that may be busy."""
FLAGS = ("--workers", "3", "--rows", "24", "--max-beam", "4", "--threads", "1", "--no-pin")
TEXTS = [
    f"{who} {what}{when}."
    for who in ("Tom", "My sister", "The old man next door")
    for what in ("forgot the keys", "would like to buy a house", "is afraid of the dog")
    for when in ("", " this morning, although we had told them to wait for us")
]
PLAIN, BEAM = pb.Options(), pb.Options(beam_size=4, alternatives=2, token_scores=True)
DRAWN = pb.Options(sampling=pb.Sampling(temperature=1.3, seed=9))
LONG = pb.Options(min_tokens=80, alignment=True)
Call = Callable[[TranslationServiceStub], bytes]


def translate(options: pb.Options, texts: list[str]) -> Call:
    def call(stub: TranslationServiceStub) -> bytes:
        request = pb.TranslateRequest(texts=texts, options=options)
        response = stub.Translate(request, timeout=PATIENCE)
        return b"".join(map(without_times, response.translations))

    return call


def stream(options: pb.Options, text: str) -> Call:
    def call(stub: TranslationServiceStub) -> bytes:
        request = pb.TranslateStreamRequest(text=text, options=options)
        *deltas, last = stub.TranslateStream(request, timeout=PATIENCE)
        assert "".join(event.delta for event in deltas) == last.translation.text
        return without_times(last.translation)

    return call


def bulk(options: pb.Options, texts: list[str]) -> Call:
    def requests() -> Iterator[pb.TranslateBulkRequest]:
        for number, text in enumerate(texts):
            yield pb.TranslateBulkRequest(id=str(number), text=text, options=options)

    def call(stub: TranslationServiceStub) -> bytes:
        found = {each.id: each for each in stub.TranslateBulk(requests(), timeout=PATIENCE)}
        assert not [each.error for each in found.values() if each.HasField("error")]
        return b"".join(without_times(found[str(n)].translation) for n in range(len(texts)))

    return call


def without_times(translation: pb.Translation) -> bytes:
    kept = pb.Translation()
    kept.CopyFrom(translation)
    kept.ClearField("timing")
    return kept.SerializeToString(deterministic=True)


CALLS: list[Call] = [
    *(translate(way, [text]) for way in (PLAIN, BEAM, DRAWN, LONG) for text in TEXTS[:6]),
    *(translate(way, TEXTS) for way in (PLAIN, BEAM)),
    *(stream(way, text) for way in (PLAIN, BEAM, DRAWN, LONG) for text in TEXTS[6:12]),
    *(bulk(way, TEXTS * 2) for way in (PLAIN, BEAM, DRAWN, LONG)),
]


class Clients:
    """Threads that call as long as they are told to, and compare."""

    def __init__(self, server: Process, alone: list[bytes]) -> None:
        self._server = server
        self._alone = alone
        self._over = threading.Event()
        self.calls = [0] * CLIENTS
        self._pool = ThreadPoolExecutor(CLIENTS)

    def __enter__(self) -> "Clients":
        self._done = [self._pool.submit(self._call, number) for number in range(CLIENTS)]
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._pool.shutdown()
        for done in self._done:
            done.result()

    def _call(self, number: int) -> None:
        rng = random.Random(number)
        with self._server.connected() as (stub, _):
            while not self._over.is_set():
                place = rng.randrange(len(CALLS))
                assert CALLS[place](stub) == self._alone[place], place
                self.calls[number] += 1

    def check(self) -> None:
        """Raise what a client raised."""
        for done in self._done:
            if done.done():
                done.result()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with started(tmp_path_factory.mktemp("server"), *FLAGS, "--stall", "120") as process:
        yield process


@pytest.fixture(scope="module")
def alone(server: Process) -> list[bytes]:
    """What calls say while nothing happens to any worker, one after the other."""
    with server.connected() as (stub, _):
        return [call(stub) for call in CALLS]


def workers_of(server: Process) -> list[int]:
    """Return the processes of the workers, which are the server's only children."""
    threads = [*Path(f"/proc/{server.process.pid}/task").iterdir()]
    found = [int(pid) for thread in threads for pid in (thread / "children").read_text().split()]
    return [pid for pid in found if is_alive(pid)]


def has_ended(pid: int) -> bool:
    return not is_alive(pid)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_no_call_fails_and_no_byte_differs_while_workers_are_killed(
    server: Process, alone: list[bytes]
) -> None:
    rng, kills = random.Random(4), 0
    with Clients(server, alone) as clients:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            before = sum(clients.calls)
            os.kill(rng.choice(workers_of(server)), signal.SIGKILL)
            kills += 1
            time.sleep(EVERY)
            while sum(clients.calls) == before:
                clients.check()
                time.sleep(0.1)
    metrics = server.metrics()
    assert all(clients.calls)
    assert metrics['dragoman_lost_workers_total{model="en-pt"}'] >= kills
    assert metrics['dragoman_rerun_sentences_total{model="en-pt"}'] >= 1
    wait_until(lambda: len(workers_of(server)) == 3, "all workers")


def test_a_worker_that_is_stopped_is_replaced_and_nothing_fails(
    tmp_path: Path, alone: list[bytes]
) -> None:
    with started(tmp_path, *FLAGS, "--stall", "10") as server:
        with Clients(server, alone) as clients:
            wait_until(lambda: any(clients.calls), "calls")
            stopped = workers_of(server)[1]
            os.kill(stopped, signal.SIGSTOP)
            wait_until(partial(has_ended, stopped), "the end of what was stopped")
            before = list(clients.calls)
        assert all(map(gt, clients.calls, before))
        metrics = server.metrics()
        assert metrics['dragoman_lost_workers_total{model="en-pt"}'] >= 1


def test_no_worker_is_left_when_the_front_is_killed(server: Process, alone: list[bytes]) -> None:
    workers = workers_of(server)
    assert workers
    server.signal(signal.SIGKILL)
    until = time.monotonic() + 5
    while any(map(is_alive, workers)):
        assert time.monotonic() < until
        time.sleep(0.05)
