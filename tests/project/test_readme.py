"""What the README shows, run as it says: its commands and what they print.

Its links are checked with those of all pages, in ``test_docs_site.py``.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from support import ROOT
from support.ports import free_port

README = (ROOT / "README.md").read_text()
COLOURS = re.compile(r"\x1b\[\d*m")


def shown() -> list[str]:
    """The lines of the README's example, but for addresses and what depends on the machine."""
    block = re.search(r"```\n(\$ dragoman serve.*?)```", README, re.DOTALL)
    assert block is not None
    varies = re.compile(r"127\.0\.0\.1:|\d rows of ")
    return [line for line in block[1].splitlines() if line and not varies.search(line)]


def test_make_run_prints_what_the_readme_shows() -> None:
    listen = f"127.0.0.1:{free_port()}"
    run = subprocess.Popen(
        ["bash", "scripts/run.sh", str(Path(sys.executable).parent), "models/en-pt"],
        cwd=ROOT,
        env={**os.environ, "DRAGOMAN_LISTEN": listen, "DRAGOMAN_METRICS": "127.0.0.1:0"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert run.stdout is not None
    printed: list[str] = []
    try:
        for line in run.stdout:
            printed.append(COLOURS.sub("", line.rstrip("\n")))
            if "examples/sync.py" in line:
                break
        for example in ("sync", "streaming", "asynchronous"):
            subprocess.run(
                [sys.executable, f"examples/{example}.py", listen], cwd=ROOT, check=True, timeout=60
            )
        lines = subprocess.run(
            [sys.executable, "examples/bulk.py", listen],
            cwd=ROOT,
            input="Good morning.\n\nThank you.\n",
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert lines.stdout.splitlines() == ["Bom dia.", "", "Obrigado."]
    finally:
        os.killpg(run.pid, signal.SIGINT)  # Ctrl-C
        run.stdout.close()
    assert run.wait(timeout=60) == 0
    assert [line for line in printed if line in shown()] == shown()
