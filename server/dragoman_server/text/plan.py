"""From a text to what the model is given, and from its translations to a text.

    text → sentences, cut at symbols → parts that fit the model → untranslatable words masked → ids

A part whose masks did not survive translation is done again in pieces around them, so that what was
masked comes back byte for byte whatever the model does.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoman_server.text.masks import Masked, mask
from dragoman_server.text.overlong import split_overlong
from dragoman_server.text.pieces import Pieces
from dragoman_server.text.protected import symbols, untranslatable
from dragoman_server.text.segments import Span, has_words, sentences, strip


class OverlongError(ValueError):
    """A sentence that is longer than the model takes, where that is not to be mended."""

    def __init__(self, tokens: int, most: int) -> None:
        super().__init__(f"has a sentence of {tokens} tokens: the model takes {most}")


@dataclass(frozen=True)
class Part:
    """What is translated in one go."""

    span: Span
    masked: Masked
    ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    split_sentences: bool = True
    """Else each line is one."""
    keep: bool = True
    """Keep what is untranslatable as it is; else the model is given everything."""
    split_overlong: bool = True
    """Else a sentence that is too long is an error."""


@dataclass(frozen=True)
class Planner:
    """Of one model: its source vocabulary, language and limit."""

    pieces: Pieces
    language: str
    most: int
    """Tokens of a sentence, without the end token."""

    def plan(self, text: str, options: PlanOptions) -> list[Part]:
        """The parts of a text, in order; what is between them stays."""
        parts: list[Part] = []
        for sentence in sentences(text, self.language, split=options.split_sentences):
            cuts = symbols(text, sentence, self.pieces.spells) if options.keep else []
            for span in _between(text, sentence, cuts):
                tokens = len(self.pieces.encode(span.of(text)))
                if tokens > self.most and not options.split_overlong:
                    raise OverlongError(tokens, self.most)
                for piece in split_overlong(text, span, self._fits):
                    parts += self._parts(text, piece, options.keep)
        return parts

    def around(self, text: str, part: Part) -> list[Part]:
        """A part again, in pieces without what it keeps."""
        spans = _between(text, part.span, part.masked.kept)
        return [self._part(span, Masked(span.of(text))) for span in spans]

    def _parts(self, text: str, span: Span, keep: bool) -> list[Part]:
        kept = untranslatable(text, span, self.pieces.spells) if keep else []
        pieces = _between(text, span, kept)
        if not pieces:  # nothing else is in it
            return []
        masked = mask(text, span, kept)
        if masked is None:
            return [self._part(piece, Masked(piece.of(text))) for piece in pieces]
        part = self._part(span, masked)
        if len(part.ids) > self.most:  # names that are longer than what they stand for
            return [self._part(piece, Masked(piece.of(text))) for piece in pieces]
        return [part]

    def _part(self, span: Span, masked: Masked) -> Part:
        return Part(span, masked, self.pieces.encode(masked.source))

    def _fits(self, text: str) -> bool:
        return len(self.pieces.encode(text)) <= self.most


def _between(text: str, span: Span, cuts: Sequence[Span]) -> list[Span]:
    """What is left of a span around others, where there is a word in it."""
    starts = [span.start, *(cut.end for cut in cuts)]
    ends = [*(cut.start for cut in cuts), span.end]
    left = [strip(text, Span(start, end)) for start, end in zip(starts, ends, strict=True)]
    return [each for each in left if has_words(each.of(text))]


@dataclass(frozen=True)
class Joined:
    text: str
    spans: list[Span]
    """Of each part's translation."""


def join(text: str, parts: Sequence[Part], translations: Iterable[str]) -> Joined:
    """The text with translations in place of its parts."""
    pieces: list[str] = []
    spans: list[Span] = []
    length, done = 0, 0
    for part, translation in zip(parts, translations, strict=True):
        between = text[done : part.span.start]
        pieces += [between, translation]
        start = length + len(between)
        spans.append(Span(start, start + len(translation)))
        length, done = spans[-1].end, part.span.end
    pieces.append(text[done:])
    return Joined("".join(pieces), spans)
