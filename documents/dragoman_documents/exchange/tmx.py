"""Translation memories (TMX), as translations by their sources."""

from collections.abc import Iterator

from dragoman_documents.encodings import decode
from dragoman_documents.errors import DocumentError
from dragoman_documents.markup.xml_tree import Element, XmlSource
from dragoman_documents.settings import DocumentSettings

NAMESPACES = {"http://www.w3.org/XML/1998/namespace": "xml"}


def read_memory(
    data: bytes,
    source_language: str,
    target_language: str,
    settings: DocumentSettings = DocumentSettings(),  # noqa: B008 - frozen
) -> dict[str, str]:
    """Return the translations of a memory by their sources; of several the last one counts.

    Languages match where one is the other with a region: ``pt`` and ``pt-BR``. Text with tags of
    its own is left out.
    """
    source = _source(data, settings)
    found: dict[str, str] = {}
    for unit in _units(source):
        texts = {language: variant for language, variant in _variants(unit) if not variant.children}
        left = _matching(texts, source_language)
        right = _matching(texts, target_language)
        if left is not None and right is not None:
            found[source.string(left).strip()] = source.string(right).strip()
    return found


def _source(data: bytes, settings: DocumentSettings) -> XmlSource:
    text, _ = decode(data)
    source = XmlSource(text, settings, NAMESPACES)
    if source.root.name != "tmx":
        raise DocumentError("is not TMX")
    return source


def _units(source: XmlSource) -> Iterator[Element]:
    return (each for each in source.root.walk() if each.name == "tu")


def _variants(unit: Element) -> Iterator[tuple[str, Element]]:
    """Yield the texts of a unit with their languages."""
    for variant in unit.children:
        text = variant.child("seg")
        if variant.name == "tuv" and text is not None:
            attributes = variant.attributes
            yield attributes.get("xml:lang", attributes.get("lang", "")).lower(), text


def _matching(texts: dict[str, Element], language: str) -> Element | None:
    wanted = language.lower()
    if wanted in texts:
        return texts[wanted]
    base = wanted.partition("-")[0]
    return next((each for name, each in texts.items() if name.partition("-")[0] == base), None)
