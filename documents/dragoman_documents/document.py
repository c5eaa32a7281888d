"""A document that is open: its segments, and the file with their translations in their places."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dragoman_documents.errors import DocumentError
from dragoman_documents.inline import tags_hold
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import Template

Assemble = Callable[[Sequence[str]], bytes]
"""Returns a file, given the texts of its templates in order."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a document that is translated as a whole: a paragraph, a cell, a heading."""

    id: str
    """Identifier within the document: the same file gives the same ones."""
    text: str
    """Text to translate: plain, or escaped as XML with tags where ``has_tags``."""
    has_tags: bool
    """Whether the text has inline tags ``<x1>…</x1>`` and ``<x2/>``, which a translation has to
    have too, each once."""
    context: str
    """Where it stands: a member of the file, the name of an element, the key of a string."""


class Document:
    """A file that was taken apart."""

    def __init__(
        self,
        format: str,  # noqa: A002 - what everyone calls it
        data: bytes,
        templates: Sequence[Template],
        assemble: Assemble,
        settings: DocumentSettings,
    ) -> None:
        self.format = format
        self._data = data
        self._templates = templates
        self._assemble = assemble
        units = [unit for template in templates for unit in template.units]
        if len(units) > settings.max_segments:
            raise DocumentError(
                f"has {len(units):,} segments, and may have {settings.max_segments:,}"
            )
        self.segments: tuple[Segment, ...] = tuple(
            Segment(str(number), unit.text, unit.has_tags, unit.context)
            for number, unit in enumerate(units, start=1)
        )
        """What there is to translate, in the order of the file."""
        left: Counter[str] = Counter()
        for template in templates:
            left.update(template.left)
        self.left: dict[str, int] = dict(left)
        """What was found and is left as it is: a description, and how often."""

    def write(
        self,
        translations: Mapping[str, str],
        target_language: str | None = None,
        *,
        rewrite: bool = False,
    ) -> bytes:
        """Return the file with translations, by the segments' ids, in the places of their sources.

        A segment without a translation stays as it is, and a file in which nothing changes is
        returned byte for byte. Where the file names its language, that becomes
        ``target_language``. With ``rewrite`` also segments are written anew whose translation is
        their text. Raises ``DocumentError`` where a translation has other tags than its source.
        """
        given: list[str | None] = []
        for segment in self.segments:
            translation = translations.get(segment.id)
            if (
                translation is not None
                and segment.has_tags
                and not tags_hold(segment.text, translation)
            ):
                raise DocumentError(
                    f"segment {segment.id}: the translation has other tags than its source"
                )
            given.append(None if translation is None else _clean(translation))
        texts, first = [], 0
        for template in self._templates:
            last = first + len(template.units)
            texts.append(template.render(given[first:last], target_language, rewrite=rewrite))
            first = last
        if all(
            text == template.text for text, template in zip(texts, self._templates, strict=True)
        ):
            return self._data
        return self._assemble(texts)


def _clean(text: str) -> str:
    """Return text without the control characters that no XML may have."""
    if text.isprintable():
        return text
    return "".join(each for each in text if each in "\t\n\r" or ord(each) >= 0x20)
