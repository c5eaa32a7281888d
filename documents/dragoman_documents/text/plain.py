"""Plain text: a line is a segment, and a paragraph that was wrapped at a width is one too."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from dragoman_documents.document import Document
from dragoman_documents.encodings import decode
from dragoman_documents.inline import has_letters, one_line
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import Render, Slot, Template, Unit

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_ITEM = re.compile(r"\s*(?:[-*+•>#|]|\d+[.)]\s|[a-z]\)\s)")
_BULLET = re.compile(r"(?:[-*+•–—>#]+|\(?\d{1,3}[.)]|[a-z]\))[ \t]+")
_MIN_WIDTH = 40
"""Letters of a line below which nobody wraps."""
_MAX_WIDTH = 160
"""Letters of a line above which nobody wraps."""


def open_plain(data: bytes, settings: DocumentSettings) -> Document:
    """Take a text file apart."""
    text, encoding = decode(data)
    template = Template(text, list(_slots(text)))
    return Document("txt", data, [template], lambda texts: encoding.encode(texts[0]), settings)


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    """Where the text is, without the spaces around it."""
    column: int
    """Letters before the text."""

    @property
    def width(self) -> int:
        return self.column + self.end - self.start


def _slots(text: str) -> Iterator[Slot]:
    paragraph: list[_Line] = []
    for found in _LINE.finditer(text):
        line = found[0]
        body = line.strip()
        if body:
            column = len(line) - len(line.lstrip())
            start = found.start() + column
            paragraph.append(_Line(start, start + len(body), column))
        if not body or found.end() == len(text):
            yield from _paragraph(text, paragraph)
            paragraph = []


def _paragraph(text: str, lines: list[_Line]) -> Iterator[Slot]:
    if not lines:
        return
    lines = [_without_bullet(text, line) for line in lines[:1]] + lines[1:]
    if _is_wrapped(text, lines):
        start, end = lines[0].start, lines[-1].end
        unit = Unit(one_line(text[start:end]), context="paragraph")
        write = partial(
            _write_wrapped,
            max(line.width for line in lines),
            lines[0].column,
            text[lines[0].end : lines[1].start],
            lines[1].column,
        )
        yield Slot(start, end, (unit,), write)
        return
    for line in lines:
        body = _without_bullet(text, line)
        words = text[body.start : body.end]
        if has_letters(words):
            yield Slot(body.start, body.end, (Unit(words, context="line"),), _write_line)


def _without_bullet(text: str, line: _Line) -> _Line:
    bullet = _BULLET.match(text, line.start, line.end)
    if bullet is None:
        return line
    return _Line(bullet.end(), line.end, line.column + bullet.end() - line.start)


def _is_wrapped(text: str, lines: list[_Line]) -> bool:
    """Whether lines are one paragraph: no line had room for the first word of the next one."""
    if len(lines) < 2:
        return False
    width = max(line.width for line in lines)
    if width < _MIN_WIDTH or width > _MAX_WIDTH:
        return False
    if len({text[line.end : after.start] for line, after in pairwise(lines)}) > 1:
        return False
    for line, after in pairwise(lines):
        word = text[after.start : after.end].split(maxsplit=1)[0]
        if line.width + 1 + len(word) <= width or _ITEM.match(text, after.start, after.end):
            return False
    # Of two lines the first is always full: what else tells a paragraph from a list?
    return len(lines) > 2 or text[lines[0].end - 1] not in ".!?:;"


def _write_line(translations: Sequence[str], _: Render) -> str:
    return " ".join(translations[0].split("\n"))


def _write_wrapped(
    width: int, first: int, between: str, column: int, translations: Sequence[str], _: Render
) -> str:
    lines = textwrap.wrap(
        one_line(translations[0]),
        width,
        initial_indent=" " * first,
        subsequent_indent=" " * column,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return between.join(line[column if number else first :] for number, line in enumerate(lines))
