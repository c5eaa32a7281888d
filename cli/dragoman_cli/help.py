"""Help that wraps well in a terminal of any width.

Typer's own panels give a column to each part of an option, which leaves little for the words in 80
columns, and keep the line breaks of a docstring. Here words have the room that there is.
"""

import inspect
import re
import textwrap
from typing import Any

from typer.core import TyperCommand, TyperGroup

MAX_WIDTH = 120
"""Columns; longer lines are hard to read."""
_NAME_COLUMNS = 28
"""Columns for names; the words about a longer name begin below it."""
_KEPT_SPACE = "\0"
"""Stands for a space while lines are broken."""
_OTHERS = "Options"
"""Title of the options that are in no panel."""


class HelpCommand(TyperCommand):
    """A command whose help is written by this module."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(_usage(self, ctx, formatter.width))
        formatter.write(_description(self.help or "", formatter.width))
        formatter.write(_panels(self, ctx, formatter.width))


class HelpGroup(TyperGroup):
    """A group of commands whose help is written by this module."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, _summary(each.help or "")) for name, each in found if each is not None]
        formatter.write(_usage(self, ctx, formatter.width))
        formatter.write(_description(self.help or "", formatter.width))
        formatter.write(_table("Commands", rows, formatter.width))
        formatter.write(_panels(self, ctx, formatter.width))


def _usage(command: Any, ctx: Any, width: int) -> str:
    pieces = " ".join(command.collect_usage_pieces(ctx))
    pieces = re.sub(r"[{}]", "", pieces).replace("......", "...")  # braces say nothing
    return _fill(f"Usage: {ctx.command_path} {pieces}", width, 0, 4) + "\n"


def _description(text: str, width: int) -> str:
    """Return paragraphs. One that is indented is an example, and stays as it is."""
    lines, was_example = [], False
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        is_example = paragraph.startswith(" ")
        if not (is_example and was_example):
            lines.append("")
        lines.append(
            paragraph.rstrip() if is_example else _fill(" ".join(paragraph.split()), width, 0, 0)
        )
        was_example = is_example
    return "\n".join(lines) + "\n"


def _summary(text: str) -> str:
    """Return the first paragraph, in a line."""
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def _panels(command: Any, ctx: Any, width: int) -> str:
    """Return a table of each panel; arguments come first, options without a panel next."""
    titles: dict[str, list[tuple[str, str]]] = {"Arguments": [], _OTHERS: []}
    for parameter in command.get_params(ctx):
        if (record := parameter.get_help_record(ctx)) is None:
            continue
        name, words = record
        if parameter.param_type_name == "argument":
            title, name = "Arguments", name.partition(" <")[0]  # of what type says its metavar
        else:
            title, name = _OTHERS, name.replace(" range>", ">")
        title = getattr(parameter, "rich_help_panel", None) or title
        titles.setdefault(title, []).append((name, words.replace("\\[", "[")))
    return "".join(_table(title, rows, width) for title, rows in titles.items() if rows)


def _table(title: str, rows: list[tuple[str, str]], width: int) -> str:
    column = 4 + min(_NAME_COLUMNS, max(len(name) for name, _ in rows))
    lines = ["", f"{title}:"]
    for name, text in rows:
        words = _fill(_keep_notes(" ".join(text.split())), width, column, column)
        words = words.replace(_KEPT_SPACE, " ")
        if len(name) + 4 <= column:
            lines.append(f"  {name}{words[2 + len(name) :]}")
        else:
            lines += [f"  {name}", words]
    return "\n".join(lines) + "\n"


def _keep_notes(text: str) -> str:
    """Return text in which a short note, as [env var: NAME], has no space to break a line at."""

    def keep(found: re.Match[str]) -> str:
        notes = found[0].split("; ")
        kept = (each.replace(" ", _KEPT_SPACE) if len(each) < 40 else each for each in notes)
        return "; ".join(kept)

    return re.sub(r"\[[^\]]+\]", keep, text)


def _fill(text: str, width: int, first: int, rest: int) -> str:
    """Return lines of words that are never cut, as the name of an option with its hyphens."""
    return textwrap.fill(
        text,
        width,
        initial_indent=" " * first,
        subsequent_indent=" " * rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
