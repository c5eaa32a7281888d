"""Bergamot as a contender, in a process of its own: its wheels are for Python 3.10 at most."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dragoman_server.engine.settings import available_cores
from measuring.contenders import Answers, Contender, Run
from measuring.names import BERGAMOT
from subjects.published import Published
from subjects.subject import Text

_WORKER = Path(__file__).with_name("bergamot_worker.py")


@contextmanager
def bergamot(subject: Published, python: Path, log: Path) -> Iterator[list[Contender]]:
    """Yield Bergamot with a thread for each core.

    Where it does not work there is no contender, and a printed line says why.
    """
    threads = available_cores()
    command = [str(python), str(_WORKER), str(subject.directory), str(threads)]
    try:
        with log.open("a") as errors:
            worker = subprocess.Popen(  # noqa: S603 - our own
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
    except OSError as error:
        print(f"{BERGAMOT} is not measured: {error}", flush=True)
        yield []
        return
    with worker:
        assert worker.stdout is not None
        try:
            if worker.stdout.readline().strip() == "ready":
                yield [Contender(BERGAMOT, f"{threads} × 1", _run(worker))]
            else:
                print(f"{BERGAMOT} is not measured: {log.read_text().strip()[-300:]}", flush=True)
                yield []
        finally:
            worker.kill()


def _run(worker: "subprocess.Popen[str]") -> Run:
    def run(texts: Sequence[Text], concurrent: int) -> Answers:
        assert worker.stdin is not None
        assert worker.stdout is not None
        answers: list[str] = []
        for at in range(0, len(texts), concurrent):
            batch = [text.text for text in texts[at : at + concurrent]]
            worker.stdin.write(json.dumps(batch) + "\n")
            worker.stdin.flush()
            answers += json.loads(worker.stdout.readline())
        return answers

    return run
