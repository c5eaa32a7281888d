"""What `make run` does, and that the README shows what it prints.

Its links are checked with those of all pages, in ``test_docs_site.py``, and its commands in
``test_docs_commands.py``.
"""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import ROOT

README = (ROOT / "README.md").read_text()
COLOURS = re.compile(r"\x1b\[\d*m")
BIN = Path(sys.executable).parent
PATIENCE_S = 120.0


def shown() -> list[str]:
    """The lines of the README's example, but for addresses and what depends on the machine."""
    block = re.search(r"```\n(\$ dragoman serve.*?)```", README, re.DOTALL)
    assert block is not None
    varies = re.compile(r"127\.0\.0\.1:|\d rows of ")
    return [line for line in block[1].splitlines() if line and not varies.search(line)]


@contextmanager
def demonstration(**environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run what `make run` runs, in a process group of its own, and end it at last."""
    kept = {name: value for name, value in os.environ.items() if "DRAGOMAN" not in name}
    run = subprocess.Popen(
        ["bash", "scripts/run.sh", str(BIN), "models/en-pt"],
        cwd=ROOT,
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with run:
        try:
            yield run
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)


def test_make_run_prints_what_the_readme_shows_and_hints_that_work() -> None:
    # The address of another server in the environment is not that of this demonstration.
    with demonstration(PORT="0", DRAGOMAN_ADDRESS="localhost:1") as run:
        assert run.stdout is not None
        printed = []
        for line in run.stdout:
            printed.append(COLOURS.sub("", line.rstrip("\n")))
            if "examples/sync.py" in line:
                break
        hints = [line for line in printed if line.startswith("  ")][-5:]
        examples = ["python examples/streaming.py", "python examples/asynchronous.py"]
        bulk = r"printf 'Good morning.\n\nThank you.\n' | python examples/bulk.py"
        done = subprocess.run(
            ["bash", "-euc", "\n".join([*hints, *examples, bulk])],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-3:] == ["Bom dia.", "", "Obrigado."]
        os.killpg(run.pid, signal.SIGINT)  # Ctrl-C
        assert run.wait(timeout=PATIENCE_S) == 0
    assert [line for line in printed if line in shown()] == shown()


def test_make_run_on_a_taken_port_says_how_to_choose_another_and_asks_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with demonstration(PORT=str(port)) as run:
            stdout, stderr = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 2
    assert stdout == ""
    assert re.fullmatch(rf"make run: port {port} is taken .*: make run PORT=\d+\n", stderr)


def test_the_server_of_make_run_ends_with_a_demonstration_that_fails() -> None:
    with demonstration(PORT="0", DRAGOMAN_TIMEOUT="0.0001") as run:
        stdout, stderr = run.communicate(timeout=PATIENCE_S)  # until all who may write have ended
    assert run.returncode == 3
    address = re.search(r"gRPC +127\.0\.0\.1:(\d+)", stdout)
    assert address is not None
    assert "no time left" in stderr
    with socket.socket() as asked:
        assert asked.connect_ex(("127.0.0.1", int(address[1]))) != 0


def test_the_readme_fits_three_screens_and_says_what_a_row_is_before_it_shows_rows() -> None:
    assert len(README.splitlines()) <= 3 * 60
    for word in ("*row*", "*lane*"):
        assert README.index(word) < README.index("rows of 1 thread(s)")


def test_make_hands_the_port_on() -> None:
    printed = subprocess.run(
        ["make", "--dry-run", "run", "PORT=50052"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "PORT=50052 bash scripts/run.sh" in printed.stdout
