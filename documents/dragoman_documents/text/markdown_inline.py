"""Inline markup of Markdown: the tokens of markdown-it, found again in the source."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.helpers import parseLinkDestination, parseLinkTitle
from markdown_it.token import Token

from dragoman_documents.flow import Atom, Kind
from dragoman_documents.flow import tag as tag_atom

_PAIRS = {
    "strong_open": Kind.OPEN,
    "em_open": Kind.OPEN,
    "s_open": Kind.OPEN,
    "strong_close": Kind.CLOSE,
    "em_close": Kind.CLOSE,
    "s_close": Kind.CLOSE,
}
_HTML = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)")
_HTML_ALONE = frozenset(("br", "img", "wbr", "hr", "input"))
_SPACE = re.compile(r"[ \t]*\n[ \t]*|[ \t]+")
_NO_TEXT = re.compile(r"\[\^[^\]\s]+\]:?|\[![A-Z]+\]|\A\[[ xX]\](?=\s)")
"""What is text for CommonMark and more for others: footnotes, kinds of notes, boxes to tick."""


class MismatchError(Exception):
    """The source is not what the tokens say."""


@dataclass
class _Cursor:
    content: str
    spans: Sequence[tuple[int, int]]
    """Where each line of the content stands in the source."""
    at: int = 0
    links: list[tuple[int, int]] = field(default_factory=list)
    """Links that are open: where their text begins in the content, and the atoms before it."""

    def __post_init__(self) -> None:
        self._starts = [0, *(i + 1 for i, c in enumerate(self.content) if c == "\n")]

    def take(self, text: str) -> tuple[int, int]:
        """Go on behind a text; return where it was in the content."""
        if not self.content.startswith(text, self.at):
            raise MismatchError
        self.at += len(text)
        return self.at - len(text), self.at

    def source(self, at: int) -> int:
        """Return where a place of the content is in the source."""
        line = bisect_right(self._starts, at) - 1
        return self.spans[line][0] + at - self._starts[line]


class InlineReader:
    """Turns the inline tokens of a block into atoms."""

    def __init__(self, parser: MarkdownIt, references: set[str]) -> None:
        self._parser = parser
        self._references = references

    def atoms(self, block: Token, spans: Sequence[tuple[int, int]], source: str) -> list[Atom]:
        """Return the atoms of a block's content, whose lines stand at these places."""
        lines = block.content.split("\n")
        if any(source[s:e] != line for (s, e), line in zip(spans, lines, strict=True)):
            raise MismatchError
        cursor = _Cursor(block.content, spans)
        found: list[Atom] = []
        for child in block.children or []:
            self._take(child, cursor, found)
        if cursor.content[cursor.at :].strip():
            raise MismatchError
        return found

    def _take(self, token: Token, cursor: _Cursor, found: list[Atom]) -> None:
        start = cursor.at
        if token.type == "text":
            self._text(token.content, cursor, found)
            return
        if token.type == "text_special":
            cursor.take(token.markup)
            self._add(Kind.TEXT, start, cursor, found, text=token.content)
        elif token.type in ("softbreak", "hardbreak"):
            self._break(token.type, cursor, found)
        elif token.type in _PAIRS:
            cursor.take(token.markup)
            self._add(_PAIRS[token.type], start, cursor, found, name=token.markup)
        elif token.type == "code_inline":
            self._skip_code(token.markup, cursor)
            self._add(Kind.ALONE, start, cursor, found)
        elif token.type == "html_inline":
            cursor.take(token.content)
            html = _HTML.match(token.content)
            name = html[2].lower() if html else ""
            is_alone = not html or name in _HTML_ALONE or token.content.endswith("/>")
            kind = Kind.ALONE if is_alone else Kind.CLOSE if html and html[1] else Kind.OPEN
            kind = Kind.BREAK if name == "br" else kind
            self._add(kind, start, cursor, found, name=name)
        elif token.type == "link_open":
            cursor.take("<" if token.markup == "autolink" else "[")
            cursor.links.append((cursor.at, len(found)))
            self._add(Kind.OPEN, start, cursor, found, name="link")
        elif token.type == "link_close":
            self._link_close(token, cursor, found)
        elif token.type == "image":
            self._image(token, cursor, found)
        else:
            raise MismatchError

    def _text(self, text: str, cursor: _Cursor, found: list[Atom]) -> None:
        position = 0
        for match in _NO_TEXT.finditer(text):
            self._plain(text[position : match.start()], cursor, found)
            start = cursor.at
            cursor.take(match[0])
            self._add(Kind.ALONE, start, cursor, found)
            position = match.end()
        self._plain(text[position:], cursor, found)

    def _plain(self, text: str, cursor: _Cursor, found: list[Atom]) -> None:
        if text:
            start = cursor.at
            cursor.take(text)
            self._add(Kind.TEXT, start, cursor, found, text=text)

    def _break(self, kind: str, cursor: _Cursor, found: list[Atom]) -> None:
        start = cursor.at
        if kind == "hardbreak" and cursor.content.startswith("\\", start):
            cursor.at += 1
        match = _SPACE.match(cursor.content, cursor.at)
        if match is None or "\n" not in match[0]:
            raise MismatchError
        cursor.at = match.end()
        if kind == "hardbreak":
            self._add(Kind.BREAK, start, cursor, found)
        else:
            self._add(Kind.TEXT, start, cursor, found, text=" ")

    def _skip_code(self, markup: str, cursor: _Cursor) -> None:
        cursor.take(markup)
        pattern = re.compile(rf"(?<!`){markup}(?!`)")
        match = pattern.search(cursor.content, cursor.at)
        if match is None:
            raise MismatchError
        cursor.at = match.end()

    def _link_close(self, token: Token, cursor: _Cursor, found: list[Atom]) -> None:
        start = cursor.at
        if not cursor.links:
            raise MismatchError
        inner, opening = cursor.links.pop()
        if token.markup == "autolink":  # an address in angle brackets is no text
            cursor.take(">")
            del found[opening:]
            self._add(Kind.ALONE, inner - 1, cursor, found)
            return
        label = cursor.content[inner:start]
        explicit = self._skip_target(cursor, label)
        self._add(Kind.CLOSE, start, cursor, found, name="link")
        if not explicit:  # the text is the name: keep the name when the text changes
            found[-1].source = (f"][{label}]",)

    def _image(self, token: Token, cursor: _Cursor, found: list[Atom]) -> None:
        start = cursor.at
        cursor.take("![")
        self._add(Kind.OPEN, start, cursor, found, name="image")
        inner = cursor.at
        for child in token.children or []:
            self._take(child, cursor, found)
        label, start = cursor.content[inner : cursor.at], cursor.at
        explicit = self._skip_target(cursor, label)
        self._add(Kind.CLOSE, start, cursor, found, name="image")
        if not explicit:
            found[-1].source = (f"][{label}]",)

    def _skip_target(self, cursor: _Cursor, label: str) -> bool:
        """Go on behind the end of a link; return whether it says where it leads by itself."""
        content = cursor.content
        cursor.take("]")
        if content.startswith("(", cursor.at):
            end = _inline_target(content, cursor.at)
            if end is not None:
                cursor.at = end
                return True
        if content.startswith("[", cursor.at):
            end = content.find("]", cursor.at)
            name = content[cursor.at + 1 : end] if end >= 0 else ""
            if not name.strip():
                if end >= 0:
                    cursor.at = end + 1
                return False
            if normalizeReference(name) in self._references:
                cursor.at = end + 1
                return True
        if normalizeReference(label) not in self._references:
            raise MismatchError
        return False

    def _add(
        self,
        kind: Kind,
        start: int,
        cursor: _Cursor,
        found: list[Atom],
        *,
        text: str = "",
        name: str = "",
    ) -> None:
        first, last = cursor.source(start), cursor.source(cursor.at)
        if kind is Kind.TEXT:
            found.append(Atom(kind, first, last, text=text))
        else:
            found.append(tag_atom(kind, first, last, name))


def _inline_target(content: str, at: int) -> int | None:
    """Return where ``(address "title")`` ends, or None where it is none."""
    end = len(content)
    at = _skip_spaces(content, at + 1)
    destination = parseLinkDestination(content, at, end)
    if destination.ok:
        at = destination.pos
        after = _skip_spaces(content, at)
        if after > at:
            title = parseLinkTitle(content, after, end)
            at = title.pos if title.ok else at
    at = _skip_spaces(content, at)
    return at + 1 if content.startswith(")", at) else None


def _skip_spaces(content: str, at: int) -> int:
    while at < len(content) and content[at] in " \t\n":
        at += 1
    return at
