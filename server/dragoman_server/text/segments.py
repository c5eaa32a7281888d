"""Where the sentences of a text are.

Everything between them stays as it is: white space, line breaks, lines without a letter.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import sentencex


@dataclass(frozen=True)
class Span:
    """Code points of a text, from start up to but not including end."""

    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


def sentences(text: str, language: str, *, split: bool = True) -> Iterator[Span]:
    """The spans of a text that are to be translated, in order, without white space around them.

    Without ``split``, each line is one.
    """
    for line in _lines(text):
        spans = _split(text, line, language) if split else [line]
        for span in spans:
            stripped = strip(text, span)
            if has_words(stripped.of(text)):
                yield stripped


def has_words(text: str) -> bool:
    """Numbers and marks alone need no translation."""
    return any(letter.isalpha() for letter in text)


def strip(text: str, span: Span) -> Span:
    """The span without white space at its ends."""
    part = span.of(text)
    start = span.start + len(part) - len(part.lstrip())
    return Span(start, max(start, span.start + len(part.rstrip())))


def _lines(text: str) -> Iterator[Span]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield Span(start, start + len(line))
        start += len(line)


def _split(text: str, line: Span, language: str) -> Iterator[Span]:
    start = line.start
    for sentence in sentencex.segment(language, line.of(text)):
        end = start + len(sentence)
        if text[start:end] != sentence:  # the splitter changed something: what it says is no use
            yield Span(start, line.end)
            return
        yield Span(start, end)
        start = end
    if start < line.end:
        yield Span(start, line.end)
