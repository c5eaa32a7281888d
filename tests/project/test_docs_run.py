"""Pages that can be run: their commands, in their order, as somebody would type them.

Each page is run by a shell as it is written, but for numbers that suit a larger machine or a larger
corpus, and for ports. What is not run, and why, is in ``NOT_RUN``.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from support import MODEL, ROOT
from support.argos_models import MARIAN, package_files, zipped
from support.hf_models import save_m2m100
from support.ports import free_port
from support.shown_commands import blocks

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
PATIENCE_S = 900.0
HOW_TO = ROOT / "docs" / "how-to"
SMALLER = {
    "--workers 64": "--workers 2",
    "--workers 32": "--workers 1",
    "--rows 1024": "--rows 32",
    "--rows 512": "--rows 16",
    "--cpu-list 0-31": "--cpu-list 0",
    "--cpu-list 32-63": "--cpu-list 0",
    "--concurrency 256 --seconds 30": "--concurrency 8 --seconds 1",
    "--rate 50 --seconds 10": "--rate 5 --seconds 1",
    "--lines 1000000": "--lines 10",
    "-n 2000": "-n 5",
}
"""What is large in the text, and what it becomes on a small machine with little text."""
NOT_RUN = {
    "make run": "test_readme.py runs it",
    ". .venv/bin/activate": "the environment of the tests is active already",
    "pip install": "needs the network",
    "dragoman train my.toml": "the text is the reader's; tests/training runs trainings",
    "dragoman import-hf opus-mt-en-de": "needs downloads; tests/export imports other models",
    "docker compose": "no Docker engine where the tests run; tests/deploy checks the files",
    "dragoman serve models/en-pt --listen 0.0.0.0": "for other machines",
}
"""Blocks that are not run, by how they begin, and why."""
LINES_NOT_RUN = {
    "dragoman bench --find-rate": "takes minutes; tests/cli/test_bench_command.py runs it",
}
"""Lines of other blocks that are not run, by how they begin, and why."""
WITH_A_SERVER = ("README.md", "many-machines.md", "many-lines.md")
"""Pages that take a running server for granted."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the pages speak of, in one directory: models, text, and models of other projects."""
    directory = tmp_path_factory.mktemp("clone")
    shutil.copytree(MODEL, directory / "models" / "en-pt")
    shutil.copytree(MODEL, directory / "models" / "en-pt-new")
    manifest = directory / "models" / "en-pt-new" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": "next"}))
    lines = ["Good morning.", "Where is the station?", "", "Thank you.", "It is raining."] * 5
    for name in ("book.en", "corpus.en"):
        (directory / name).write_text("".join(f"{line}\n" for line in lines))
    save_m2m100(directory / "m2m100_418M")
    files = package_files(MARIAN)
    (directory / "translate-pt_en-1_9.argosmodel").write_bytes(zipped(files))
    (directory / "ct2-model").mkdir()
    for name, content in files.items():
        if name.startswith("model/"):
            (directory / "ct2-model" / Path(name).name).write_bytes(content)
    (directory / "sentencepiece.model").write_bytes(files["sentencepiece.model"])
    return directory


def script_of(page: Path, part: tuple[str, ...] = ("",)) -> str:
    """Return what a page tells to type, for this machine; of ``part``, how its blocks begin."""
    told = [
        block.text
        for block in blocks(page)
        if block.text.startswith(part)
        and not block.text.startswith("dragoman serve models/en-pt\n")  # a transcript of make run
        and not any(block.text.startswith(beginning) for beginning in NOT_RUN)
    ]
    lines = "\n".join(told).splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith(tuple(LINES_NOT_RUN)))
    for large, small in SMALLER.items():
        text = text.replace(large, small)
    text = text.replace("mt-1:50051,mt-2:50051", "127.0.0.1:50051")
    for port, free in PORTS.items():
        text = text.replace(f":{port}", f":{free}")
    return text


PORTS = {port: str(free_port()) for port in ("50051", "50052", "8080", "8081", "9464", "9465")}


def typed(script: str, clone: Path) -> str:
    """Let a shell run it, and return what was printed."""
    script = f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}\nwait\n"
    for left in ("book.pt", "corpus.pt"):
        (clone / left).unlink(missing_ok=True)
    kept = {name: value for name, value in os.environ.items() if "DRAGOMAN" not in name}
    run = subprocess.Popen(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        cwd=clone,
        env={
            **kept,
            "PATH": f"{BIN}{os.pathsep}{kept['PATH']}",
            "DRAGOMAN_LISTEN": f"127.0.0.1:{PORTS['50051']}",
            "DRAGOMAN_METRICS": f"127.0.0.1:{PORTS['9464']}",
            "DRAGOMAN_HTTP": f"127.0.0.1:{PORTS['8080']}",
            "DRAGOMAN_ADDRESS": f"127.0.0.1:{PORTS['50051']}",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with run:
        try:
            printed, _ = run.communicate(timeout=PATIENCE_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == 0, f"{script}\n\n{printed}"
    return printed


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted(HOW_TO.glob("*.md"))], ids=lambda page: page.name
)
def test_a_page_does_what_it_says(page: Path, clone: Path) -> None:
    script = script_of(page)
    if page.name in WITH_A_SERVER:
        script = (
            "dragoman serve models/en-pt & served=$!\n"
            f"until dragoman health; do sleep 0.5; done\n{script}\nkill -TERM $served\n"
        )
    printed = typed(script, clone)
    if page.name == "new-version.md":
        assert (clone / "book.pt").read_text().count("\n") == 25
        assert len(re.findall(r"en-pt +next\b", printed)) >= 2, "both servers are new"
    if page.name == "many-lines.md":
        assert (clone / "corpus.pt").read_text().count("\n") == 25


def test_tls_and_keys_are_tried_as_operations_says(clone: Path) -> None:
    page = ROOT / "docs" / "operations.md"
    script = script_of(page, ("openssl req", "export DRAGOMAN_KEY"))
    # The certificate is of this name, and not of the number that other pages are run with.
    script = f"export DRAGOMAN_ADDRESS=localhost:{PORTS['50051']}\n{script}"
    assert "Bom dia." in typed(script, clone)


def test_what_is_not_run_is_still_shown() -> None:
    shown = [
        block.text for page in (ROOT / "README.md", *HOW_TO.glob("*.md")) for block in blocks(page)
    ]
    for beginning in NOT_RUN:
        assert any(text.startswith(beginning) for text in shown), beginning
    for large in (*SMALLER, *LINES_NOT_RUN):
        assert any(large in text for text in shown), large
