"""JSON tables as dataclasses, with checks whose errors name the key."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any


def check_within(min_value: int, max_value: int, name: str, value: int) -> None:
    """Raise ``ValueError`` if a value is out of range."""
    if not min_value <= value <= max_value:
        raise ValueError(f"{name} is {value}: it must be from {min_value} to {max_value}")


def from_table(cls: type[Any], table: Any) -> Any:
    """Build a dataclass from a table that was read.

    Raises ``ValueError`` if a key is missing, unknown, or of another type.
    """
    if not isinstance(table, Mapping):
        raise ValueError(f"{cls.__name__} is missing")
    kinds = {f.name: f.type for f in fields(cls)}
    for name, value in table.items():
        if name not in kinds:
            raise ValueError(f"unknown key {name!r}")
        if kinds[name] in (int, str) and type(value) is not kinds[name]:
            raise ValueError(f"{name} is {value!r}")
    try:
        return cls(**table)
    except TypeError as error:
        raise ValueError(str(error)) from None
