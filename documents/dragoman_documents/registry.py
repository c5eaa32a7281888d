"""The formats that are known, and how a file of each is opened."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from dragoman_documents.document import Document
from dragoman_documents.errors import DocumentError
from dragoman_documents.settings import MIB, DocumentSettings

Opener = Callable[[bytes, DocumentSettings], Document]

EXTENSIONS = {
    "txt": "txt",
    "text": "txt",
    "md": "md",
    "markdown": "md",
    "html": "html",
    "htm": "html",
    "xhtml": "xhtml",
    "docx": "docx",
    "docm": "docx",
    "dotx": "docx",
    "dotm": "docx",
    "pptx": "pptx",
    "pptm": "pptx",
    "potx": "pptx",
    "ppsx": "pptx",
    "xlsx": "xlsx",
    "xlsm": "xlsx",
    "xltx": "xlsx",
    "odt": "odt",
    "ott": "odt",
    "odp": "odp",
    "otp": "odp",
    "ods": "ods",
    "ots": "ods",
    "epub": "epub",
    "srt": "srt",
    "vtt": "vtt",
    "po": "po",
    "pot": "po",
    "xlf": "xliff",
    "xliff": "xliff",
    "json": "json",
    "arb": "json",
    "yaml": "yaml",
    "yml": "yaml",
    "csv": "csv",
    "tsv": "tsv",
}
"""Endings of file names, and the format of each."""
FORMATS = tuple(dict.fromkeys(EXTENSIONS.values()))


def format_of(name: str | Path) -> str | None:
    """Return the format that a file's name says it has."""
    return EXTENSIONS.get(Path(name).suffix.lower().removeprefix("."))


def open_document(
    source: str | Path | bytes,
    format: str | None = None,  # noqa: A002 - what everyone calls it
    settings: DocumentSettings = DocumentSettings(),  # noqa: B008 - frozen
) -> Document:
    """Take a document apart: a file, or its bytes, whose format has to be said.

    Raises ``DocumentError`` where it can't be read, is beyond a bound of the settings or of a
    format that is not known, and ``OSError`` where there is no such file.
    """
    if isinstance(source, bytes):
        data, name = source, ""
        if format is None:
            raise DocumentError("is given as bytes: say of which format")
    else:
        path = Path(source)
        name = f"{path}: "
        format = format or format_of(path)  # noqa: A001
        if format is None:
            raise DocumentError(f"{name}is of no format that is known: {', '.join(FORMATS)}")
        with path.open("rb") as file:
            data = file.read(settings.max_bytes + 1)
    if format not in FORMATS:
        raise DocumentError(f"{name}{format} is not a format that is known: {', '.join(FORMATS)}")
    try:
        return _open(data, format, settings)
    except DocumentError as error:
        raise DocumentError(f"{name}{error}") from None


def _open(data: bytes, format: str, settings: DocumentSettings) -> Document:  # noqa: A002
    is_zip = format in ("docx", "pptx", "xlsx", "odt", "odp", "ods", "epub")
    most = settings.max_bytes if is_zip else min(settings.max_bytes, settings.max_text_bytes)
    if len(data) > most:
        raise DocumentError(f"is larger than {most / MIB:g} MiB")
    return _opener(format)(data, settings)


def _opener(format: str) -> Opener:  # noqa: A002
    """Return how a format is opened; what it needs is loaded now."""
    if format in ("docx", "pptx", "xlsx"):
        from dragoman_documents.office.ooxml import open_ooxml

        return partial(open_ooxml, format)
    if format in ("odt", "odp", "ods"):
        from dragoman_documents.office.opendocument import open_opendocument

        return partial(open_opendocument, format)
    if format in ("html", "xhtml"):
        from dragoman_documents.markup.html import open_html

        return partial(open_html, is_xml=format == "xhtml")
    if format in ("srt", "vtt"):
        from dragoman_documents.text.subtitles import open_subtitles

        return partial(open_subtitles, format)
    if format in ("csv", "tsv"):
        from dragoman_documents.text.tables import open_table

        return partial(open_table, format)
    return _text_opener(format)


def _text_opener(format: str) -> Opener:  # noqa: A002
    if format == "epub":
        from dragoman_documents.office.epub import open_epub

        return open_epub
    if format == "xliff":
        from dragoman_documents.exchange.xliff import open_xliff

        return open_xliff
    if format == "md":
        from dragoman_documents.text.markdown import open_markdown

        return open_markdown
    if format == "po":
        from dragoman_documents.text.po import open_po

        return open_po
    if format == "json":
        from dragoman_documents.text.json_catalogue import open_json

        return open_json
    if format == "yaml":
        from dragoman_documents.text.yaml_catalogue import open_yaml

        return open_yaml
    from dragoman_documents.text.plain import open_plain

    return open_plain
