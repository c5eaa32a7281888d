"""Markdown that several sections have alike."""

import textwrap
from collections.abc import Iterator

WIDTH = 110
"""Columns of a line of prose."""


def sentence(words: str) -> str:
    """Return words with a capital first letter and a full stop."""
    return f"{words[0].upper()}{words[1:]}."


def paragraph(*sentences: str) -> Iterator[str]:
    """Yield the lines of a paragraph."""
    yield from textwrap.wrap(
        " ".join(sentences), WIDTH, break_long_words=False, break_on_hyphens=False
    )


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Yield the lines of a table. All columns but the first are aligned to the right."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join(["---", *["--:"] * (len(head) - 1)]) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def search_name(beam: int) -> str:
    """Return what a search with a beam of this size is called."""
    return "greedy" if beam == 1 else f"beam {beam}"


def spread_cell(ratio: dict[str, float]) -> str:
    """Return a ratio's median, and the lowest and highest of its rounds."""
    return f"**{ratio['median']:.2f}** ({ratio['least']:.2f}–{ratio['most']:.2f})"
