"""From running text with formatting to a segment with inline tags, and back.

A format describes its text as atoms: text, the beginnings and ends of formatting, and what stands
alone. What encloses all of the text, or stands before or behind it, needs no tag; the rest does.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial

from dragoman_documents.inline import InlineTag, escape, has_letters, split
from dragoman_documents.template import Render, Slot, Unit

Source = tuple[str | tuple[int, int], ...]
"""What is written for a tag: given text, and spans of the source."""
WriteText = Callable[[str, str], str]
"""Returns text as the format writes it, given how it is formatted."""

_SPACES = re.compile(r"[ \t\r\n\f\v]+")
_EDGES = re.compile(r"\A([ \t\r\n\f\v]*)(.*?)([ \t\r\n\f\v]*)\Z", re.DOTALL)


class Kind(Enum):
    """What an atom is."""

    TEXT = auto()
    OPEN = auto()
    CLOSE = auto()
    ALONE = auto()
    BREAK = auto()
    """What ends a segment, such as a line break."""


@dataclass(slots=True)
class Atom:
    """A piece of running text."""

    kind: Kind
    start: int
    end: int
    source: Source = ()
    """What is written for a tag."""
    text: str = ""
    """Characters of a text."""
    format: str = ""
    """How a text is formatted, or the text directly inside of a tag."""
    name: str = ""
    """Name by which an end finds its beginning."""
    mate: int = -1
    """Index of the other tag of a pair."""


def tag(kind: Kind, start: int, end: int, name: str = "") -> Atom:
    """Return a tag that is written as it stands in the source."""
    return Atom(kind, start, end, source=((start, end),), name=name)


def groups(atoms: Sequence[Atom]) -> Iterator[list[Atom]]:
    """Yield the atoms between breaks; a break is a group of its own."""
    group: list[Atom] = []
    for atom in atoms:
        if atom.kind is Kind.BREAK:
            if group:
                yield group
            yield [atom]
            group = []
        else:
            group.append(atom)
    if group:
        yield group


def pair(atoms: Sequence[Atom]) -> list[Atom]:
    """Return atoms whose tags know each other; a tag without its other half stands alone."""
    found = [replace(atom, mate=-1) for atom in atoms]
    opened: list[int] = []
    names: Counter[str] = Counter()
    for index, atom in enumerate(found):
        if atom.kind is Kind.OPEN:
            opened.append(index)
            names[atom.name] += 1
        elif atom.kind is Kind.CLOSE and names[atom.name]:
            while True:  # what was opened since and not closed stands alone
                mate = opened.pop()
                names[found[mate].name] -= 1
                if found[mate].name == atom.name:
                    break
            atom.mate, found[mate].mate = mate, index
    for atom in found:
        if atom.kind in (Kind.OPEN, Kind.CLOSE) and atom.mate < 0:
            atom.kind = Kind.ALONE
    return found


class Flow:
    """Running text without breaks, as one segment."""

    def __init__(
        self,
        atoms: Sequence[Atom],
        write_text: WriteText,
        *,
        base: str = "",
        context: str = "",
        keeps_spaces: bool = False,
    ) -> None:
        self._write_text = write_text
        self._base = base
        self._keeps_spaces = keeps_spaces
        self._atoms = _split_edges(pair(atoms))
        self._first, self._last = _core(self._atoms)
        self._tags: dict[InlineTag, list[Atom]] = {}
        self.unit = self._unit(context)

    @property
    def has_text(self) -> bool:
        """Whether there is something to translate."""
        return self._first < self._last and any(
            atom.kind is Kind.TEXT and has_letters(atom.text)
            for atom in self._atoms[self._first : self._last]
        )

    @property
    def only_text(self) -> Atom | None:
        """The text of the segment, where it is a single one."""
        core = self._atoms[self._first : self._last]
        return core[0] if len(core) == 1 and core[0].kind is Kind.TEXT else None

    @property
    def span(self) -> tuple[int, int]:
        """Where the segment is in the source, without what stands around it."""
        core = self._atoms[self._first : self._last]
        return core[0].start, core[-1].end

    def write_core(self, translation: str, render: Render) -> str:
        """Return what the translation looks like in place of ``span``."""
        return self._write(translation, render, 0)

    def write_all(self, translation: str, render: Render) -> str:
        """Return the translation with what stands around it."""
        before = self._verbatim(self._atoms[: self._first], render, [])
        formats = [
            atom.format
            for atom in self._atoms[: self._first]
            if atom.kind is Kind.OPEN and atom.mate >= self._last
        ]
        after = self._verbatim(self._atoms[self._last :], render, formats)
        return f"{before}{self._write(translation, render, 1)}{after}"

    def _unit(self, context: str) -> Unit:
        numbers: dict[int, int] = {}
        pieces: list[tuple[str, bool]] = []
        count = 0
        alone: list[Atom] | None = None
        for index in range(self._first, self._last):
            atom = self._atoms[index]
            if atom.kind is Kind.ALONE and alone is not None:
                alone.append(atom)  # neighbours are one tag
                continue
            alone = None
            if atom.kind is Kind.TEXT:
                text = atom.text if self._keeps_spaces else _SPACES.sub(" ", atom.text)
                pieces.append((text, False))
                continue
            if atom.kind is Kind.CLOSE:
                inline = InlineTag(numbers[atom.mate], is_end=True)
            else:
                count += 1
                numbers[index] = count
                inline = InlineTag(count, is_alone=atom.kind is Kind.ALONE)
            self._tags[inline] = [atom]
            if atom.kind is Kind.ALONE:
                alone = self._tags[inline]
            pieces.append((str(inline), True))
        has_tags = bool(count)
        text = "".join(escape(text) if has_tags and not is_tag else text for text, is_tag in pieces)
        return Unit(text, has_tags, context)

    def _write(self, translation: str, render: Render, outer: int) -> str:
        formats = [self._base]
        if outer:
            formats += [
                atom.format
                for atom in self._atoms[: self._first]
                if atom.kind is Kind.OPEN and atom.mate >= self._last
            ]
        pieces: list[str | InlineTag] = (
            split(translation) if self.unit.has_tags else [translation] if translation else []
        )
        written = []
        for piece in pieces:
            if isinstance(piece, str):
                written.append(self._write_text(piece, formats[-1]))
                continue
            if piece.is_end:
                formats.pop()
            atoms = self._tags[piece]
            written += [_write_source(atom.source, render) for atom in atoms]
            if not piece.is_end and not piece.is_alone:
                formats.append(atoms[0].format)
        return "".join(written)

    def _verbatim(self, atoms: Sequence[Atom], render: Render, formats: list[str]) -> str:
        formats = [self._base, *formats]
        written = []
        for atom in atoms:
            if atom.kind is Kind.TEXT:
                written.append(self._write_text(atom.text, formats[-1]))
                continue
            if atom.kind is Kind.CLOSE and len(formats) > 1:
                formats.pop()
            written.append(_write_source(atom.source, render))
            if atom.kind is Kind.OPEN:
                formats.append(atom.format)
        return "".join(written)


def flow_slots(
    atoms: Sequence[Atom], context: str, write_text: WriteText | None = None
) -> Iterator[Slot]:
    """Yield the slots of running text whose tags stay as the source has them."""
    for group in groups(atoms):
        if group[0].kind is Kind.BREAK:
            continue
        flow = Flow(group, write_text or write_escaped, context=context)
        if flow.has_text:
            yield Slot(*flow.span, (flow.unit,), partial(_write_flow, flow))


def write_escaped(text: str, _: str) -> str:
    """Return text as XML and HTML have it."""
    return escape(text)


def _write_flow(flow: Flow, translations: Sequence[str], render: Render) -> str:
    return flow.write_core(translations[0], render)


def _write_source(source: Source, render: Render) -> str:
    return "".join(each if isinstance(each, str) else render(*each) for each in source)


def _split_edges(atoms: list[Atom]) -> list[Atom]:
    """Return atoms in which spaces at the edges of texts are texts of their own.

    Only where the text is as long as its source can its halves be found there again.
    """
    found: list[Atom] = []
    moved: dict[int, int] = {}
    for index, atom in enumerate(atoms):
        moved[index] = len(found)
        if atom.kind is not Kind.TEXT:
            found.append(atom)
            continue
        before, text, after = _EDGES.match(atom.text).groups()  # type: ignore[union-attr]
        first, last = atom.start + len(before), atom.end - len(after)
        for piece, start, end in ((before, atom.start, first), (text, first, last)):
            if piece:
                found.append(replace(atom, text=piece, start=start, end=end))
        if after and text:
            found.append(replace(atom, text=after, start=last, end=atom.end))
    for atom in found:
        if atom.mate >= 0:
            atom.mate = moved[atom.mate]
    return found


def _core(atoms: Sequence[Atom]) -> tuple[int, int]:
    """Return where the text is without what encloses it, or stands before or behind it."""
    first, last = 0, len(atoms)
    while first < last:
        head, tail = atoms[first], atoms[last - 1]
        if _is_blank(head):
            first += 1
        elif _is_blank(tail):
            last -= 1
        elif head.kind is Kind.OPEN and head.mate == last - 1:
            first, last = first + 1, last - 1
        elif head.kind is Kind.OPEN and _all_blank(atoms[first + 1 : head.mate]):
            first = head.mate + 1
        elif tail.kind is Kind.CLOSE and _all_blank(atoms[tail.mate + 1 : last - 1]):
            last = tail.mate
        else:
            break
    return first, last


def _all_blank(atoms: Sequence[Atom]) -> bool:
    return all(_is_blank(atom) or atom.kind in (Kind.OPEN, Kind.CLOSE) for atom in atoms)


def _is_blank(atom: Atom) -> bool:
    if atom.kind is Kind.TEXT:
        return not _EDGES.match(atom.text)[2]  # type: ignore[index]
    return atom.kind is Kind.ALONE
