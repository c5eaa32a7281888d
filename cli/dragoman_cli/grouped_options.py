"""Flags that commands share, as dataclasses: a command takes the whole, typer its fields."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Any, TypeVar, get_type_hints

R = TypeVar("R")


def grouped(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the flags of each dataclass that it takes as a keyword argument."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    own = inspect.signature(command)
    added = [parameter for kind in groups.values() for parameter in _flags(kind)]
    kept = [each for each in own.parameters.values() if each.name not in groups]

    @wraps(command)
    def run(*args: Any, **flags: Any) -> R:
        made = {
            name: kind(**{f.name: flags.pop(f.name) for f in fields(kind) if f.name in flags})
            for name, kind in groups.items()
        }
        return command(*args, **flags, **made)

    run.__signature__ = own.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in (*kept, *added)}
    return run


def _flags(kind: Any) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]
