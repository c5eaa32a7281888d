"""What stands in a sentence for text that has to come back unchanged.

A model that was trained with placeholders copies ⟨1⟩ … ⟨9⟩ to their place in the translation. Other
models are given names: they copy those, and inflect the words around them, as in the sentences that
they have seen. After translation each mask has to be there exactly once, or masking has failed.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dragoman_server.text.segments import Span

_NAMES = ("Tom", "Boston", "Kevin", "Denver", "Linda", "Chicago", "Bob", "Oslo")
"""Names of people and places in turn; short, frequent, and written alike in most languages."""


def placeholder(number: int) -> str:
    """Return the text of a placeholder, as the vocabulary of a model has it."""
    return f"⟨{number}⟩"


@dataclass(frozen=True)
class MaskSet:
    """The masks of a model."""

    masks: tuple[str, ...] = _NAMES
    are_words: bool = True
    """Whether a mask has to stand as a word of its own."""

    @classmethod
    def placeholders(cls, count: int) -> "MaskSet":
        """Return the masks of a model that has so many placeholders; without any, names."""
        numbers = range(1, count + 1)
        return cls(tuple(map(placeholder, numbers)), are_words=False) if count else cls()

    @property
    def has_placeholders(self) -> bool:
        return not self.are_words

    def free(self, sentence: str) -> list[str]:
        """Return the masks that a sentence does not have by itself."""
        folded = sentence.lower()
        return [mask for mask in self.masks if mask.lower() not in folded]


NAMES = MaskSet()


@dataclass(frozen=True)
class Masked:
    """A sentence as the model is given it."""

    source: str
    kept: tuple[Span, ...] = ()
    """Spans of the text that are masked."""
    masks: tuple[tuple[str, str], ...] = ()
    """Each mask, and what it stands for in the translation."""
    are_words: bool = True
    in_capitals: bool = False
    """Whether the translation has to be in capitals, but for what is masked."""
    capital: frozenset[str] = frozenset()
    """Masks whose text gets a capital where it begins the translation."""

    @property
    def stands_for(self) -> dict[Span, str]:
        """What is masked, with what stands for it in the translation."""
        return {span: text for span, (_, text) in zip(self.kept, self.masks, strict=True)}

    def restore(self, translation: str) -> str | None:
        """Return the translation with what was masked; None where a mask is lost or repeated."""
        around = str.upper if self.in_capitals else str
        restored = self._replace(translation, dict(self.masks), around)
        if restored and translation.startswith(tuple(self.capital)):
            return restored[:1].upper() + restored[1:]
        return restored

    def _replace(
        self, text: str, stands_for: Mapping[str, str], around: Callable[[str], str] = str
    ) -> str | None:
        """Return a text with what its masks stand for, and the rest of it as ``around`` says."""
        if not stands_for:
            return around(text)
        pieces = self._pattern(stands_for).split(text)  # every second one is a mask
        if sorted(pieces[1::2]) != sorted(stands_for):
            return None
        return "".join(
            stands_for[piece] if number % 2 else around(piece)
            for number, piece in enumerate(pieces)
        )

    def _pattern(self, masks: Iterable[str]) -> re.Pattern[str]:
        either = "|".join(map(re.escape, masks))
        return re.compile(rf"(?<!\w)({either})(?!\w)" if self.are_words else f"({either})")

    def places(self, translation: str) -> list[tuple[Span, int]]:
        """Return where masks stand in a translation, in order, each with its number."""
        numbers = {mask: number for number, (mask, _) in enumerate(self.masks)}
        if not numbers:
            return []
        matches = self._pattern(numbers).finditer(translation)
        return [(Span(*match.span()), numbers[match.group()]) for match in matches]

    def unmask(self, text: str) -> str:
        """Return the source again, out of what the model was given."""
        originals = [span.of(text) for span in self.kept]
        masks = (mask for mask, _ in self.masks)
        return self._replace(self.source, dict(zip(masks, originals, strict=True))) or ""


def mask(
    text: str,
    span: Span,
    kept: Sequence[Span],
    masks: MaskSet = NAMES,
    respelt: Mapping[Span, str] | None = None,
) -> Masked | None:
    """Return a sentence with masks in place of some of its parts.

    ``respelt`` has those that are written otherwise in the translation. None where there are more
    parts than masks, or where one is a part of a word and the masks are words.
    """
    sentence = span.of(text)
    if not kept:
        return Masked(sentence)
    free = masks.free(sentence)
    if len(kept) > len(free):
        return None
    pieces: list[str] = []
    start = span.start
    for name, part in zip(free, kept, strict=False):
        pieces += [text[start : part.start], name]
        start = part.end
    respelt = respelt or {}
    stands_for = tuple(
        (name, respelt.get(part, part.of(text))) for name, part in zip(free, kept, strict=False)
    )
    source = "".join([*pieces, text[start : span.end]])
    # A term of a glossary is written as in the middle of a sentence.
    is_capital = sentence[:1].isupper()
    terms = [name for name, part in zip(free, kept, strict=False) if part in respelt]
    capital = frozenset(terms if is_capital else ())
    masked = Masked(source, tuple(kept), stands_for, masks.are_words, capital=capital)
    return masked if masked.unmask(text) == sentence else None
