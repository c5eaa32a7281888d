"""Paragraphs made of runs, as Office Open XML has them: text, and how it is formatted, by turns.

Most of a paragraph is in one format, which needs no tags; what is in another has them. Word splits
runs where nothing changes for a reader, so formats are compared without what nobody sees.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from dragoman_documents.flow import Atom, Flow, Kind, groups, pair, tag
from dragoman_documents.inline import escape
from dragoman_documents.markup.xml_tree import Element, XmlSource
from dragoman_documents.template import Render, Slot


@dataclass(frozen=True, kw_only=True)
class RunScheme:
    """The names that one kind of file has for what a paragraph is made of."""

    paragraphs: frozenset[str]
    run: str
    properties: str
    text: str
    about: frozenset[str]
    """Children of a paragraph that are about it, and not in its text."""
    wrappers: frozenset[str] = frozenset()
    """Elements around runs, such as links."""
    contents: frozenset[str] = frozenset()
    """Elements in a wrapper that hold its runs."""
    breaks: frozenset[str] = frozenset()
    """Elements that end a segment, such as a line break."""
    dropped: frozenset[str] = frozenset()
    """Elements that programs make anew."""
    unseen: re.Pattern[str] = field(default_factory=lambda: re.compile(r"(?!)"))
    """What no reader sees of a format."""
    strips_spaces: bool = True
    """Whether spaces around a text count only where it says so."""
    keeps_lines: bool = False
    """Whether a line break in a text is one for its readers."""
    field_mark: str = ""
    """Element that begins, divides or ends a field."""


class RunReader:
    """Finds the slots of a source whose paragraphs are made of runs."""

    def __init__(self, source: XmlSource, scheme: RunScheme) -> None:
        self._source = source
        self._scheme = scheme

    def slots(self) -> Iterator[Slot]:
        """Yield the slots of all paragraphs."""
        for element in self._source.root.walk():
            if element.name in self._scheme.paragraphs:
                yield from self.paragraph(element)

    def paragraph(self, element: Element) -> Iterator[Slot]:
        """Yield the slots of a paragraph."""
        children = [each for each in element.children if each.name not in self._scheme.about]
        if not children:
            return
        atoms = list(self._atoms(children))
        flows = [self._flow(group, element.name) for group in groups(atoms)]
        translated = [flow for flow in flows if isinstance(flow, Flow) and flow.has_text]
        if not translated:
            return
        texts = [flow.only_text for flow in translated]
        if all(texts):
            for flow in translated:
                yield Slot(*flow.span, (flow.unit,), self._write_plain)
            return
        yield Slot(
            children[0].start,
            children[-1].end,
            tuple(flow.unit for flow in translated),
            partial(_write_paragraph, flows),
        )

    def _flow(self, group: list[Atom], name: str) -> Flow | Atom:
        if group[0].kind is Kind.BREAK:
            return group[0]
        formatted, base = _with_formats(pair(group), self._scheme.unseen)
        return Flow(
            formatted,
            self._write_run,
            base=base,
            context=name.partition(":")[2],
            keeps_spaces=True,
        )

    def _atoms(self, children: Sequence[Element]) -> Iterator[Atom]:
        scheme = self._scheme
        index = 0
        while index < len(children):
            child = children[index]
            index += 1
            if child.name == scheme.run:
                if scheme.field_mark and self._mark(child) == "begin":
                    last = self._field_end(children, index - 1)
                    if last is not None:
                        yield from self._field(children[index - 1 : last + 1])
                        index = last + 1
                        continue
                yield from self._run(child)
            elif child.name in scheme.wrappers:
                inner = next((c for c in child.children if c.name in scheme.contents), child)
                if inner.content == inner.end:  # an empty tag
                    yield tag(Kind.ALONE, child.start, child.end)
                    continue
                name = f"{child.name} {child.start}"
                yield tag(Kind.OPEN, child.start, inner.content, name)
                yield from self._atoms(inner.children)
                yield tag(Kind.CLOSE, inner.content_end, child.end, name)
            elif child.name == scheme.text:  # in no run, as most cells have it
                yield from self._text(child, f"\0{self._source.tag_name(child)}\0")
            elif child.name in scheme.breaks:
                yield tag(Kind.BREAK, child.start, child.end)
            elif child.name not in scheme.dropped:
                yield tag(Kind.ALONE, child.start, child.end)

    def _run(self, run: Element) -> Iterator[Atom]:
        scheme, source = self._scheme, self._source
        name = source.tag_name(run)
        properties = run.child(scheme.properties)
        style = source.text[properties.start : properties.end] if properties else ""
        for child in run.children:
            if child is properties or child.name in scheme.dropped:
                continue
            if child.name == scheme.text:
                yield from self._text(child, f"{name}\0{source.tag_name(child)}\0{style}")
                continue
            kind = Kind.BREAK if child.name in scheme.breaks else Kind.ALONE
            wrapped = (f"<{name}>{style}", (child.start, child.end), f"</{name}>")
            yield Atom(kind, child.start, child.end, source=wrapped)

    def _text(self, element: Element, style: str) -> Iterator[Atom]:
        start, end = element.content, element.content_end
        inner = self._source.text[start:end]
        keeps = element.attributes.get("xml:space") == "preserve" or not self._scheme.strips_spaces
        if not keeps:
            start += len(inner) - len(inner.lstrip(" \t\r\n"))
            end -= len(inner) - len(inner.rstrip(" \t\r\n"))
        for atom in self._source.text_atoms(start, end) if start < end else ():
            if atom.kind is Kind.TEXT:
                atom.format = style
                if not self._scheme.keeps_lines:
                    atom.text = _spaced(atom.text)
                yield atom

    def _write_run(self, text: str, style: str) -> str:
        run, name, properties = style.split("\0")
        clean = escape(text if self._scheme.keeps_lines else _spaced(text))
        space = ' xml:space="preserve"' if clean != clean.strip() else ""
        space = space if self._scheme.strips_spaces else ""
        written = f"{properties}<{name}{space}>{clean}</{name}>"
        return f"<{run}>{written}</{run}>" if run else written

    def _write_plain(self, translations: Sequence[str], _: Render) -> str:
        return escape(translations[0] if self._scheme.keeps_lines else _spaced(translations[0]))

    def _mark(self, run: Element) -> str:
        """Return what a run says of a field: begin, separate, end, or nothing."""
        marks = [
            value
            for child in run.children
            if child.name == self._scheme.field_mark
            for name, value in child.attributes.items()
            if name.endswith(":fldCharType")
        ]
        return marks[-1] if marks else ""

    def _field_end(self, children: Sequence[Element], first: int) -> int | None:
        depth = 0
        for index in range(first, len(children)):
            mark = self._mark(children[index])
            depth += (mark == "begin") - (mark == "end")
            if not depth:
                return index
        return None

    def _field(self, children: Sequence[Element]) -> Iterator[Atom]:
        """Yield a field: links have text of their own, what others show is computed."""
        marks = [self._mark(child) for child in children]
        first = children[0]
        code = self._source.text[first.start : children[-1].end]
        middle = marks.index("separate") if marks.count("separate") == 1 else None
        if middle is None or marks.count("begin") != 1 or "HYPERLINK" not in code:
            yield tag(Kind.ALONE, first.start, children[-1].end)
            return
        name = f"field {first.start}"
        yield tag(Kind.OPEN, first.start, children[middle].end, name)
        yield from self._atoms(children[middle + 1 : -1])
        yield tag(Kind.CLOSE, children[-1].start, children[-1].end, name)


def _with_formats(atoms: list[Atom], unseen: re.Pattern[str]) -> tuple[list[Atom], str]:
    """Return atoms with tags around text whose format is not that of most text beside it.

    Also returns the format of most text that is in no tag.
    """
    keys: dict[str, str] = {}
    weights: dict[int, Counter[str]] = {-1: Counter()}
    levels = [-1]
    for index, atom in enumerate(atoms):
        if atom.kind is Kind.OPEN:
            levels.append(index)
            weights[index] = Counter()
        elif atom.kind is Kind.CLOSE:
            levels.pop()
        elif atom.kind is Kind.TEXT:
            key = unseen.sub("", atom.format)
            atom.format = keys.setdefault(key, atom.format)  # the first of those that look alike
            weights[levels[-1]][atom.format] += sum(not letter.isspace() for letter in atom.text)
    base = {
        level: max(found, key=found.__getitem__, default="") for level, found in weights.items()
    }
    found: list[Atom] = []
    inside = ""  # of a format of its own
    levels = [-1]

    def leave(end: int) -> None:
        nonlocal inside
        if inside:
            found.append(Atom(Kind.CLOSE, end, end, name="format"))
        inside = ""

    for index, atom in enumerate(atoms):
        if atom.kind in (Kind.OPEN, Kind.CLOSE):
            leave(atom.start)
        if atom.kind is Kind.OPEN:
            atom.format = base[index]
            levels.append(index)
        elif atom.kind is Kind.CLOSE:
            levels.pop()
        elif atom.kind is Kind.TEXT and atom.text.strip():
            if atom.format == base[levels[-1]]:
                leave(atom.start)
            elif atom.format != inside:
                leave(atom.start)
                inside = atom.format
                found.append(Atom(Kind.OPEN, atom.start, atom.start, name="format", format=inside))
        found.append(atom)
    leave(found[-1].end)
    return found, base[-1]


def _spaced(text: str) -> str:
    return text.replace("\r\n", " ").replace("\r", " ").replace("\n", " ")


def _write_paragraph(
    flows: Sequence[Flow | Atom], translations: Sequence[str], render: Render
) -> str:
    given = iter(translations)
    written = []
    for flow in flows:
        if isinstance(flow, Atom):
            written += [each if isinstance(each, str) else render(*each) for each in flow.source]
        else:
            text = next(given) if flow.has_text else flow.unit.text
            written.append(flow.write_all(text, render))
    return "".join(written)
