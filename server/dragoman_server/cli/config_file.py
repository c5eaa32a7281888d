"""A TOML file that gives a command's flags their defaults."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from dragoman_server.errors import ServerError

_TOML_TYPES: dict[type, tuple[tuple[type, ...], str]] = {
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
}
"""What a value may be, by the type of its flag; all other flags take texts."""


def read_config(path: Path, known: Mapping[str, Any]) -> dict[str, Any]:
    """Read the settings of a file. ``known`` has the type of each flag by its name.

    Raises ``ServerError`` for what is no flag, or is not of its type.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ServerError(f"{path}: {reason}") from None
    for key, value in table.items():
        if key not in known:
            raise ServerError(
                f"{path}: {key!r} is no setting; there are {', '.join(sorted(known))}"
            )
        if expected := _expected(known[key], value):
            raise ServerError(f"{path}: {key} is {value!r}: it must be {expected}")
    return table


def _expected(hint: Any, value: object) -> str | None:
    """Return what a value should be, where it is something else.

    The text of a flag is converted; so would these values be, and 1.5 rows become one.
    """
    if get_origin(hint) is list:
        is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return None if is_list else "a list of texts"
    kind = (get_args(hint) or (hint,))[0]  # of what may be None, the other
    kinds, name = _TOML_TYPES.get(kind, ((str,), "a text"))
    return None if type(value) in kinds else name
