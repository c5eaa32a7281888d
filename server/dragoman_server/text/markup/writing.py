"""A document written again, with translations in place of its sentences and its tags around them.

What is between two sentences is written as it was. Parts are added in the order of the plain text,
and what is certain with each is returned at once, so that a translation can be streamed.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dragoman_server.text.gaps import gap_between
from dragoman_server.text.markup.document import AttributeText, Document
from dragoman_server.text.markup.placing import Placed
from dragoman_server.text.segments import Span


@dataclass
class _Edit:
    """What is written in place of a span of the source."""

    end: int
    pieces: list[str] = field(default_factory=list)
    parts: list[tuple[int, Span]] = field(default_factory=list)
    """Parts in it, by number, and where each stands in the text of the pieces."""
    tags: Sequence[Span] = ()
    """Tags of the source that stand in it, and are written after it."""


class Writer:
    """Writes one document in the language of its translation."""

    def __init__(
        self, document: Document, language: str, terms: Mapping[Span, str] | None = None
    ) -> None:
        """``terms`` are spans of the plain text that are written otherwise, where no part is."""
        self._document = document
        self._language = language
        self._edits: dict[int, _Edit] = {}
        for span, term in (terms or {}).items():
            place = document.written(span)
            tags = _tags(document, span, place)
            written = document.spelling.write(term)
            self._edits[place.start] = _Edit(place.end, [written], tags=tags)
        self._attributes = deque(document.attributes)
        self._edits |= {each.value.start: _Edit(each.value.end) for each in self._attributes}
        self._edited = sorted(self._edits)
        self._pieces: list[str] = []
        self._length = 0
        self._count = 0
        self.spans: dict[int, Span] = {}
        """Where the translation of each part stands, by the number of the part."""
        self._plain = document.main
        """How far the plain text is written."""
        self._source = 0
        """How far the source is written."""
        self._moved: list[Span] = []
        """Tags behind the last part that are written within it."""
        self._before: str | None = None
        """The translation before."""

    def add(self, span: Span, translation: str, tags: Sequence[Placed] = ()) -> str:
        """Write the text up to a part, and its translation; return what is new of the text.

        ``tags`` are those that stand within the translation, in order.
        """
        self._write_attributes(until=span.start)
        number, self._count = self._count, self._count + 1
        if self._attributes:
            self._add_to_attribute(self._attributes[0], number, span, translation)
            return ""
        known = len(self._pieces)
        place = self._document.written(span)
        is_same = translation == span.of(self._document.plain)
        moved = [] if is_same else [each.tag for each in tags]
        self._write_gap(span.start, place.start, [*self._moved, *moved])
        start = self._length
        if is_same:
            self._write_source(place.start, place.end)
        else:
            self._write_translation(span, translation, tags)
        self.spans[number] = Span(start, self._length)
        self._plain, self._source = span.end, place.end
        self._moved, self._before = moved, translation
        return "".join(self._pieces[known:])

    def end(self) -> str:
        """Write the rest, and return it."""
        self._write_attributes(until=self._document.main)
        known = len(self._pieces)
        plain, source = self._document.plain, self._document.source
        self._write_gap(len(plain), len(source), self._moved)
        return "".join(self._pieces[known:])

    @property
    def text(self) -> str:
        """All that was written."""
        return "".join(self._pieces)

    def alone(self, span: Span, translation: str, tags: Sequence[Placed]) -> str:
        """Return another translation of a part, with its tags."""
        other = Writer(self._document, self._language)
        other._edits, other._edited = self._edits, self._edited
        other._write_translation(span, translation, tags)
        return other.text

    def _write_gap(self, plain_end: int, source_end: int, moved: Sequence[Span]) -> None:
        """Write what is between two parts, without the tags that are written within them."""
        plain, start = self._document.plain, self._plain
        same = plain[start:plain_end]
        gap = gap_between(plain, start, plain_end, self._before, self._language)
        drops_spaces = len(gap) < len(same)
        before, _, after = gap.partition(same) if same and not drops_spaces else (gap, "", "")
        self._write(before)
        at = self._source
        tags = sorted(
            (tag for tag in moved if at <= tag.start < source_end), key=lambda tag: tag.start
        )
        for tag in (*tags, Span(source_end, source_end)):
            if drops_spaces:
                self._write_tags(Span(start, plain_end), Span(at, tag.start))
            else:
                self._write_source(at, tag.start)
            at = tag.end
        self._write(after)

    def _write_tags(self, plain: Span, source: Span) -> None:
        """Write a span of the source without the text in it."""
        for tag in _tags(self._document, plain, source):
            self._write_source(tag.start, tag.end)

    def _write_translation(self, span: Span, translation: str, tags: Sequence[Placed]) -> None:
        done = 0
        for number, each in enumerate(tags):
            self._write_text(span, translation[done : each.place])
            left, right = translation[: each.place][-1:], translation[each.place :][:1]
            is_first = number == 0 or tags[number - 1].place < each.place
            is_last = number + 1 == len(tags) or tags[number + 1].place > each.place
            # Between two words there is one space, on either side of the tag.
            if each.space_before and is_first and left.strip() and right.isspace():
                self._write(" ")
            self._write_source(each.tag.start, each.tag.end)
            if each.space_after and is_last and left.isspace() and right.strip():
                self._write(" ")
            done = each.place
        self._write_text(span, translation[done:])

    def _write_text(self, span: Span, text: str, quote: str = "") -> None:
        for piece in self._spelt(span, text, quote):
            if isinstance(piece, Span):
                self._write_source(piece.start, piece.end)
            else:
                self._write(piece)

    def _spelt(self, span: Span, text: str, quote: str = "") -> list[str | Span]:
        """Return a text as it is written, with the places of what stands for itself."""
        plain, atoms = self._document.plain, self._document.atoms
        here = {plain[kept.start]: atoms[kept.start] for kept in self._document.kept_within(span)}
        if not here:
            return [self._document.spelling.write(text, quote)]
        found: list[str | Span] = []
        done = 0
        for at, letter in enumerate(text):
            if letter in here:
                found += [self._document.spelling.write(text[done:at], quote), here[letter]]
                done = at + 1
        found.append(self._document.spelling.write(text[done:], quote))
        return found

    def _write_source(self, start: int, end: int) -> None:
        """Write a span of the source as it is, but for what is written in place of it."""
        source, at = self._document.source, start
        first = bisect_left(self._edited, start)
        for place in self._edited[first : bisect_left(self._edited, end, first)]:
            if place < at:  # within a tag that was written after a term
                continue
            edit = self._edits[place]
            self._write(source[at:place])
            for number, span in edit.parts:
                self.spans[number] = Span(span.start + self._length, span.end + self._length)
            self._write("".join(edit.pieces))
            for tag in edit.tags:
                self._write_source(tag.start, tag.end)
            at = edit.end
        self._write(source[at:end])

    def _write(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)

    def _add_to_attribute(
        self, attribute: AttributeText, number: int, span: Span, translation: str
    ) -> None:
        edit, source = self._edits[attribute.value.start], self._document.source
        place = self._document.written(span)
        begin = self._document.written(attribute.plain).start
        if not edit.pieces:
            edit.pieces.append("" if attribute.quote else '"')
        else:
            begin = self._source
        edit.pieces.append(source[begin : place.start])
        start = sum(map(len, edit.pieces))
        for piece in self._spelt(span, translation, attribute.quote or '"'):
            edit.pieces.append(piece.of(source) if isinstance(piece, Span) else piece)
        edit.parts.append((number, Span(start, sum(map(len, edit.pieces)))))
        self._source = place.end

    def _write_attributes(self, until: int) -> None:
        """Finish the attributes before a place of the plain text."""
        while self._attributes and self._attributes[0].plain.end <= until:
            attribute = self._attributes.popleft()
            edit, value = self._edits[attribute.value.start], attribute.value
            if edit.pieces:
                rest = self._document.source[self._source : value.end]
                edit.pieces += [rest, "" if attribute.quote else '"']
            else:  # nothing in it was to be translated
                edit.pieces.append(value.of(self._document.source))
            self._source = 0


def _tags(document: Document, plain: Span, source: Span) -> list[Span]:
    """Return the tags within a span of the plain text that stand in a span of the source."""
    nodes = document.tagged(plain)
    tags = [tag for node in nodes for tag in (node.open, node.close) if tag]
    found = [tag for tag in tags if source.start <= tag.start and tag.end <= source.end]
    return sorted(found, key=lambda tag: tag.start)
