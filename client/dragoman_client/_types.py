"""Arguments of the wrong type, said so that the caller knows what to give instead."""

import operator
from numbers import Real
from typing import TypeVar

from dragoman_client._errors import ConfigurationError

T = TypeVar("T")

_MAX_TIMEOUT = 1e6
"""Seconds; gRPC takes a much longer timeout for one that has passed."""


def require(name: str, value: object, kind: type[T], instead: str) -> None:
    """Raise ``TypeError`` where a value is not of this kind."""
    if not isinstance(value, kind):
        raise wrong_type(name, value, kind.__name__, instead)


def wrong_type(name: str, value: object, wanted: str, instead: str = "") -> TypeError:
    advice = f": {instead}" if instead else ""
    return TypeError(f"{name} is {_kind(value)}, not {wanted}{advice}")


def require_text(name: str, value: object, instead: str = "") -> None:
    """Raise where a value is not a text that can be sent."""
    if not isinstance(value, str):
        raise wrong_type(name, value, "str", instead)
    if not is_text(value):
        raise ConfigurationError(f"{name} has half of a surrogate pair, which is no text")


def is_text(value: str) -> bool:
    """Whether a string is one of Unicode characters."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_whole(name: str, value: object) -> None:
    """Raise ``TypeError`` where a value is not a whole number; True and False are none."""
    try:
        if not isinstance(value, bool):
            operator.index(value)  # type: ignore[arg-type] # of any class that is a number
            return
    except TypeError:
        pass
    raise wrong_type(name, value, "int")


def require_number(name: str, value: object) -> None:
    """Raise ``TypeError`` where a value is not a number; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise wrong_type(name, value, "a number")


def checked_timeout(seconds: float) -> float:
    """Return a timeout that gRPC understands. Raises ``ConfigurationError`` for another."""
    require_number("timeout", seconds)
    if not 0 < seconds <= _MAX_TIMEOUT:
        raise ConfigurationError(
            f"timeout is {seconds}: it must be above 0, and at most {_MAX_TIMEOUT:.0f} seconds"
        )
    return seconds


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
