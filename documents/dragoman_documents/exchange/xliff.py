"""XLIFF 1.2 and 2.x: sources without a translation get one, others stay as they are."""

from collections.abc import Iterator, Sequence
from functools import partial

from dragoman_documents.document import Document
from dragoman_documents.encodings import decode
from dragoman_documents.errors import DocumentError
from dragoman_documents.flow import Flow, write_escaped
from dragoman_documents.markup.xml_tree import Element, XmlSource
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import LanguageSlot, Render, Slot, Template

NAMESPACES = {
    "urn:oasis:names:tc:xliff:document:1.1": "one",
    "urn:oasis:names:tc:xliff:document:1.2": "one",
    "urn:oasis:names:tc:xliff:document:2.0": "two",
    "urn:oasis:names:tc:xliff:document:2.1": "two",
    "urn:oasis:names:tc:xliff:document:2.2": "two",
}
_PAIRS = frozenset(("one:g", "one:mrk", "two:pc", "two:mrk"))
"""Inline elements whose content is text; others hold codes."""
_UNITS = frozenset(("one:trans-unit", "two:segment"))


def open_xliff(data: bytes, settings: DocumentSettings) -> Document:
    """Take an XLIFF file apart."""
    text, encoding = decode(data)
    source = XmlSource(text, settings, NAMESPACES)
    if source.root.name not in ("one:xliff", "two:xliff"):
        raise DocumentError("is not XLIFF 1.2 or 2")
    reader = _Reader(source)
    template = Template(text, list(reader.slots()), list(reader.languages()), reader.left)
    return Document(
        "xliff",
        data,
        [template],
        lambda texts: encoding.encode(texts[0], "xmlcharrefreplace"),
        settings,
    )


class _Reader:
    def __init__(self, source: XmlSource) -> None:
        self._source = source
        self.left: dict[str, int] = {}

    def slots(self) -> Iterator[Slot]:
        waiting = [self._source.root]
        while waiting:
            element = waiting.pop()
            if element.attributes.get("translate") == "no":
                self._count("units that are not to be translated")
            elif element.name in _UNITS:
                yield from self._unit(element)
            else:
                waiting.extend(reversed(element.children))

    def languages(self) -> Iterator[LanguageSlot]:
        """Yield where the target language is said, or could be."""
        for element in self._source.root.walk():
            if element.name in ("one:file", "two:xliff"):
                name = "target-language" if element.name == "one:file" else "trgLang"
                span = self._source.attribute(element, name)
                if span:
                    yield LanguageSlot(*span)
                else:
                    end = element.content - 1
                    yield LanguageSlot(end, end, partial(_add_attribute, name))

    def _unit(self, unit: Element) -> Iterator[Slot]:
        kind = unit.name.partition(":")[0]
        source, target = unit.child(f"{kind}:source"), unit.child(f"{kind}:target")
        if source is None:
            return
        if target is not None and self._source.inner(target).strip():
            self._count("units that have a translation")
            return
        flow = Flow(
            list(self._source.atoms(source, _PAIRS)),
            write_escaped,
            context=unit.attributes.get("id", ""),
        )
        if not flow.has_text:
            return
        name = self._source.tag_name(source).replace("source", "target")
        after = unit.child(f"{kind}:seg-source") or source
        start, end = (target.start, target.end) if target else (after.end, after.end)
        yield Slot(start, end, (flow.unit,), partial(_write, flow, name), is_added=True)

    def _count(self, what: str) -> None:
        self.left[what] = self.left.get(what, 0) + 1


def _write(flow: Flow, name: str, translations: Sequence[str], render: Render) -> str:
    return f"<{name}>{flow.write_all(translations[0], render)}</{name}>"


def _add_attribute(name: str, language: str) -> str:
    return f' {name}="{language}"'
