"""From the attention of a model, token by token, to the units of a sentence and its translation.

What was masked is known to be made from itself, and so is a word that stands in both. All else is
as the decoder looked at the source.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dragoman_server.text.markup.units import spans_of, units_of
from dragoman_server.text.masks import Masked
from dragoman_server.text.segments import Span

Floats = npt.NDArray[np.float32]

_MIN_LETTERS = 3
"""Letters of a word that is taken to be the same word where both sides have it."""


@dataclass(frozen=True)
class Aligned:
    """The units of a sentence and of its translation, and which were made from which."""

    source: list[Span]
    """Units of the source, in the text that it stands in."""
    target: list[Span]
    """Units of the translation."""
    weights: list[list[float]]
    """For each unit of the translation, how much of it was made from each unit of the source; a
    line sums to 1, or is 0 where nothing is known."""


@dataclass(frozen=True)
class Decoded:
    """A translation as the model wrote it."""

    text: str
    """Text of the tokens, before masks are restored."""
    pieces: Sequence[str]
    """Pieces of the translation's tokens."""
    source_pieces: Sequence[str]
    """Pieces of what the model was given."""
    attention: Floats
    """For each piece of the translation, how much the decoder looked at each piece of the source.
    """


def align(plain: str, span: Span, masked: Masked, decoded: Decoded, translation: str) -> Aligned:
    """Return the units of a sentence at a span of a text, and of its translation."""
    source = _Masks.of_source(masked, span)
    sources = units_of(plain, span, masked.kept)
    target = _Masks.of_translation(masked, decoded.text)
    ends = _common_ends(target.restored, translation)
    whole = [
        moved
        for each in target.spans
        if (moved := ends.moved(each)).of(translation) == each.of(target.restored)
    ]
    targets = units_of(translation, Span(0, len(translation)), whole)
    from_source = _overlaps(
        [source.back(unit) for unit in sources], spans_of(masked.source, decoded.source_pieces)
    )
    to_target = _overlaps(
        [target.back(ends.back(unit)) for unit in targets], spans_of(decoded.text, decoded.pieces)
    )
    weights = (to_target @ decoded.attention @ from_source.T).astype(np.float32)
    # What no other unit looks at was probably made into this one: articles are looked at little.
    weights *= weights / np.maximum(weights.sum(axis=0, keepdims=True), 1e-9)
    kept = {span: number for number, span in enumerate(masked.kept)}
    names = [f"\0{kept[unit]}" if unit in kept else unit.of(plain).lower() for unit in sources]
    masks = dict(zip(map(ends.moved, target.spans), target.numbers, strict=True))
    written = [f"\0{masks[u]}" if u in masks else u.of(translation).lower() for u in targets]
    _same_words(weights, names, written)
    _same_marks(weights, names, written)
    sums = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
    return Aligned(sources, targets, weights.tolist())


def _overlaps(units: Sequence[Span], tokens: Sequence[Span]) -> Floats:
    """Return which share of each token is in each unit."""
    found = np.zeros((len(units), len(tokens)), np.float32)
    first = 0
    for row, unit in enumerate(units):
        while first < len(tokens) and tokens[first].end <= unit.start:
            first += 1
        for column in range(first, len(tokens)):
            token = tokens[column]
            if token.start >= unit.end:
                break
            shared = min(token.end, unit.end) - max(token.start, unit.start)
            found[row, column] = max(0, shared) / max(1, token.end - token.start)
    return found


def _same_words(weights: Floats, sources: Sequence[str], targets: Sequence[str]) -> None:
    """Align words that stand once on both sides, and what was masked, with themselves alone."""
    counts, written = Counter(sources), Counter(targets)
    for column, name in enumerate(sources):
        is_plain = name.startswith("\0") or len(name) >= _MIN_LETTERS or name.isdigit()
        if is_plain and counts[name] == written[name] == 1:
            weights[:, column] = 0
            row = targets.index(name)
            weights[row] = 0
            weights[row, column] = 1


def _same_marks(weights: Floats, sources: Sequence[str], targets: Sequence[str]) -> None:
    """Let marks be made from the same marks only: where a comma stands is up to the language."""
    for row, name in enumerate(targets):
        if not name[0].isalnum() and not name.startswith("\0"):
            weights[row, [other != name for other in sources]] = 0


@dataclass(frozen=True)
class _Masks:
    """A text with masks, and with what they stand for."""

    restored: str
    pairs: list[tuple[Span, Span]]
    """Spans of the text with masks and of the one without, one after the other."""
    spans: list[Span]
    """What masks stand for, where it stands."""
    numbers: list[int]

    @classmethod
    def of_source(cls, masked: Masked, span: Span) -> "_Masks":
        """Return what the model was given, and the span of the text that it stands for."""
        pairs: list[tuple[Span, Span]] = []
        here, there = 0, span.start
        for kept, (mask, _) in zip(masked.kept, masked.masks, strict=True):
            length = kept.start - there
            pairs.append((Span(here, here + length), Span(there, kept.start)))
            here += length
            pairs.append((Span(here, here + len(mask)), kept))
            here, there = here + len(mask), kept.end
        pairs.append((Span(here, len(masked.source)), Span(there, span.end)))
        return cls("", pairs, [], [])

    @classmethod
    def of_translation(cls, masked: Masked, text: str) -> "_Masks":
        """Return a translation with its masks, and the one that they were restored in."""
        around = str.upper if masked.in_capitals else str
        pieces: list[str] = []
        pairs: list[tuple[Span, Span]] = []
        spans: list[Span] = []
        here = there = 0

        def add(end: int, piece: str) -> None:
            nonlocal here, there
            pairs.append((Span(here, end), Span(there, there + len(piece))))
            pieces.append(piece)
            here, there = end, there + len(piece)

        places = masked.places(text)
        for place, number in places:
            add(place.start, around(text[here : place.start]))
            add(place.end, masked.masks[number][1])
            spans.append(pairs[-1][1])
        add(len(text), around(text[here:]))
        return cls("".join(pieces), pairs, spans, [number for _, number in places])

    def back(self, span: Span) -> Span:
        """Return a span of the text without masks in the one with them."""
        return Span(self._back(span.start, is_end=False), self._back(span.end, is_end=True))

    def _back(self, place: int, *, is_end: bool) -> int:
        for here, there in self.pairs:
            if there.start <= place < there.end or (is_end and there.start < place == there.end):
                if there.end - there.start == here.end - here.start:
                    return here.start + place - there.start
                if place in (there.start, there.end):
                    return here.end if place == there.end else here.start
                return here.end if is_end else here.start
        return self.pairs[-1][0].end


@dataclass(frozen=True)
class _CommonEnds:
    """Two texts that begin and end alike."""

    first: int
    """Letters that are the same from the beginning on."""
    last: int
    """Where the same letters begin at the end of the second text."""
    shift: int
    """Letters that the second text has more."""
    middle: Span
    """What the first text has in between."""

    def moved(self, span: Span) -> Span:
        """Return a span of the first text in the second one."""
        return (
            span if span.end <= self.first else Span(span.start + self.shift, span.end + self.shift)
        )

    def back(self, span: Span) -> Span:
        """Return a span of the second text in the first one."""
        if span.end <= self.first:
            return span
        if span.start >= self.last:
            return Span(span.start - self.shift, span.end - self.shift)
        return self.middle


def _common_ends(one: str, other: str) -> _CommonEnds:
    shorter = min(len(one), len(other))
    first = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    most = shorter - first
    last = next((at for at in range(most) if one[-1 - at] != other[-1 - at]), most)
    shift = len(other) - len(one)
    return _CommonEnds(first, len(other) - last, shift, Span(first, len(one) - last))
