"""The ``dragoman`` command as a process: run to its end, or beside a test."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

DRAGOMAN = (sys.executable, "-m", "dragoman_cli")
TIMEOUT_S = 900.0
"""Seconds after which a run is given up; none takes that long."""


class Ended(NamedTuple):
    """How a run of the command ended."""

    returncode: int
    stdout: str
    stderr: str


def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DRAGOMAN, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process: subprocess.Popen[str]) -> Ended:
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    return Ended(process.returncode, stdout, stderr)


def dragoman(*arguments: str | Path, **options: Any) -> Ended:
    return finish(start(*arguments, **options))


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This environment without settings of the command, wide enough for one line an error."""
    kept = {name: value for name, value in os.environ.items() if "DRAGOMAN" not in name}
    return {**kept, "COLUMNS": "200", **(more or {})}
