"""Sentences that are longer than a model takes, split where a reader would pause."""

import re
from collections.abc import Callable, Iterator

import regex

from dragoman_server.text.segments import Span, strip

_CLAUSE = re.compile(r"[,;:–—…!?.،؛؟)\]»”](?=\s)|[。、，；：！？」』）]")
_SPACE = re.compile(r"(?<=\S)(?=\s)")
_LETTER = regex.compile(r"\X")
"""A letter with the marks that belong to it."""

Fits = Callable[[str], bool]
"""Whether the model takes a text; it takes one letter at least."""


def split_overlong(text: str, span: Span, fits: Fits) -> list[Span]:
    """Return parts of a span that fit, in order, as few as a greedy choice makes them.

    Each ends after a clause where there is one in its second half, else before a space, and only
    where there is neither within a word. What does not fit even as one letter is a part of its own.
    """
    parts: list[Span] = []
    rest = strip(text, span)
    guess = 1
    while rest.start < rest.end:
        guess = _longest_prefix(text, rest, fits, guess)
        part = _part(text, rest, rest.start + guess, fits)
        parts.append(part)
        rest = strip(text, Span(part.end, rest.end))
    return parts


def _longest_prefix(text: str, rest: Span, fits: Fits, guess: int) -> int:
    """Return how many letters of the beginning fit, at least one.

    Looks no further than twice what fits, or what is guessed: the text may be very long.
    """
    length = rest.end - rest.start

    def first_fit(count: int) -> bool:
        return fits(text[rest.start : rest.start + count].rstrip())

    low, high = 1, min(length, 2 * guess)
    while low < high and first_fit(high):
        low, high = high, min(length, 2 * high)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if first_fit(middle) else (low, middle)
    return low


def _part(text: str, rest: Span, end: int, fits: Fits) -> Span:
    """Return the best beginning of the rest that goes no further than to an end that fits."""
    if end < rest.end:
        for pause in _pauses(text, Span(rest.start, end)):
            better = strip(text, Span(rest.start, pause))
            # A shorter text has more tokens at times, so that it fits is not certain.
            if fits(better.of(text)):
                return better
    return strip(text, Span(rest.start, end))


def _pauses(text: str, span: Span) -> Iterator[int]:
    """Yield the last end of a clause, of a word, and of a letter in a span; the better first."""
    seen = span.end + 1  # what follows says whether it is an end
    clauses = [match.end() for match in _CLAUSE.finditer(text, span.start, seen)]
    yield from [end for end in clauses if (span.start + span.end) // 2 < end <= span.end][-1:]
    yield from [match.start() for match in _SPACE.finditer(text, span.start, seen)][-1:]
    letters = [match.end() for match in _LETTER.finditer(text, span.start, seen)]
    yield from [end for end in letters if end <= span.end][-1:]
