"""The memory of a training on text of varied lengths, in bfloat16: it stops growing, and soon."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import SUPPORT

SCRIPT = SUPPORT / "training_memory.py"
CAPACITY = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
STEPS = 70

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="the system does not say"
)


def start(directory: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    directory.mkdir()
    others = {key: value for key, value in os.environ.items() if key != CAPACITY}
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(directory), str(STEPS)],
        env={**others, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def megabytes(process: subprocess.Popen[str]) -> dict[int, float]:
    """What the process had after each step."""
    stdout, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    lines = (line.split() for line in stdout.splitlines())
    return {int(step): int(size) / 2**20 for step, size in lines}


def test_compiled_products_do_not_pile_up(tmp_path: Path) -> None:
    """Beside a process that keeps as many as oneDNN would by itself."""
    ours = start(tmp_path / "ours", {})
    theirs = start(tmp_path / "theirs", {CAPACITY: "1024"})
    bounded, piled = megabytes(ours), megabytes(theirs)
    assert len(bounded) == len(piled) == STEPS
    growth, usual = (sizes[STEPS] - sizes[5] for sizes in (bounded, piled))
    # Where a processor does without oneDNN, nothing grows in either.
    assert growth < max(0.75 * usual, 50)
    assert bounded[STEPS] < 1.1 * bounded[STEPS - 20]
