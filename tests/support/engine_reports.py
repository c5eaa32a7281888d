"""Watching an engine through its reports: keeping them, waiting for one, holding a lane at one."""

import threading
from collections.abc import Callable

from dragoman_server.engine.core import Report

PATIENCE = 120.0
"""Seconds after which a test that waits for an engine fails; nothing waits that long."""


class Reports:
    """Everything that an engine reports, and something to do at each report, in the lane."""

    def __init__(self, at_report: Callable[[Report], None] = lambda report: None) -> None:
        self.all: list[Report] = []
        self.at_report = at_report
        self._changed = threading.Condition()

    def take(self, report: Report) -> None:
        """Keep a report, and do what is to be done at it."""
        with self._changed:
            self.all.append(report)
            self._changed.notify_all()
        self.at_report(report)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; it is asked again at each report."""
        with self._changed:
            assert self._changed.wait_for(holds, timeout=PATIENCE), "waited in vain"


class Gate:
    """Something to do at a report: holds the lane until the gate is opened."""

    def __init__(self) -> None:
        self._reached, self._opened = threading.Event(), threading.Event()

    def __call__(self, report: Report) -> None:
        self._reached.set()
        assert self._opened.wait(PATIENCE)

    def wait(self) -> None:
        """Wait until a lane is there."""
        assert self._reached.wait(PATIENCE), "waited in vain"

    def open(self) -> None:
        """Let the lane go on."""
        self._opened.set()
