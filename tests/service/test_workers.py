"""A server whose lanes are processes: real clients while those die, and what is left in the end."""

import hashlib
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_server.engine.workers.link import LinkState
from support.service_process import started
from support.service_running import (
    PATIENCE,
    Running,
    few_rows,
    serving,
    settings_for,
    variant,
    wait_until,
)

TEXTS = [f"The {n}. {what}." for n in range(4) for what in ("I forgot my keys", "She is tired")]
WAYS = [
    pb.Options(),
    pb.Options(beam_size=4, alternatives=2),
    pb.Options(sampling=pb.Sampling(temperature=1.5, seed=9)),
    pb.Options(min_tokens=60, token_scores=True),
]
SUBJECTS = [(text, way, streams) for text in TEXTS for way in WAYS for streams in (False, True)]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    engine = few_rows(16, workers=2, lanes=None, max_beam=4)
    with serving(settings_for(engine=engine)) as running:
        yield running


def translate(stub: TranslationServiceStub, text: str, way: pb.Options, streams: bool) -> bytes:
    """Return all that a call says, but for how long it took."""
    if not streams:
        request = pb.TranslateRequest(texts=[text], options=way)
        (found,) = stub.Translate(request, timeout=PATIENCE).translations
        return found.SerializeToString(deterministic=True)
    events = stub.TranslateStream(
        pb.TranslateStreamRequest(text=text, options=way), timeout=PATIENCE
    )
    *deltas, last = events
    assert "".join(event.delta for event in deltas) == last.translation.text
    return last.translation.SerializeToString(deterministic=True)


def test_no_call_fails_and_no_byte_differs_while_workers_are_killed(running: Running) -> None:
    alone = [translate(running.stub, *subject) for subject in SUBJECTS]
    over = threading.Event()

    def kill() -> int:
        """Kill one whenever both are there: with none left, calls would only wait."""
        rng, kills = random.Random(1), 0
        while not over.wait(0.1):
            links = list(running.workers._links.values())
            ready = [link for link in links if link.state is LinkState.READY]
            busy = [link for link in ready if link.jobs]
            if len(ready) == 2 and busy:
                os.kill(rng.choice(busy).pid, signal.SIGKILL)
                kills += 1
        return kills

    def client(number: int) -> None:
        stub = TranslationServiceStub(running.connect())
        for place in range(number, 2 * len(SUBJECTS), 8):
            subject = place % len(SUBJECTS)
            assert translate(stub, *SUBJECTS[subject]) == alone[subject]

    with ThreadPoolExecutor(9) as pool:
        killing = pool.submit(kill)
        try:
            list(pool.map(client, range(8)))
        finally:
            over.set()
        assert killing.result() >= 2
    metrics = running.metrics()
    assert metrics['dragoman_lost_workers_total{model="en-pt"}'] >= 2
    assert metrics['dragoman_rerun_sentences_total{model="en-pt"}'] >= 1
    wait_until(lambda: len(running.workers.status()) == 2, "both workers")


def test_a_worker_that_is_started_later_serves_no_other_version(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = variant(tmp_path, "first")
    engine = few_rows(4, workers=2, lanes=None)
    with serving(settings_for(bundles=(path,), engine=engine)) as running:
        replace_by_another_version(path)
        first = running.workers._links[0]
        os.kill(first.pid, signal.SIGKILL)
        wait_until(lambda: running.workers.lost_workers >= 2, "the end of its successor")
        assert "it has changed since the server was started" in caplog.text
        assert running.translate("Good morning.")[0].text == "Bom dia."


def replace_by_another_version(bundle: Path) -> None:
    """Change a bundle so that it is whole, but another one."""
    weights = bundle / "golden.json"
    weights.write_bytes(weights.read_bytes() + b"\n")
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["files"][weights.name] = {
        "bytes": weights.stat().st_size,
        "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
    }
    (bundle / "manifest.json").write_text(json.dumps(manifest))


def children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_worker_stays_when_the_server_is_gone(tmp_path: Path, number: int) -> None:
    flags = ("--rows", "4", "--max-beam", "1", "--workers", "2", "--threads", "1")
    with started(tmp_path, *flags) as process:
        workers = children(process.process.pid)
        assert len(workers) == 2
        process.signal(number)
        process.wait()
        until = time.monotonic() + 5
        while any(map(is_alive, workers)):
            assert time.monotonic() < until
            time.sleep(0.05)


@pytest.mark.parametrize("workers", [0, 1])
def test_rows_that_no_memory_is_there_for_are_refused_in_one_line(
    tmp_path: Path, workers: int
) -> None:
    flags = ("--workers", str(workers), "--lanes", "1", "--rows", "100000000")
    with started(tmp_path, *flags, until_ready=False) as process:
        assert process.wait() == 2
    (line,) = process.errors.splitlines()
    assert "there is no memory for a lane of" in line
    assert "--rows" in line


def test_workers_leave_it_to_the_server_to_stop_them(tmp_path: Path) -> None:
    """A supervisor or ``timeout`` may send SIGTERM to all processes, not to the server alone."""
    with (
        started(tmp_path, "--workers", "2", "--rows", "4", "--max-beam", "1") as process,
        process.connected() as (stub, _),
    ):
        options = pb.Options(min_tokens=250, max_tokens=256)
        request = pb.TranslateRequest(texts=["The cat sees the dog."] * 8, options=options)
        call = stub.Translate.future(request, timeout=PATIENCE)
        running = 'dragoman_running_sentences{model="en-pt"}'
        wait_until(lambda: process.metrics()[running] > 0, "sentences that run")
        for pid in children(process.process.pid):
            os.kill(pid, signal.SIGTERM)
        process.signal(signal.SIGTERM)
        assert len(call.result(PATIENCE).translations) == 8
        assert process.wait() == 0
    assert not [line for line in process.log if line["level"] == "error"]
