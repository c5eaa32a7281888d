"""Checks of settings: a ``ValueError`` that names the field, the value and what is allowed."""

import math
from typing import Literal, get_args, get_origin, get_type_hints


def at_least(lowest: float, name: str, value: float) -> None:
    if not lowest <= value < math.inf:
        raise ValueError(f"{name} is {value}: it must be at least {lowest}")


def above(bound: float, name: str, value: float) -> None:
    if not bound < value < math.inf:
        raise ValueError(f"{name} is {value}: it must be above {bound}")


def at_most(highest: float, name: str, value: float) -> None:
    if not value <= highest:
        raise ValueError(f"{name} is {value}: it must be at most {highest}")


def probability(name: str, value: float) -> None:
    if not 0.0 <= value < 1.0:
        raise ValueError(f"{name} is {value}: it must be at least 0 and below 1")


def literals(settings: object) -> None:
    """Every field declared as a ``Literal`` has one of its values."""
    for name, hint in get_type_hints(type(settings)).items():
        if get_origin(hint) is Literal:
            value, allowed = getattr(settings, name), get_args(hint)
            if value not in allowed:
                raise ValueError(f"{name} is {value!r}: it must be one of {', '.join(allowed)}")
