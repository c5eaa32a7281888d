"""The models of a server for people: a table, and below it the languages of those that have many.

No name is ever cut: it is what a user copies into the next command. Where the table has no room,
each model has a line instead, which the terminal may break.
"""

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from dragoman_client._results import Model

_COLUMNS = ("model", "version", "languages", "precision", "device", "longest", "beam", "rows")
_MAX_NAMED = 4
"""Most languages of a side that stand in the table itself."""
_UNBOUNDED = 1_000_000
"""Columns of a terminal in which everything has room."""


def print_models(models: Sequence[Model], console: Console) -> None:
    """Print models as a table, and below it the languages of those that have many."""
    table = Table(*_COLUMNS)
    for model in models:
        table.add_row(*map(Text, _cells(model)))  # no name is taken for markup
    unbounded = console.options.update(max_width=_UNBOUNDED)
    if Measurement.get(console, unbounded, table).maximum <= console.width:
        console.print(table)
    else:
        for model in models:
            name, version, languages, precision, device, longest, beam, rows = _cells(model)
            _print_line(
                console,
                f"{name} {version}: {languages}, {precision} on {device}, sentences of up to "
                f"{longest}, beams of up to {beam}, {rows} rows",
            )
    for line in (line for model in models for line in _language_lists(model, console.width)):
        _print_line(console, line)


def _print_line(console: Console, line: str) -> None:
    console.print(Text(line), soft_wrap=True)


def _cells(model: Model) -> tuple[str, ...]:
    return (
        model.name,
        model.version,
        " → ".join(_in_table(*side) for side in _sides(model)),
        model.precision,
        model.device,
        f"{model.max_source_tokens} tokens",
        str(model.max_beam_size),
        str(model.rows),
    )


def _sides(model: Model) -> tuple[tuple[str, Sequence[str]], tuple[str, Sequence[str]]]:
    return (
        (model.source_language, model.source_languages),
        (model.target_language, model.target_languages),
    )


def _in_table(language: str, languages: Sequence[str]) -> str:
    if len(languages) > _MAX_NAMED:
        return f"{len(languages)} languages"
    return ", ".join(languages) or language or "?"


def _language_lists(model: Model, width: int) -> Iterator[str]:
    """Yield the lines that list the languages of a side, where they are many."""
    for preposition, (_, languages) in zip(("from", "into"), _sides(model), strict=True):
        if len(languages) > _MAX_NAMED:
            yield f"{model.name} translates {preposition} {len(languages)} languages:"
            yield from textwrap.wrap(
                ", ".join(languages),
                width,
                initial_indent="  ",
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
