"""Stopping when asked: SIGTERM and Ctrl-C set a flag, and the trainer ends after its step."""

import signal
from types import FrameType, TracebackType


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
