"""A text with markup as a translator sees it: plain text, and where in it the tags stand.

The plain text is what people read, with a line for each block. Each of its letters knows where in
the source it is written. Elements that stay as they are, and are part of a sentence, are one letter
of a private area of Unicode there, which is masked. Attributes that are translated come first, each
on a line of its own: they have to be known before the tags that they stand in are written.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dragoman_server.text.markup.outline import MarkupOptions, Outline, Role, outline_of
from dragoman_server.text.markup.spelling import Spelling
from dragoman_server.text.markup.tokens import Kind, Syntax, Token, attributes_of, tokens_of
from dragoman_server.text.segments import Span, within

READ_ATTRIBUTES = frozenset(("alt", "title", "placeholder", "aria-label"))
"""Attributes whose values people read."""
_ATOMS = [chr(code) for code in range(0x100000, 0x101000)]
"""Letters that stand for what is kept. No sentence has as many, so that they may come again."""
_ATOM = re.compile(f"[{_ATOMS[0]}-{_ATOMS[-1]}]")
LINE_BREAKS = str.maketrans(dict.fromkeys("\n\r\t\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))
"""For ``str.translate``: makes a space of each line break and tab."""


@dataclass(eq=False, slots=True)
class Node:
    """An element that is a part of a sentence, or something that stands at a place of it."""

    open: Span
    """The start tag in the source, or all of what stands at a place."""
    start: int
    """Where the element begins in the plain text."""
    parent: "Node | None"
    """The element around it that is a part of a sentence too."""
    close: Span | None = None
    """The end tag in the source; None for what stands at a place."""
    end: int = -1
    """Where the element ends in the plain text."""

    @property
    def is_point(self) -> bool:
        """Whether nothing that is read stands between its tags."""
        return self.close is None or self.start == self.end


@dataclass(frozen=True)
class AttributeText:
    """The value of an attribute that is translated."""

    value: Span
    """Where the value stands in the source, without its quotation marks."""
    plain: Span
    """Where it stands in the plain text."""
    quote: str
    """Mark around the value in the source; empty for none."""


@dataclass
class _Plain:
    """Plain text that is being put together, with the places of its letters in the source."""

    letters: list[str] = field(default_factory=list)
    starts: "array[int]" = field(default_factory=lambda: array("L"))
    ends: "array[int]" = field(default_factory=lambda: array("L"))

    def __len__(self) -> int:
        return len(self.starts)

    def add(self, letter: str, start: int, end: int) -> None:
        self.letters.append(letter)
        self.starts.append(start)
        self.ends.append(end)

    def add_all(self, letters: str, start: int) -> None:
        """Add letters that stand one after the other in the source."""
        self.letters.append(letters)
        self.starts.extend(range(start, start + len(letters)))
        self.ends.extend(range(start + 1, start + len(letters) + 1))

    def end_line(self, place: int) -> None:
        if self.letters and not self.letters[-1].endswith("\n"):
            self.add("\n", place, place)

    def append(self, other: "_Plain") -> None:
        self.letters += other.letters
        self.starts.extend(other.starts)
        self.ends.extend(other.ends)


class Document:
    """A text, its plain text, and what stands in it."""

    def __init__(self, source: str, options: MarkupOptions | None = None) -> None:
        """Read a text; without options, one that has no markup.

        Raises ``MalformedError`` for XML that is not well-formed.
        """
        self.source = source
        syntax = options.syntax if options else None
        self.spelling = Spelling(syntax)
        self.attributes: list[AttributeText] = []
        self.nodes: list[Node] = []
        """Elements and points in the order of the source."""
        self.atoms: dict[int, Span] = {}
        """What is kept, by its place in the plain text."""
        taken = set(_ATOM.findall(source))
        self._free_atoms = [atom for atom in _ATOMS if atom not in taken] if taken else _ATOMS
        self._breaks_lines = syntax is not Syntax.HTML
        read = _Plain()
        if options is None:
            read.add_all(source, 0)
            self.main = 0
        else:
            outline = outline_of(source, list(tokens_of(source, syntax or Syntax.XML)), options)
            if options.attributes:
                self._read_attributes(read, outline)
            self.main = len(read)
            """Where the plain text of the elements begins, after that of the attributes."""
            self._read_elements(read, outline)
        self.plain = "".join(read.letters)
        self._starts, self._ends = read.starts, read.ends
        self.kept = [Span(place, place + 1) for place in sorted(self.atoms)]
        """Where in the plain text something stands that the model is not given."""
        tags = [(node.start, node) for node in self.nodes]
        tags += [(node.end, node) for node in self.nodes if node.close]
        tags.sort(key=lambda tag: tag[0])
        self._places = [place for place, _ in tags]
        self._tagged = [node for _, node in tags]

    def written(self, span: Span) -> Span:
        """Return where a span of the plain text, which is not empty, is written in the source."""
        return Span(self._starts[span.start], self._ends[span.end - 1])

    def kept_within(self, span: Span) -> Sequence[Span]:
        """Return what is kept within a span of the plain text."""
        return within(self.kept, span)

    def tagged(self, span: Span) -> list[Node]:
        """Return the nodes with a tag within a span of the plain text or at its ends, in order."""
        first = bisect_left(self._places, span.start)
        last = bisect_left(self._places, span.end + 1, first)
        found = {id(node): node for node in self._tagged[first:last]}
        return sorted(found.values(), key=lambda node: node.open.start)

    def _read_attributes(self, plain: _Plain, outline: Outline) -> None:
        for number, token in visible(outline):
            if token.kind not in (Kind.OPEN, Kind.EMPTY) or outline.roles[number] in _WHOLE:
                continue
            for attribute in attributes_of(self.source, token):
                if attribute.name not in READ_ATTRIBUTES:
                    continue
                before = self.source[attribute.start - 1]
                start = len(plain)
                self._read(plain, attribute.start, attribute.end, breaks_lines=False)
                if len(plain) > start:
                    span = Span(start, len(plain))
                    quote = before if before in "\"'" else ""
                    value = Span(attribute.start, attribute.end)
                    self.attributes.append(AttributeText(value, span, quote))
                    plain.end_line(attribute.end)

    def _read_elements(self, plain: _Plain, outline: Outline) -> None:
        tokens, partners = outline.tokens, outline.partners
        opened: list[Node] = []
        by_tag: dict[int, Node] = {}
        for number, token in visible(outline):
            role = outline.roles[number]
            if token.kind is Kind.TEXT:
                self._read(plain, token.start, token.end, breaks_lines=self._breaks_lines)
            elif role is Role.BLOCK:
                plain.end_line(token.start)
            elif role in _WHOLE or token.kind in (Kind.EMPTY, Kind.OTHER):
                end = tokens[max(number, partners[number])].end
                self._read_whole(plain, Span(token.start, end), role, opened)
            elif partners[number] < 0:
                self._add_point(plain, Span(token.start, token.end), opened)
            elif token.kind is Kind.OPEN:
                node = Node(
                    Span(token.start, token.end), len(plain), opened[-1] if opened else None
                )
                by_tag[number] = node
                opened.append(node)
                self.nodes.append(node)
            else:
                node = by_tag[partners[number]]
                node.close, node.end = Span(token.start, token.end), len(plain)
                opened.pop()

    def _read(self, plain: _Plain, start: int, end: int, *, breaks_lines: bool) -> None:
        if self.source.find("&", start, end) < 0:
            letters = self.source[start:end]
            self.spelling.add_plain(letters)
            plain.add_all(letters if breaks_lines else letters.translate(LINE_BREAKS), start)
            return
        for letter, first, last in self.spelling.read(self.source, start, end):
            if letter is None:
                self._add_atom(plain, Span(first, last))
            else:
                plain.add(letter if breaks_lines else letter.translate(LINE_BREAKS), first, last)

    def _read_whole(self, plain: _Plain, span: Span, role: Role, opened: Sequence[Node]) -> None:
        """Read something that stays as it is."""
        if role is Role.KEPT_BLOCK:
            plain.end_line(span.start)
        elif role is Role.KEPT and self._free_atoms:
            self._add_atom(plain, span)
        else:
            self._add_point(plain, span, opened)

    def _add_atom(self, plain: _Plain, span: Span) -> None:
        self.atoms[len(plain)] = span
        plain.add(self._free_atoms[len(self.atoms) % len(self._free_atoms)], span.start, span.end)

    def _add_point(self, plain: _Plain, span: Span, opened: Sequence[Node]) -> None:
        place = len(plain)
        self.nodes.append(Node(span, place, opened[-1] if opened else None, end=place))


_WHOLE = (Role.KEPT, Role.KEPT_BLOCK, Role.UNREAD)
"""Roles of what stays as it is."""


def visible(outline: Outline) -> Iterator[tuple[int, Token]]:
    """Yield the tokens with their numbers, but none within what stays as it is."""
    until = -1
    for number, token in enumerate(outline.tokens):
        if number > until:
            yield number, token
            if token.kind is Kind.OPEN and outline.roles[number] in _WHOLE:
                until = outline.partners[number]
