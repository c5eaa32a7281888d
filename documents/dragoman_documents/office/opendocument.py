"""OpenDocument: odt, odp and ods, and their templates. Paragraphs and headings are segments."""

from collections.abc import Iterator
from functools import partial

from dragoman_documents.archive import Archive
from dragoman_documents.document import Document
from dragoman_documents.encodings import decode
from dragoman_documents.errors import DocumentError
from dragoman_documents.flow import flow_slots
from dragoman_documents.markup.xml_tree import Element, XmlSource
from dragoman_documents.office.package import open_package
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import Slot, Template

NAMESPACES = {
    "urn:oasis:names:tc:opendocument:xmlns:office:1.0": "office",
    "urn:oasis:names:tc:opendocument:xmlns:table:1.0": "table",
    "urn:oasis:names:tc:opendocument:xmlns:text:1.0": "text",
    "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0": "manifest",
}
_PARAGRAPHS = frozenset(("text:p", "text:h"))
_PAIRS = frozenset(("text:span", "text:a", "text:meta", "text:ruby", "text:ruby-base"))
_BREAKS = frozenset(("text:line-break", "text:tab"))
_DROPPED = frozenset(("text:tracked-changes",))
_MEMBERS = ("content.xml", "styles.xml")


def open_opendocument(
    format: str,  # noqa: A002 - what everyone calls it
    data: bytes,
    settings: DocumentSettings,
) -> Document:
    """Take an odt, odp or ods file apart."""
    archive = Archive(data, settings)
    if "content.xml" not in archive:
        raise DocumentError("has no content.xml, so it is no OpenDocument file")
    if "META-INF/manifest.xml" in archive:
        text, _ = decode(archive.read("META-INF/manifest.xml"))
        manifest = XmlSource(text, settings, NAMESPACES)
        if any(each.name == "manifest:encryption-data" for each in manifest.root.walk()):
            raise DocumentError("is protected with a password")
    readers = {name: partial(read_template, settings) for name in archive.names if name in _MEMBERS}
    return open_package(format, data, archive, readers, settings)


def read_template(settings: DocumentSettings, text: str) -> Template:
    """Return the slots of content, or of headers and footers in styles."""
    source = XmlSource(text, settings, NAMESPACES)
    reader = _Reader(source)
    return Template(text, list(reader.slots()), (), reader.left)


class _Reader:
    def __init__(self, source: XmlSource) -> None:
        self._source = source
        self.left: dict[str, int] = {}

    def slots(self) -> Iterator[Slot]:
        waiting = [self._source.root]
        while waiting:
            element = waiting.pop()
            if element.name in _DROPPED:
                self._count("tracked changes")
                continue
            if element.name in _PARAGRAPHS and not self._is_value(element):
                yield from self._paragraph(element)
            waiting.extend(reversed(element.children))

    def _is_value(self, element: Element) -> bool:
        """Whether a paragraph only shows the value of a cell."""
        cell = element.parent
        if cell is None or cell.name not in ("table:table-cell", "table:covered-table-cell"):
            return False
        if "table:formula" in cell.attributes:
            self._count("cells with a formula")
            return True
        return cell.attributes.get("office:value-type", "string") != "string"

    def _paragraph(self, element: Element) -> Iterator[Slot]:
        name = element.name.partition(":")[2]
        yield from flow_slots(list(self._source.atoms(element, _PAIRS, _BREAKS)), name)

    def _count(self, what: str) -> None:
        self.left[what] = self.left.get(what, 0) + 1
