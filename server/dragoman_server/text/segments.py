"""Where the sentences of a text are.

Everything between them stays as it is: white space, line breaks, lines without a letter, and what a
line of a list, a heading or a quotation begins with.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import sentencex

_WINDOW = 4096
"""Letters that the splitter is given at a time: its time may grow with their square."""
_SPACE = re.compile(r"\s")
_MARKER = re.compile(r"\s*(?:(?:[-–—*+•‣◦▪·]|>+|#{1,6}|\(?\d{1,3}\))[ \t]+)+")
"""What a line begins with: a bullet, a number with a bracket, Markdown's quotations and headings.

Not a number with a point, which may be the first word of a sentence (*3. Oktober*)."""


@dataclass(frozen=True)
class Span:
    """Code points of a text, from start up to but not including end."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return what stands there in a text."""
        return text[self.start : self.end]


def sentences(
    text: str, language: str, *, split: bool = True, whole: Sequence[Span] = ()
) -> Iterator[Span]:
    """Yield the spans of a text that are to be translated, without white space around them.

    Without ``split``, each line is one. None begins or ends within a span of ``whole``; these are
    in order.
    """
    for line in _lines(text):
        if not has_words(line.of(text)):
            continue
        start = line.start
        if split and (marker := _MARKER.match(text, line.start, line.end)):
            after = Span(line.start, marker.end())
            start = after.start if meets(whole, after) else after.end
        for end in _ends(text, line, language, whole) if split else [line.end]:
            if end <= start:
                continue  # within the marker
            stripped = strip(text, Span(start, end))
            if has_words(stripped.of(text)):
                yield stripped
            start = end


def has_words(text: str) -> bool:
    """Whether a text has a letter: numbers and marks alone need no translation."""
    return text[:1].isalpha() or any(map(str.isalpha, text))


def strip(text: str, span: Span) -> Span:
    """Return a span without white space at its ends."""
    start, end = span.start, span.end
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return Span(start, end)


def within(spans: Sequence[Span], outer: Span) -> Sequence[Span]:
    """Return the spans that start inside another, given spans in order."""
    first = bisect_left(spans, outer.start, key=_start)
    return spans[first : bisect_left(spans, outer.end, first, key=_start)]


def meets(spans: Sequence[Span], other: Span) -> bool:
    """Whether one of some spans in order overlaps another, which may be empty: a place in it."""
    before = bisect_left(spans, other.end, key=_start)
    return before > 0 and spans[before - 1].end > other.start


def between(outer: Span, cuts: Sequence[Span]) -> list[Span]:
    """Return what is left of a span around others in it, which are in order."""
    if not cuts:
        return [outer]
    starts = [outer.start, *(cut.end for cut in cuts)]
    ends = [*(cut.start for cut in cuts), outer.end]
    return [Span(start, end) for start, end in zip(starts, ends, strict=True)]


def _start(span: Span) -> int:
    return span.start


def _lines(text: str) -> Iterator[Span]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield Span(start, start + len(line))
        start += len(line)


def _ends(text: str, line: Span, language: str, whole: Sequence[Span]) -> Iterator[int]:
    """Yield where the sentences of a line end; the last ends with the line."""
    for boundary in _boundaries(line.of(text), language):
        end = line.start + boundary
        if not meets(whole, Span(end, end)):
            yield end
    yield line.end


def _boundaries(line: str, language: str) -> Iterator[int]:
    """Yield where sentences end within a line.

    A window begins with a sentence, or is the middle of one.

    The splitter is given plain spaces, because it panics where another one follows an initial.
    """
    code = language.replace("_", "-").partition("-")[0].lower()  # of pt-BR, it knows only pt
    plain = _SPACE.sub(" ", line)
    start = 0
    while start < len(line):
        window = plain[start : start + _WINDOW]
        ends = list(accumulate(map(len, _segment(code, window))))
        yield from (start + end for end in ends[:-1])
        is_last = start + _WINDOW >= len(line)
        start += _WINDOW if is_last or len(ends) == 1 else ends[-2]


def _segment(code: str, window: str) -> list[str]:
    try:
        found: list[str] = sentencex.segment(code, window)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Rust's, which is no Exception
            raise
        return [window]
    return found if "".join(found) == window else [window]  # changed: its lengths are no use
