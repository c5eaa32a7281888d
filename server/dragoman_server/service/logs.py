"""The server's log: a JSON object a line for machines, a readable line on a terminal.

A record may carry ``facts``: names and values that go along with its message. No text of a user, no
token and no path is ever among them.
"""

import json
import logging
import sys
import time
from typing import TextIO

FORMATS = ("auto", "json", "text")
LEVELS = ("debug", "info", "warning", "error")


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        facts = getattr(record, "facts", {})
        described = "".join(f"  {name}={value}" for name, value in facts.items())
        line = f"{moment} {level}{record.getMessage()}{described}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def set_up(form: str, level: str, stream: TextIO = sys.stderr) -> None:
    """``auto`` is text on a terminal, and JSON elsewhere."""
    if form == "auto":
        form = "text" if stream.isatty() else "json"
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
