"""Texts of a request: taken apart, and put together again out of translated parts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman_server.service.translation.mending import TranslatedPart
from dragoman_server.text.glossaries.terms import Term
from dragoman_server.text.markup.document import Document
from dragoman_server.text.markup.placing import nodes_within
from dragoman_server.text.markup.writing import Writer
from dragoman_server.text.plan import Joined, Part, join
from dragoman_server.text.segments import Span


@dataclass(frozen=True)
class Clock:
    """Moments of a request, on the engine's clock, in seconds."""

    began: float
    """When the request arrived."""
    prepared: float
    """When its texts were planned and ready for the engine."""


@dataclass(frozen=True)
class Text:
    """A text of a request, taken apart."""

    field: str
    """The name of the text's field on the wire."""
    text: str
    """What the parts are of: the text, or what people read of it."""
    parts: Sequence[Part] = ()
    document: Document | None = None
    """The text as it is written, where it has markup or terms."""
    terms: Sequence[Term] = ()
    """Terms of a glossary in the text, in order."""

    @property
    def expected(self) -> dict[Span, str]:
        """Where terms stand, with what is to stand for each in the translation."""
        return {term.span: term.target for term in self.terms}

    def has_tags(self, part: Part) -> bool:
        """Whether there are tags within a part, which are placed by its alignment."""
        return bool(self.document and nodes_within(self.document, part.span))

    def places(self, part: Part) -> Iterator[int]:
        """Yield where the tags within a part stand."""
        for node in nodes_within(self.document, part.span) if self.document else ():
            yield from (node.start, node.end)

    def written(self, span: Span) -> Span:
        """Return where a span of a part stands in what the client sent."""
        return self.document.written(span) if self.document else span

    def writer(self, language: str) -> Writer | None:
        """Return what writes the text with its markup."""
        if self.document is None:
            return None
        return Writer(self.document, language, {term.span: term.in_place for term in self.terms})

    def joined(self, translated: Sequence[TranslatedPart], language: str) -> Joined:
        """Return the translation of the text."""
        writer = self.writer(language)
        if writer is None:
            parts, texts = [each.part for each in translated], [each.text for each in translated]
            return join(self.text, parts, texts, language=language)
        for each in translated:
            writer.add(each.part.span, each.text, each.tags)
        writer.end()
        return Joined(writer.text, [writer.spans[number] for number in range(len(translated))])

    def lost_terms(self, translated: TranslatedPart) -> Iterator[Term]:
        """Yield the terms of a part that its translation does not have as often as it should."""
        span, text = translated.part.span, translated.text.lower()
        own = [term for term in self.terms if span.start <= term.span.start < span.end]
        left = Counter({term.target.lower(): text.count(term.target.lower()) for term in own})
        for term in own:
            left[term.target.lower()] -= 1
            if left[term.target.lower()] < 0:
                yield term


@dataclass(frozen=True)
class Plan:
    """The texts of a request, ready for the engine."""

    texts: Sequence[Text]
    prefix: tuple[int, ...]
    """Target tokens that the translation of each text has to begin with."""
    letters: int
    """Letters of all texts, by which it is decided what is done in a thread."""
    clock: Clock
