"""Tables of settings, as TOML and JSON have them, and the dataclasses that they become.

What a table says is taken literally: a key that no dataclass knows is an error, and so is a value
of another type. Where there is a choice of dataclasses, the key ``kind`` decides between them.
"""

import dataclasses
import difflib
import json
import tomllib
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dragoman_training.errors import RecipeError


def override(table: dict[str, Any], text: str) -> None:
    """Change a table by ``section.key=value``, the value as TOML would have it."""
    key, equals, written = text.partition("=")
    if not equals or not key:
        raise RecipeError(f"--set {text}: write it as section.key=value")
    try:
        value = tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        value = written  # paths and names need no quotes on a command line
    *sections, last = key.strip().split(".")
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise RecipeError(f"--set {text}: {section} is not a section")
    table[last] = value


_Settings = TypeVar("_Settings")


def build(
    cls: type[_Settings], table: Any, name: str, others: Sequence[type[Any]] = ()
) -> _Settings:
    """A dataclass from a table of the same keys; ``others`` might have been chosen instead."""
    if not isinstance(table, dict):
        raise RecipeError(f"{name} is {table!r}: it must be a section of settings")
    prefix = f"{name}." if name else ""
    hints = get_type_hints(cls)
    for key in table:
        if key not in hints:
            raise RecipeError(f"{prefix}{key}: {_unknown(cls, key, name, others)}")
    values = {key: _convert(hints[key], value, prefix + key) for key, value in table.items()}
    try:
        return cls(**values)
    except ValueError as error:
        raise RecipeError(f"{prefix}{error}") from None


def _unknown(cls: type[Any], key: str, name: str, others: Sequence[type[Any]]) -> str:
    for other in others:
        if key in get_type_hints(other):
            return f"a setting of kind {_kind(other)!r}, not of {_kind(cls)!r}"
    hints = get_type_hints(cls)
    close = difflib.get_close_matches(key, [*hints, *(["preset"] * (name == "model"))], 1)
    known = f"did you mean {close[0]}?" if close else f"known: {', '.join(hints)}"
    return f"unknown key; {known}"


def _kind(cls: type[Any]) -> str:
    (kind,) = get_args(get_type_hints(cls)["kind"])
    return str(kind)


def _convert(hint: Any, value: Any, name: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        choices = [a for a in arguments if a is not type(None)]
        if value is None and len(choices) < len(arguments):
            return None
        if len(choices) > 1:
            return _choose(choices, value, name)
        return _convert(choices[0], value, name)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return build(hint, value, name)
    if origin is tuple:
        values = value if isinstance(value, list | tuple) else [value]
        if arguments[-1] is not Ellipsis and len(values) != len(arguments):
            raise RecipeError(f"{name} is {value!r}: it must have {len(arguments)} values")
        return tuple(
            _convert(arguments[0], item, f"{name}[{number}]" if isinstance(item, dict) else name)
            for number, item in enumerate(values)
        )
    if origin is dict:
        if not isinstance(value, dict):
            raise RecipeError(f"{name} is {value!r}: it must be a table")
        return {key: _convert(arguments[1], item, f"{name}.{key}") for key, item in value.items()}
    if origin is Literal:
        hint = str  # which values are allowed, the settings check themselves
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        kinds = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
        raise RecipeError(f"{name} is {value!r}: it must be {kinds[hint]}")
    return value


def _choose(choices: list[type[Any]], table: Any, name: str) -> Any:
    """The dataclass of the table's kind; without one, the first."""
    kinds = {_kind(choice): choice for choice in choices}
    kind = table.get("kind", next(iter(kinds))) if isinstance(table, dict) else next(iter(kinds))
    if not isinstance(kind, str) or kind not in kinds:
        raise RecipeError(f"{name}.kind is {kind!r}: it must be one of {', '.join(kinds)}")
    chosen = kinds[kind]
    return build(chosen, table, name, [choice for choice in choices if choice is not chosen])


def flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A table of tables and lists of tables as one, with dotted keys."""
    result: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            value = {str(number): item for number, item in enumerate(value)}
        if isinstance(value, dict):
            result.update(flat(value, f"{prefix}{key}."))
        else:
            result[prefix + key] = value
    return result


def read_dict(path: Path) -> dict[str, Any]:
    """A JSON object that we wrote ourselves."""
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return table
