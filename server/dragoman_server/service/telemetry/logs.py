"""The server's log: a JSON object a line for machines, a readable line on a terminal.

A record may carry ``facts``: names and values that go along with its message. No text of a user, no
key and no path is ever among them. Nor in a trace: what an exception says is left out, but for
the engine's, which knows no text.
"""

import json
import logging
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

from dragoman_server.traces import trace_of

_KNOWS_NO_TEXT = "dragoman_server.engine"
"""The loggers of the engine, whose exceptions may say what they say."""
_ALLOWED = {
    "log_format": ("auto", "json", "text"),
    "log_level": ("debug", "info", "warning", "error"),
}


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """What is logged, and in which form."""

    log_format: str = "auto"
    """Form of the log: json, text, or auto, which is text on a terminal and json elsewhere."""
    log_level: str = "info"
    """Least severe messages that are logged: debug, info, warning or error."""

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} is {value!r}: it must be one of {', '.join(allowed)}")


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object."""

    _second = -1, ""
    """The second of the last record, since 1970 and as it is written."""

    def format(self, record: logging.LogRecord) -> str:
        second, moment = self._second
        if second != int(record.created):
            moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            self._second = int(record.created), moment
        line = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["trace"] = list(_trace(record))
        return _ENCODER.encode(line)


class TextFormatter(logging.Formatter):
    """Formats a record as a line for people."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        facts = getattr(record, "facts", {})
        described = "".join(f"  {name}={value}" for name, value in facts.items())
        line = f"{moment} {level}{record.getMessage()}{described}"
        return "\n    ".join([line, *_trace(record)])


def _trace(record: logging.LogRecord) -> Iterator[str]:
    error = record.exc_info[1] if record.exc_info else None
    return trace_of(error, says=record.name.startswith(_KNOWS_NO_TEXT))


def set_up(settings: LogSettings, stream: TextIO = sys.stderr) -> None:
    """Send all that is logged to a stream."""
    # No line tells these, and each record would ask for them.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    form = settings.log_format
    if form == "auto":
        form = "text" if stream.isatty() else "json"
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
