"""From a text to what the model is given, and from its translations to a text.

    text → sentences, cut at symbols → untranslatable words masked → capitals undone
         → parts that fit the model → ids

A part whose masks did not survive translation is done again in pieces around them, so that what was
masked comes back byte for byte whatever the model does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dragoman_server.text import casing
from dragoman_server.text.gaps import gap_between
from dragoman_server.text.masks import NAMES, Masked, MaskSet, mask
from dragoman_server.text.overlong import split_overlong
from dragoman_server.text.protected import Protected, addresses, merged, protect
from dragoman_server.text.segments import (
    Span,
    between,
    has_words,
    meets,
    sentences,
    strip,
    within,
)
from dragoman_server.text.vocabulary import Vocabulary

_OBJECT = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands for something kept while a sentence is split, as a letter that can't be."""


class OverlongError(ValueError):
    """A sentence that is longer than the model takes, where that is not to be mended."""

    def __init__(self, tokens: int, max_tokens: int) -> None:
        super().__init__(f"has a sentence of {tokens} tokens: the model takes {max_tokens}")


@dataclass(frozen=True)
class Part:
    """What is translated in one go."""

    span: Span
    """Where the part stands in the text."""
    masked: Masked
    """What the model is given in place of the part."""
    ids: tuple[int, ...]
    """Source tokens, those of languages included, without the end token."""
    recase: bool = True
    """Whether capitals are undone in what the model is given."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """How a text is taken apart."""

    split_sentences: bool = True
    """Split texts into sentences; else each line is one."""
    keep: bool = True
    """Keep what no model translates as it is; else the model is given everything."""
    split_overlong: bool = True
    """Split sentences that are longer than the model takes; else they are an error."""
    recase: bool = True
    """Undo the capitals of sentences in capitals or in Title Case; else the model is given them."""


@dataclass(frozen=True)
class Planner:
    """Takes texts apart for one model."""

    vocabulary: Vocabulary
    """Vocabulary of the source."""
    language: str
    """Language of the source, whose sentences are found by its rules."""
    max_tokens: int
    """Most source tokens of a sentence, without the end token and those of languages."""
    before: tuple[int, ...] = ()
    """Tokens that every source begins with, such as those of languages; no limit counts them."""
    masks: MaskSet = NAMES
    """Masks that stand for text that is kept."""

    def plan(
        self,
        text: str,
        options: PlanOptions,
        kept: Sequence[Span] = (),
        terms: Mapping[Span, str] | None = None,
    ) -> list[Part]:
        """Return the parts of a text, in order; what is between them stays.

        ``kept`` are spans that the model is never given, in order; ``terms`` are others, beside
        them, with what stands for each in the translation. Raises ``OverlongError`` for what is too
        long and not to be split, or can't be.
        """
        terms = terms or {}
        found = addresses(text) if options.keep else []
        found = merged([*found, *kept]) if kept else found
        if terms:
            others = [span for span in terms if not meets(found, span)]
            found = sorted([*found, *others], key=lambda span: span.start)
        parts: list[Part] = []
        for sentence in sentences(text, self.language, split=options.split_sentences, whole=found):
            protected = Protected(within(found, sentence))
            if options.keep:
                protected = protect(
                    text,
                    sentence,
                    within(found, sentence),
                    self.vocabulary.spells,
                    has_placeholders=self.masks.has_placeholders,
                )
            for span in _with_words(text, sentence, protected.cuts):
                parts += self._parts(text, span, within(protected.masked, span), options, terms)
        return parts

    def around(self, text: str, part: Part) -> list[Part]:
        """Return a part again, in pieces without what it keeps."""
        return self._again(text, part, _with_words(text, part.span, part.masked.kept))

    def cut(self, text: str, part: Part, places: Iterable[int]) -> list[Part]:
        """Return a part again, in pieces between some places of the text."""
        cuts = [Span(place, place) for place in sorted(set(places))]
        return self._again(text, part, _with_words(text, part.span, cuts))

    def _again(self, text: str, part: Part, spans: Sequence[Span]) -> list[Part]:
        """Return spans of a part as parts, with what of it they keep whole."""
        terms, options = part.masked.stands_for, PlanOptions(recase=part.recase)
        pieces: list[Part] = []
        for span in spans:
            kept = [each for each in within(part.masked.kept, span) if each.end <= span.end]
            pieces += self._parts(text, span, kept, options, terms)
        return pieces

    def with_numbers(self, text: str, part: Part, respelt: Mapping[Span, str]) -> Part | None:
        """Return a part again, with its numbers masked too and as the target writes them.

        None where the masks do not suffice, or the part would be too long.
        """
        numbers = [span for span in respelt if not meets(part.masked.kept, span)]
        kept = sorted([*part.masked.kept, *numbers], key=lambda span: span.start)
        masked = mask(text, part.span, kept, self.masks, {**respelt, **part.masked.stands_for})
        again = None if masked is None else self._part(part.span, masked, recase=part.recase)
        return again if again is not None and self._has_room(again) else None

    def _part(self, span: Span, masked: Masked, *, recase: bool) -> Part:
        masks = [mask for mask, _ in masked.masks]
        if recase and (usual := casing.recase(masked.source, self.vocabulary.cost, masks)):
            masked = replace(masked, source=usual.text, in_capitals=usual.in_capitals)
        return Part(span, masked, (*self.before, *self.vocabulary.encode(masked.source)), recase)

    def _has_room(self, part: Part) -> bool:
        return len(part.ids) - len(self.before) <= self.max_tokens

    def _parts(
        self,
        text: str,
        span: Span,
        kept: Sequence[Span],
        options: PlanOptions,
        terms: Mapping[Span, str],
    ) -> list[Part]:
        """Return a span as one part, or as several where it can't be masked or is too long."""
        smaller = _with_words(text, span, kept)
        if not smaller:  # nothing else is in it
            return []
        masked = mask(text, span, kept, self.masks, terms)
        if masked is not None:
            part = self._part(span, masked, recase=options.recase)
            if self._has_room(part):
                return [part]
            length = len(part.ids) - len(self.before)
            if not options.split_overlong and not self._fits(span.of(text)):
                raise OverlongError(length, self.max_tokens)
            split = self._split(text, span, kept) if options.split_overlong else []
            # Else it is the names that are too long: longer than what they stand for.
            smaller = split if len(split) > 1 else smaller
            if smaller == [span]:  # a letter
                raise OverlongError(length, self.max_tokens)
        return [
            part
            for each in smaller
            for part in self._parts(text, each, within(kept, each), options, terms)
        ]

    def _split(self, text: str, span: Span, kept: Sequence[Span]) -> list[Span]:
        """Return parts of a span that fit when masked; nothing that is kept is cut in two."""
        gaps = between(span, kept)
        shown = _OBJECT.join(gap.of(text) for gap in gaps)
        places = [place for gap in gaps for place in range(gap.start, gap.end + 1)]

        def fits(part: str) -> bool:
            return self._fits(part.replace(_OBJECT, self.masks.masks[0]) if kept else part)

        parts = split_overlong(shown, Span(0, len(shown)), fits)
        return [Span(places[part.start], places[part.end]) for part in parts]

    def _fits(self, text: str) -> bool:
        return len(self.vocabulary.encode(text)) <= self.max_tokens


def _with_words(text: str, span: Span, cuts: Sequence[Span]) -> list[Span]:
    """Return what is left of a span around others, where there is a word in it."""
    left = [strip(text, gap) for gap in between(span, cuts)]
    return [each for each in left if has_words(each.of(text))]


@dataclass(frozen=True)
class Joined:
    """A text that was put together."""

    text: str
    spans: list[Span]
    """Where the translation of each part stands in the text."""


def join(
    text: str,
    parts: Sequence[Part],
    translations: Iterable[str],
    within: Span | None = None,
    *,
    before: str | None = None,
    language: str = "",
) -> Joined:
    """Return a text, or a span of it, with translations in place of its parts.

    ``before`` is the translation before the span, and ``language`` the code of the language of the
    translations: see ``gap_between``.
    """
    outer = within or Span(0, len(text))
    pieces: list[str] = []
    spans: list[Span] = []
    length, done = 0, outer.start
    for part, translation in zip(parts, translations, strict=True):
        gap = gap_between(text, done, part.span.start, before, language)
        pieces += [gap, translation]
        start = length + len(gap)
        spans.append(Span(start, start + len(translation)))
        length, done, before = spans[-1].end, part.span.end, translation
    is_last = outer.end == len(text)
    rest = gap_between(text, done, outer.end, before, language if is_last else "")
    pieces.append(rest)
    return Joined("".join(pieces), spans)
