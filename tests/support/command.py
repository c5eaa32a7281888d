"""The ``dragoman`` command as a process."""

import subprocess
import sys
from pathlib import Path


def dragoman(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman_cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)
