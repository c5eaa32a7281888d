"""Subtitles: SubRip (srt) and WebVTT (vtt). A cue is a segment; its lines are broken anew."""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

from dragoman_documents.document import Document
from dragoman_documents.encodings import decode
from dragoman_documents.errors import DocumentError
from dragoman_documents.flow import Atom, Flow, Kind, tag
from dragoman_documents.inline import escape, one_line
from dragoman_documents.markup.html import text_atoms
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import Render, Slot, Template

_TIME = r"(?:\d+:)?\d{1,2}:\d{2}[,.]\d{1,3}"
_TIMES = re.compile(rf"^[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}[^\r\n]*(?:\r\n|\r|\n|\Z)", re.MULTILINE)
_BLANK = re.compile(r"(?>\r\n|\r|\n)[ \t]*(?:\r|\n|\Z)|\Z")
_TAG = re.compile(r"<(/?)([A-Za-z0-9:.]+)[^<>\r\n]*>|\{\\?[^{}\r\n]*\}")
_ENDING = re.compile(r"\r\n|\r|\n")


def open_subtitles(
    format: str,  # noqa: A002 - what everyone calls it
    data: bytes,
    settings: DocumentSettings,
) -> Document:
    """Take subtitles apart."""
    text, encoding = decode(data)
    if format == "vtt" and not text.startswith("WEBVTT"):
        raise DocumentError("does not begin with WEBVTT")
    if text.strip() and _TIMES.search(text) is None and format == "srt":
        raise DocumentError("has no times, so these are no subtitles")
    template = Template(text, list(_slots(text, is_html=format == "vtt")))
    return Document(format, data, [template], lambda texts: encoding.encode(texts[0]), settings)


def _slots(text: str, *, is_html: bool) -> Iterator[Slot]:
    position = 0
    while (found := _TIMES.search(text, position)) is not None:
        start = found.end()
        # A cue without text ends where it begins.
        end = start if text[start : start + 1] in ("\r", "\n", "") else _end(text, start)
        position = max(end, start)
        if end <= start:
            continue
        atoms = list(_atoms(text, start, end, is_html=is_html))
        flow = Flow(atoms, partial(_write_text, is_html), context=found[0].strip())
        if flow.has_text:
            first, last = flow.span
            endings = _ENDING.findall(text, first, last)
            write = partial(_write, flow, len(endings) + 1, endings[0] if endings else "\n")
            yield Slot(first, last, (flow.unit,), write)


def _end(text: str, start: int) -> int:
    found = _BLANK.search(text, start)
    return found.start() if found else len(text)


def _atoms(text: str, start: int, end: int, *, is_html: bool) -> Iterator[Atom]:
    position = start
    for found in _TAG.finditer(text, start, end):
        yield from _texts(text, position, found.start(), is_html=is_html)
        name = (found[2] or "").partition(".")[0].lower()
        if not name or name[0].isdigit():  # a position, or a time inside of a cue
            yield tag(Kind.ALONE, *found.span())
        else:
            yield tag(Kind.CLOSE if found[1] else Kind.OPEN, *found.span(), name)
        position = found.end()
    yield from _texts(text, position, end, is_html=is_html)


def _texts(text: str, start: int, end: int, *, is_html: bool) -> Iterator[Atom]:
    if start >= end:
        return
    if is_html:
        yield from text_atoms(text, start, end)
    else:
        yield Atom(Kind.TEXT, start, end, text=text[start:end])


def _write_text(is_html: bool, text: str, _: str) -> str:
    return escape(text).replace("--&gt;", "->") if is_html else text.replace("-->", "->")


def _write(flow: Flow, lines: int, ending: str, translations: Sequence[str], render: Render) -> str:
    return ending.join(_broken(flow.write_core(one_line(translations[0]), render), lines))


def _broken(text: str, count: int) -> list[str]:
    """Return a text in a number of lines of about the same length, broken at spaces."""
    shown = position = 0
    spaces: deque[tuple[int, int]] = deque()
    for found in [*_TAG.finditer(text), None]:
        end = found.start() if found else len(text)
        for at in range(position, end):
            if text[at] == " ":
                spaces.append((shown, at))
            shown += 1
        position = found.end() if found else end
    lines, first = [], 0
    for number in range(1, count):
        wanted = shown * number / count
        while len(spaces) > 1 and abs(spaces[1][0] - wanted) <= abs(spaces[0][0] - wanted):
            spaces.popleft()
        if not spaces:
            break
        _, at = spaces.popleft()
        lines.append(text[first:at])
        first = at + 1
    return [*lines, text[first:]]
