"""Runs ``dragoman`` with an engine whose steps wait for as long as a file exists.

    python service_wedged.py FILE serve BUNDLE…

From outside it is an engine that hangs, or one that is very slow, for as long as a test wants.
"""

import sys
import time
from pathlib import Path

from dragoman_cli.main import main
from dragoman_server.engine.core import Report
from dragoman_server.engine.lane import GoOn, Lane, only_once

_step = Lane.step


def _wedge(file: Path) -> None:
    def step(self: Lane, report: Report, go_on: GoOn = only_once) -> None:
        while file.exists():
            time.sleep(0.01)
        _step(self, report, go_on)

    Lane.step = step  # type: ignore[method-assign]


if __name__ == "__main__":
    _wedge(Path(sys.argv.pop(1)))
    sys.argv[0] = "dragoman"
    main()
