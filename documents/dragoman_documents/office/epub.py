"""Books (EPUB 2 and 3): the pages that the package lists, its title, and the table of contents."""

import posixpath
from collections.abc import Sequence
from functools import partial
from urllib.parse import unquote

from dragoman_documents.archive import Archive
from dragoman_documents.document import Document
from dragoman_documents.encodings import decode
from dragoman_documents.errors import DocumentError
from dragoman_documents.flow import flow_slots
from dragoman_documents.markup.html import html_template
from dragoman_documents.markup.xml_tree import Element, XmlSource
from dragoman_documents.office.package import Reader, open_package
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import LanguageSlot, Slot, Template

NAMESPACES = {
    "urn:oasis:names:tc:opendocument:xmlns:container": "container",
    "http://www.idpf.org/2007/opf": "opf",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://www.daisy.org/z3986/2005/ncx/": "ncx",
    "http://www.w3.org/2001/04/xmlenc#": "enc",
}
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html")
_CONTENTS = "application/x-dtbncx+xml"


def open_epub(data: bytes, settings: DocumentSettings) -> Document:
    """Take a book apart."""
    archive = Archive(data, settings)
    if _CONTAINER not in archive:
        raise DocumentError(f"has no {_CONTAINER}, so it is no book")
    package = _package(archive, settings)
    locked = _locked(archive, settings)
    members = _members(archive, package, settings)
    pages = [name for name, kind in members.items() if kind in _PAGES]
    if pages and locked.issuperset(pages):
        raise DocumentError("is protected: its pages are encrypted")
    readers: dict[str, Reader] = {package: partial(_read_package, settings)}
    for name, kind in members.items():
        if name in locked:
            continue
        if kind in _PAGES:
            readers[name] = partial(html_template, is_xml=kind != "text/html")
        elif kind == _CONTENTS:
            readers[name] = partial(_read_contents, settings)
    return open_package("epub", data, archive, readers, settings)


def _tree(archive: Archive, name: str, settings: DocumentSettings) -> XmlSource:
    text, _ = decode(archive.read(name))
    return XmlSource(text, settings, NAMESPACES)


def _package(archive: Archive, settings: DocumentSettings) -> str:
    """Return the name of the member that lists all others."""
    for element in _tree(archive, _CONTAINER, settings).root.walk():
        if element.name == "container:rootfile":
            name = unquote(element.attributes.get("full-path", ""))
            if name in archive:
                return name
    raise DocumentError("names no package of pages")


def _members(archive: Archive, package: str, settings: DocumentSettings) -> dict[str, str]:
    """Return the members that the package lists, in its order, and what each is."""
    folder = posixpath.dirname(package)
    found: dict[str, str] = {}
    for element in _tree(archive, package, settings).root.walk():
        if element.name == "opf:item":
            address = unquote(element.attributes.get("href", ""))
            name = posixpath.normpath(posixpath.join(folder, address))
            if name in archive:
                found[name] = element.attributes.get("media-type", "")
    return found


def _locked(archive: Archive, settings: DocumentSettings) -> set[str]:
    """Return the members that are encrypted."""
    if _ENCRYPTION not in archive:
        return set()
    return {
        unquote(element.attributes.get("URI", ""))
        for element in _tree(archive, _ENCRYPTION, settings).root.walk()
        if element.name == "enc:CipherReference"
    }


def _read_package(settings: DocumentSettings, text: str) -> Template:
    source = XmlSource(text, settings, NAMESPACES)
    elements = list(source.root.walk())
    languages = [
        LanguageSlot(each.content, each.content_end)
        for each in elements
        if each.name == "dc:language" and each.content < each.content_end
    ]
    titles = [each for each in elements if each.name in ("dc:title", "dc:description")]
    return Template(text, _text_slots(source, titles), languages)


def _read_contents(settings: DocumentSettings, text: str) -> Template:
    source = XmlSource(text, settings, NAMESPACES)
    return Template(
        text, _text_slots(source, [each for each in source.root.walk() if each.name == "ncx:text"])
    )


def _text_slots(source: XmlSource, elements: Sequence[Element]) -> list[Slot]:
    slots: list[Slot] = []
    for element in elements:
        if not element.children:
            atoms = list(source.text_atoms(element.content, element.content_end))
            slots += flow_slots(atoms, element.name.partition(":")[2])
    return slots
