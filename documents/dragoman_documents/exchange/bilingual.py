"""Segments beside their translations, for people who check them: XLIFF 1.2 and TMX 1.4."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.sax.saxutils import quoteattr

from dragoman_documents.document import Segment
from dragoman_documents.errors import DocumentError
from dragoman_documents.inline import InlineTag, escape, split

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_XLIFF_KINDS = {"html": "html", "xhtml": "html", "po": "po", "txt": "plaintext"}


@dataclass(frozen=True, kw_only=True)
class BilingualFile:
    """The segments of one document, and their translations."""

    name: str
    """Name of the document."""
    format: str
    """Format of the document."""
    pairs: Sequence[tuple[Segment, str | None]]
    """Segments with their translations, or with None where there is none."""


def write_bilingual(
    kind: str, files: Iterable[BilingualFile], source_language: str, target_language: str
) -> bytes:
    """Return a file of segments: ``kind`` is "xlf" or "tmx"."""
    if kind in ("xlf", "xliff"):
        return _xliff(files, source_language, target_language).encode()
    if kind == "tmx":
        return _tmx(files, source_language, target_language).encode()
    raise DocumentError(f"segments can't be written as {kind}: xlf and tmx are known")


def _xliff(files: Iterable[BilingualFile], source: str, target: str) -> str:
    opening = '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
    written = [f"{_DECLARATION}{opening}\n"]
    for file in files:
        kind = _XLIFF_KINDS.get(file.format, f"x-{file.format}")
        written.append(
            f"<file original={_quoted(file.name)} datatype={_quoted(kind)} "
            f"source-language={_quoted(source)} target-language={_quoted(target)}><body>\n"
        )
        for segment, translation in file.pairs:
            name = f" resname={_quoted(segment.context)}" if segment.context else ""
            written.append(f'<trans-unit id="{segment.id}"{name} xml:space="preserve">')
            written.append(f"<source>{_content(segment, segment.text, _xliff_tag)}</source>")
            if translation is not None:
                text = _content(segment, translation, _xliff_tag)
                written.append(f'<target state="translated">{text}</target>')
            written.append("</trans-unit>\n")
        written.append("</body></file>\n")
    written.append("</xliff>\n")
    return "".join(written)


def _tmx(files: Iterable[BilingualFile], source: str, target: str) -> str:
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    header = (
        '<header creationtool="dragoman" creationtoolversion="1" segtype="block" o-tmf="dragoman" '
        f'adminlang="en" srclang={_quoted(source)} datatype="xml" creationdate="{now}"/>'
    )
    written = [f'{_DECLARATION}<tmx version="1.4">\n{header}\n<body>\n']
    for file in files:
        for segment, translation in file.pairs:
            if translation is None:
                continue
            written.append(f'<tu><prop type="x-document">{_escaped(file.name)}</prop>')
            for language, text in ((source, segment.text), (target, translation)):
                content = _content(segment, text, _tmx_tag)
                written.append(f"<tuv xml:lang={_quoted(language)}><seg>{content}</seg></tuv>")
            written.append("</tu>\n")
    written.append("</body>\n</tmx>\n")
    return "".join(written)


def _content(segment: Segment, text: str, write: Callable[[InlineTag], str]) -> str:
    pieces: list[str | InlineTag] = split(text) if segment.has_tags else [text]
    return "".join(_escaped(each) if isinstance(each, str) else write(each) for each in pieces)


def _xliff_tag(tag: InlineTag) -> str:
    if tag.is_alone:
        return f'<x id="{tag.number}"/>'
    return "</g>" if tag.is_end else f'<g id="{tag.number}">'


def _tmx_tag(tag: InlineTag) -> str:
    number = tag.number
    if tag.is_alone:
        return f'<ph x="{number}"/>'
    return f'<ept i="{number}"/>' if tag.is_end else f'<bpt i="{number}" x="{number}"/>'


def _escaped(text: str) -> str:
    return escape(_printable(text))


def _quoted(text: str) -> str:
    return quoteattr(_printable(text))


def _printable(text: str) -> str:
    return "".join(each for each in text if each in "\t\n\r" or each >= " ")
