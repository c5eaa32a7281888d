"""Sentences that are longer than a model takes, split where a reader would pause."""

import re
from collections.abc import Callable

from dragoman_server.text.segments import Span, strip

_CLAUSE = re.compile(r"[,;:–—…!?.。、،؛)\]»”]+(?=\s|$)")
_SPACE = re.compile(r"(?<=\S)(?=\s)")

Fits = Callable[[str], bool]
"""Whether the model takes a text."""


def split_overlong(text: str, span: Span, fits: Fits) -> list[Span]:
    """Parts that fit, as few as a greedy choice makes them, in order.

    Each ends after a clause where there is one in its second half, else before a space, and only
    where there is neither within a word.
    """
    parts: list[Span] = []
    rest = strip(text, span)
    while rest.start < rest.end and not fits(rest.of(text)):
        end = rest.start + _longest_prefix(rest.of(text), fits)
        part = Span(rest.start, _best_end(text, Span(rest.start, end)))
        parts.append(strip(text, part))
        rest = strip(text, Span(part.end, rest.end))
    if rest.start < rest.end:
        parts.append(rest)
    return parts


def _longest_prefix(text: str, fits: Fits) -> int:
    """How many letters of the beginning fit, at least one."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(text[:middle]):
            low = middle
        else:
            high = middle - 1
    return low


def _best_end(text: str, span: Span) -> int:
    part = span.of(text)
    clauses = [match.end() for match in _CLAUSE.finditer(part) if match.end() > len(part) // 2]
    if clauses:
        return span.start + clauses[-1]
    if span.end < len(text) and text[span.end].isspace():
        return span.end
    spaces = [match.start() for match in _SPACE.finditer(part)]
    return span.start + spaces[-1] if spaces else span.end
