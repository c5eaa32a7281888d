"""Words and marks of a sentence: the units that tags stand around.

A model's tokens are parts of them. A tag never stands within a word, but it may stand between a
word and the mark after it. In scripts without spaces each letter is a unit.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import regex

from dragoman_server.text.segments import Span
from dragoman_server.text.vocabulary import SPACE

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_UNIT = regex.compile(
    rf"""(?V1) [{_UNSPACED}] \p{{M}}*
    | [[\p{{L}}\p{{N}}_] -- [{_UNSPACED}]] [[\p{{L}}\p{{M}}\p{{N}}_] -- [{_UNSPACED}]]*
      (?: ['’-] [[\p{{L}}\p{{N}}] -- [{_UNSPACED}]] [[\p{{L}}\p{{M}}\p{{N}}_] -- [{_UNSPACED}]]* )*
    | \S""",
    regex.VERBOSE,
)
_WORD = regex.compile(r"\S+")


def units_of(text: str, span: Span, whole: Iterable[Span] = ()) -> list[Span]:
    """Return the units of a span of a text; each span of ``whole``, in order, is one."""
    units: list[Span] = []
    start = span.start
    for each in (*whole, Span(span.end, span.end)):
        units += [Span(*match.span()) for match in _UNIT.finditer(text, start, each.start)]
        if each.end > each.start:
            units.append(each)
        start = each.end
    return units


def spans_of(text: str, pieces: Sequence[str]) -> list[Span]:
    """Return where each token of a text stands in it, given their pieces.

    Pieces may be normalised, so they are matched word by word, and within a word by length.
    """
    words = [Span(*match.span()) for match in _WORD.finditer(text)]
    firsts = [place for place, piece in enumerate(pieces) if place == 0 or piece.startswith(SPACE)]
    if len(words) != len(firsts):
        words, firsts = [Span(0, len(text))], [0]
    spans: list[Span] = []
    for word, first, last in zip(words, firsts, [*firsts[1:], len(pieces)], strict=True):
        spans += _within(word, [_length(piece) for piece in pieces[first:last]])
    return spans


def _within(word: Span, lengths: Sequence[int]) -> list[Span]:
    """Return spans of a word that have these lengths, or are as long in proportion."""
    ends = list(accumulate(lengths))
    scale = (word.end - word.start) / max(1, ends[-1] if ends else 1)
    places = [word.start, *(word.start + round(end * scale) for end in ends)]
    return [Span(start, end) for start, end in pairwise(places)]


def _length(piece: str) -> int:
    if len(piece) == 6 and piece.startswith("<0x"):  # a byte; those after the first add no letter
        return int(piece[3:5], 16) & 0xC0 != 0x80
    return len(piece.removeprefix(SPACE))
