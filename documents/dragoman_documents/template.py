"""A text whose segments are replaced where they stand: all that is not replaced stays as it was."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Render = Callable[[int, int], str]
"""Returns a span of the source with the segments inside it replaced."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What a slot gives to be translated."""

    text: str
    """Text with inline tags, or plain."""
    has_tags: bool = False
    """Whether the text is escaped as XML, and has inline tags."""
    context: str = ""
    """Where the text stands in the document."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A span of a source, and how its translation is written in its place.

    Slots may be inside each other, as a footnote in a paragraph, but never cross.
    """

    start: int
    end: int
    units: tuple[Unit, ...]
    """Texts to translate."""
    replace: Callable[[Sequence[str], Render], str]
    """Returns what stands in place of the span, given a translation for each unit."""
    is_added: bool = False
    """Whether the span holds no source text, so that also an unchanged text has to be written."""


@dataclass(frozen=True, slots=True)
class LanguageSlot:
    """A span that names the language of the text."""

    start: int
    end: int
    write: Callable[[str], str] = str
    """Returns what stands in place of the span, given the target language."""


@dataclass(frozen=True)
class Template:
    """A text and the slots in it."""

    text: str
    slots: Sequence[Slot] = ()
    languages: Sequence[LanguageSlot] = ()
    left: dict[str, int] = field(default_factory=dict)
    """What was found and left as it is: a description and how often."""

    @property
    def units(self) -> list[Unit]:
        """All units, in the order of the source."""
        return [unit for slot in self._sorted() for unit in slot.units]

    def _sorted(self) -> list[Slot]:
        return sorted(self.slots, key=lambda slot: (slot.start, -slot.end))

    def render(
        self, translations: Sequence[str | None], language: str | None, *, rewrite: bool = False
    ) -> str:
        """Return the text with the translations of its units in their places.

        A unit without a translation stays as it is. With ``rewrite`` also those are written anew
        whose translation is the text itself.
        """
        return _Rendering(self, self._sorted(), translations, language, rewrite).whole()


class _Rendering:
    def __init__(
        self,
        template: Template,
        slots: list[Slot],
        translations: Sequence[str | None],
        language: str | None,
        rewrite: bool,
    ) -> None:
        self._text = template.text
        self._rewrite = rewrite
        languages = template.languages if language else ()
        self._language = language or ""
        first = 0
        entries: list[tuple[Slot | LanguageSlot, Sequence[str | None]]] = []
        for slot in slots:
            last = first + len(slot.units)
            entries.append((slot, translations[first:last]))
            first = last
        entries += [(each, ()) for each in languages]
        self._entries = sorted(entries, key=lambda entry: (entry[0].start, -entry[0].end))
        self._starts = [entry[0].start for entry in self._entries]

    def whole(self) -> str:
        return self._render(0, len(self._text), None)

    def _render(self, start: int, end: int, inside: int | None) -> str:
        """Return a span with what is in it replaced, but for the slot that it is inside of."""
        written: list[str] = []
        position = start
        for index in range(bisect_left(self._starts, start), len(self._entries)):
            slot, translations = self._entries[index]
            if slot.start > end or (slot.start == end and end < len(self._text)):
                break
            if index == inside or slot.end > end or slot.start < position:
                continue
            written.append(self._text[position : slot.start])
            written.append(self._replaced(index, slot, translations))
            position = slot.end
        written.append(self._text[position:end])
        return "".join(written)

    def _replaced(
        self, index: int, slot: Slot | LanguageSlot, translations: Sequence[str | None]
    ) -> str:
        if isinstance(slot, LanguageSlot):
            return slot.write(self._language)
        pairs = list(zip(slot.units, translations, strict=True))
        is_known = any(given is not None for _, given in pairs)
        is_new = slot.is_added or any(given not in (None, unit.text) for unit, given in pairs)
        if not is_known or not (is_new or self._rewrite):
            return self._render(slot.start, slot.end, index)
        texts = [unit.text if given is None else given for unit, given in pairs]
        return slot.replace(texts, lambda start, end: self._render(start, end, index))
