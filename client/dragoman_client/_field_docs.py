"""Docstrings of fields, for ``help()`` and for the command.

Editors and documentation read them from the source; Python itself forgets them. They are read when
somebody asks: the SDK is to be quick to import.
"""

import inspect
from itertools import pairwise
from textwrap import dedent, fill
from typing import TypeVar

T = TypeVar("T", bound=type)


def field_docs(kind: type) -> dict[str, str]:
    """Return the docstring of each field of a class, by name; none where there is no source."""
    import ast  # only here

    try:
        (tree,) = ast.parse(dedent(inspect.getsource(kind))).body
    except (OSError, SyntaxError, TypeError):
        return {}
    found = {}
    for node, after in pairwise(tree.body if isinstance(tree, ast.ClassDef) else []):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[ast.unparse(node.target)] = " ".join(str(after.value.value).split())
    return found


class _Doc:
    """The docstring of a class with those of its fields."""

    def __init__(self, summary: str) -> None:
        self._summary = summary

    def __get__(self, instance: object, kind: type) -> str:
        lines = [inspect.cleandoc(self._summary), "", "Attributes:"]
        for name, text in field_docs(kind).items():
            lines.append(fill(f"{name}: {text}", 96, initial_indent="  ", subsequent_indent="    "))
        return "\n".join(lines)


def documented(kind: T) -> T:
    """Let ``help()`` of a class show the docstrings of its fields."""
    kind.__doc__ = _Doc(kind.__doc__ or "")  # type: ignore[assignment] # read as a descriptor
    return kind
