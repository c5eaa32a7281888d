"""Office Open XML: docx, pptx and xlsx, and their templates and macro-enabled kinds."""

import re
from functools import partial

from dragoman_documents.archive import Archive
from dragoman_documents.document import Document
from dragoman_documents.encodings import decode
from dragoman_documents.errors import DocumentError
from dragoman_documents.markup.xml_tree import XmlSource
from dragoman_documents.office.package import Reader, open_package
from dragoman_documents.office.runs import RunReader, RunScheme
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import Slot, Template

NAMESPACES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
    "http://purl.oclc.org/ooxml/drawingml/main": "a",
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main": "s",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "s",
    "http://schemas.openxmlformats.org/package/2006/content-types": "types",
    "http://www.w3.org/XML/1998/namespace": "xml",
}

_WORD = RunScheme(
    paragraphs=frozenset(("w:p",)),
    run="w:r",
    properties="w:rPr",
    text="w:t",
    about=frozenset(("w:pPr",)),
    wrappers=frozenset(
        ("w:hyperlink", "w:ins", "w:smartTag", "w:sdt", "w:customXml", "w:moveTo", "w:dir", "w:bdo")
    ),
    contents=frozenset(("w:sdtContent",)),
    breaks=frozenset(("w:br", "w:tab", "w:cr", "w:ptab")),
    dropped=frozenset(("w:proofErr", "w:lastRenderedPageBreak")),
    unseen=re.compile(
        r"<w:(?:lang|noProof|proofErr|webHidden|bCs|iCs|szCs|rtl|cs)\b[^>]*/>|<w:rPr>\s*</w:rPr>"
    ),
    field_mark="w:fldChar",
)
_DRAWING = RunScheme(
    paragraphs=frozenset(("a:p",)),
    run="a:r",
    properties="a:rPr",
    text="a:t",
    about=frozenset(("a:pPr", "a:endParaRPr")),
    breaks=frozenset(("a:br",)),
    unseen=re.compile(r"""\s(?:lang|altLang|dirty|err|noProof|smtClean)="[^"]*"|<a:rPr\s*/>"""),
    strips_spaces=False,
)
_SHEET = RunScheme(
    paragraphs=frozenset(("s:si", "s:is", "s:text")),
    run="s:r",
    properties="s:rPr",
    text="s:t",
    about=frozenset(("s:phoneticPr", "s:rPh")),
    keeps_lines=True,
)

_KINDS = {
    "docx": r"wordprocessingml|ms-word",
    "pptx": r"presentationml|ms-powerpoint",
    "xlsx": r"spreadsheetml|ms-excel",
}
_WORD_PARTS = re.compile(
    r"wordprocessingml\.(?:document\.main|template\.main|header|footer|footnotes|endnotes|comments)"
    r"\+xml|ms-word\.(?:document|template)\.macroEnabled\w*\.main\+xml"
)
_DRAWING_PARTS = re.compile(
    r"presentationml\.(?:slide|notesSlide)\+xml|drawingml\.(?:chart|diagramData)\+xml"
    r"|ms-office\.drawingml\.diagramDrawing\+xml|drawing\+xml"
)
_SHEET_PARTS = re.compile(r"spreadsheetml\.(?:sharedStrings|worksheet|comments)\+xml")
_TABLE_PARTS = re.compile(r"spreadsheetml\.(?:table|pivotCacheDefinition)\+xml")


def open_ooxml(
    format: str,  # noqa: A002 - what everyone calls it
    data: bytes,
    settings: DocumentSettings,
) -> Document:
    """Take a docx, pptx or xlsx file apart."""
    archive = Archive(data, settings)
    types = _content_types(archive, settings)
    if not any(re.search(_KINDS[format], kind) for kind in types.values()):
        raise DocumentError(f"is not a file of the kind {format}")
    kept = _table_names(archive, types, settings)
    readers: dict[str, Reader] = {}
    for name, kind in types.items():
        if _WORD_PARTS.search(kind):
            readers[name] = partial(_read_word, settings)
        elif _DRAWING_PARTS.search(kind):
            readers[name] = partial(_read_runs, settings, _DRAWING)
        elif _SHEET_PARTS.search(kind):
            readers[name] = partial(_read_sheet, settings, kept)
    return open_package(format, data, archive, readers, settings)


def _content_types(archive: Archive, settings: DocumentSettings) -> dict[str, str]:
    """Return what each member is, in the order of the file."""
    if "[Content_Types].xml" not in archive:
        raise DocumentError("has no [Content_Types].xml, so it is no Office file")
    text, _ = decode(archive.read("[Content_Types].xml"))
    root = XmlSource(text, settings, NAMESPACES).root
    types = {
        element.attributes.get("PartName", "").lstrip("/"): element.attributes.get(
            "ContentType", ""
        )
        for element in root.walk()
        if element.name == "types:Override"
    }
    return {name: types[name] for name in archive.names if name in types}


def _read_runs(settings: DocumentSettings, scheme: RunScheme, text: str) -> Template:
    source = XmlSource(text, settings, NAMESPACES)
    return Template(text, list(RunReader(source, scheme).slots()))


def _read_word(settings: DocumentSettings, text: str) -> Template:
    """Return the slots of text, and of diagrams and charts inside it."""
    source = XmlSource(text, settings, NAMESPACES)
    slots = [*RunReader(source, _WORD).slots(), *RunReader(source, _DRAWING).slots()]
    left: dict[str, int] = {}
    deleted = sum(element.name == "w:delText" for element in source.root.walk())
    if deleted:
        left["deleted text that is still tracked"] = deleted
    return Template(text, slots, (), left)


def _read_sheet(settings: DocumentSettings, kept: frozenset[str], text: str) -> Template:
    """Return the slots of strings, but for those that name the columns of a table."""
    source = XmlSource(text, settings, NAMESPACES)
    slots: list[Slot] = []
    left: dict[str, int] = {}
    for slot in RunReader(source, _SHEET).slots():
        if any(unit.text.casefold() in kept for unit in slot.units):
            what = "names of table columns, which formulas may refer to"
            left[what] = left.get(what, 0) + 1
        else:
            slots.append(slot)
    return Template(text, slots, (), left)


def _table_names(
    archive: Archive, types: dict[str, str], settings: DocumentSettings
) -> frozenset[str]:
    """Return the names of columns, which have to be what their cells say."""
    found: set[str] = set()
    for name, kind in types.items():
        if _TABLE_PARTS.search(kind):
            text, _ = decode(archive.read(name))
            for element in XmlSource(text, settings, NAMESPACES).root.walk():
                if element.name in ("s:tableColumn", "s:cacheField"):
                    found.add(element.attributes.get("name", "").strip().casefold())
    return frozenset(found)
