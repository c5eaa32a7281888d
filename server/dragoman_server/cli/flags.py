"""Flags out of settings: names, types, defaults and field docstrings are written in one place."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from inspect import Parameter
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

F = TypeVar("F", bound=Callable[..., Any])


def flags(panel: str, kind: type[Any], *names: str, metavar: str | None = None) -> list[Parameter]:
    """Return the parameters of a command for some fields of a settings dataclass.

    ``panel`` is the part of the help that they stand in. Each is a variable of the environment too.
    """
    defaults = {field.name: field.default for field in fields(kind)}
    hints, texts = get_type_hints(kind), field_docs(kind)
    return [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=defaults[name],
            annotation=Annotated[
                hints[name],
                _option(panel, name, texts[name], metavar, is_on=defaults[name] is True),
            ],
        )
        for name in names
    ]


def with_flags(added: Sequence[Parameter]) -> Callable[[F], F]:
    """Give a command flags, which it takes as ``**settings``."""

    def complete(command: F) -> F:
        own = inspect.signature(command)
        kept = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        del command.__annotations__["settings"]
        command.__annotations__.update({each.name: each.annotation for each in added})
        command.__signature__ = own.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
        return command

    return complete


def _option(panel: str, name: str, text: str, metavar: str | None, *, is_on: bool) -> Any:
    """``is_on``: it is a switch that is on by default, so there is a flag to turn it off."""
    flag = name.replace("_", "-")
    return typer.Option(
        f"--{flag}/--no-{flag}" if is_on else f"--{flag}",
        envvar=f"DRAGOMAN_{name.upper()}",
        rich_help_panel=panel,
        help=text,
        metavar=metavar,
    )


def field_docs(kind: type[Any]) -> dict[str, str]:
    """Return the first paragraph of each field's docstring, as one line.

    Python does not keep these docstrings, so they are read from the source.
    """
    found: dict[str, str] = {}
    for owner in reversed(kind.__mro__[:-1]):
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
        found.update(_documented(ast.walk(tree)))
    return found


def _documented(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, text in zip(node.body, node.body[1:], strict=False):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    paragraph = inspect.cleandoc(words).split("\n\n")[0]
                    yield name, " ".join(paragraph.replace("``", "").split())
