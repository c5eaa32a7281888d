"""Entities: letters that a source spells out, such as ``&eacute;``, and how its translation writes
them.

A translation has other letters than its source. Those that the source always spells out are spelt
out in the translation too; the others are written as they are, but for what would be markup.
"""

import html
import re
from collections.abc import Iterator
from html.entities import html5

from dragoman_server.text.markup.tokens import Syntax

_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});?")
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class Spelling:
    """How the letters of one source are written; without a syntax, as they are."""

    def __init__(self, syntax: Syntax | None) -> None:
        self._syntax = syntax
        self._spelt: dict[str, str] = {}
        self._plain: set[str] = set()

    def read(self, text: str, start: int, end: int) -> Iterator[tuple[str | None, int, int]]:
        """Yield each letter of a span of the source, with where it is written.

        None stands for an entity that only the document's type explains.
        """
        at = start
        while at < end:
            match = _REFERENCE.match(text, at, end) if self._syntax and text[at] == "&" else None
            meaning = self._meaning(match.group()) if match else ""
            if match is None or meaning == match.group():
                self._plain.add(text[at])
                yield text[at], at, at + 1
                at += 1
                continue
            if meaning is None:
                yield None, at, match.end()
            elif len(meaning) == 1:
                self._spelt.setdefault(meaning, match.group())
            for number, letter in enumerate(meaning or ""):
                yield letter, at if number == 0 else match.end(), match.end()
            at = match.end()

    def add_plain(self, letters: str) -> None:
        """Take notice of letters that are written as they are."""
        self._plain.update(letters)

    def _meaning(self, reference: str) -> str | None:
        """Return what a reference stands for: itself where it is none, None where it is unknown."""
        name = reference[1:]
        if name.startswith("#"):
            return html.unescape(reference)
        if self._syntax is Syntax.XML:
            return html5.get(name)
        return html5.get(name, reference)

    def write(self, text: str, quote: str = "") -> str:
        """Return a text as it is written in this source; within an attribute, in its quotes."""
        if self._syntax is None:
            return text
        return "".join(self._write(letter, quote) for letter in text)

    def _write(self, letter: str, quote: str) -> str:
        spelt = self._spelt.get(letter)
        if spelt and (letter not in self._plain or letter in _MARKUP or letter == quote):
            return spelt
        if letter in _MARKUP:
            return letter if letter == ">" and letter in self._plain else _MARKUP[letter]
        return f"&#{ord(letter)};" if quote and letter == quote else letter
