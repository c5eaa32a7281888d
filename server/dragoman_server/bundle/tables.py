"""JSON tables as dataclasses, with checks whose errors name the key."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any


def check_within(least: int, most: int, name: str, value: int) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} is {value}: it must be from {least} to {most}")


def from_table(cls: type[Any], table: Any) -> Any:
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
