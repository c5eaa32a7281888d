"""YAML as Marian writes it: tables, lists and text, and nothing that a tag would build."""

import reprlib
from typing import Any

import yaml

from dragoman_export.errors import ExportError

MAX_BYTES = 1 << 20
"""Most bytes of a configuration; real ones have a few thousand."""


class _PlainLoader(yaml.BaseLoader):
    """Builds text, lists and tables. References are refused: a few of them can stand for
    billions of values."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("a reference")
        return super().compose_node(parent, index)


def shown(value: Any) -> str:
    """Return a value as an error shows it: short, and on one line."""
    return reprlib.repr(value)


def read_table(text: str | bytes, what: str) -> dict[str, Any]:
    """Read a table, whose values are text, lists and tables. ``what`` names it in an error.

    Numbers and truth values stay text: what they mean is for whoever asks for them.
    """
    if len(text) > MAX_BYTES:
        raise ExportError(f"{what}: too large for a configuration")
    try:
        table = yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - it builds text alone
    except (yaml.YAMLError, RecursionError, ValueError, AttributeError):
        raise ExportError(f"{what}: not YAML") from None
    if not isinstance(table, dict) or not all(isinstance(key, str) for key in table):
        raise ExportError(f"{what}: not a table of settings")
    return table
