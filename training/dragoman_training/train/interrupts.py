"""Stopping when asked: SIGTERM and Ctrl-C set a flag, and the trainer ends after its step."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType


@contextmanager
def exit_on_termination() -> Iterator[None]:
    """While entered, SIGTERM ends the process through its clean-up instead of at once."""

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


class StopRequest:
    """While entered, the signals are remembered instead of ending the process at once.

    A second Ctrl-C does end it at once.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous: dict[int, signal.Handlers | int | object | None] = {}

    def __enter__(self) -> "StopRequest":
        for number in (signal.SIGTERM, signal.SIGINT):
            self._previous[number] = signal.signal(number, self._remember)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number
