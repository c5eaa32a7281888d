"""How translations are written: a line for each, as JSON, or with their alternatives."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from dragoman_client._errors import CallError
from dragoman_client._results import Translation

Result = Translation | CallError
Render = Callable[[Result, str], str]
"""Returns what is written for a result, whose text ended with this."""


def as_line(result: Result, end: str) -> str:
    """Return the translation with the end that its source had; a line that failed is empty."""
    return (result.text if isinstance(result, Translation) else "") + end


def as_json(result: Result, end: str) -> str:
    """Return a JSON object."""
    if isinstance(result, CallError):
        found: dict[str, Any] = {"error": {"reason": result.reason, "message": result.message}}
    else:
        found = asdict(result, dict_factory=_plain)
    return json.dumps(found, ensure_ascii=False) + "\n"


def with_alternatives(result: Result, end: str) -> str:
    """Return the translation, and below it the alternatives of each sentence with their scores."""
    lines = [as_line(result, end or "\n")]
    sentences = result.segments if isinstance(result, Translation) else ()
    for number, sentence in enumerate(sentences, start=1):
        # A text of one sentence needs no number to say which of them is meant.
        which = f"{number:4}" if len(sentences) > 1 else ""
        lines += [f"{which}{each.score:9.3f}  {each.text}\n" for each in sentence.alternatives]
    return "".join(lines)


def _plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a table for JSON: without what is not there, and with spans as pairs."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if isinstance(value, slice):
            found[name] = [value.start, value.stop]
        elif hasattr(value, "value"):
            found[name] = value.value
        elif value is not None and value != ():
            found[name] = value
    return found
