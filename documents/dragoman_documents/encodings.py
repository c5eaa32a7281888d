"""From bytes to text and back, such that text that was not changed gives the same bytes."""

import codecs
import re
from dataclasses import dataclass

from dragoman_documents.errors import DocumentError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_XML_ENCODING = re.compile(
    rb"""\A\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']"""
)
_HTML_ENCODING = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a text is written as bytes."""

    name: str = "utf-8"
    mark: bytes = b""
    """Byte order mark at the beginning."""

    def encode(self, text: str, errors: str = "strict") -> bytes:
        """Return the bytes of a text; ``errors`` is what Python's ``str.encode`` takes."""
        try:
            return self.mark + text.encode(self.name, errors)
        except UnicodeEncodeError as error:
            letter = text[error.start]
            raise DocumentError(
                f"the translation has {letter!r}, which {self.name} can't write; save the file as "
                "UTF-8 first"
            ) from None


def decode(data: bytes, *, is_html: bool = False) -> tuple[str, Encoding]:
    """Return the text of a file, and how it is encoded.

    A mark at the beginning decides, or what the beginning of HTML or XML says; without either it
    is UTF-8, or else windows-1252, which old files are written in.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _decode(data[len(mark) :], name), Encoding(name, mark)
    declared = _XML_ENCODING.search(data[:1024])
    if declared is None and is_html:
        declared = _HTML_ENCODING.search(data[:4096])
    if declared is not None:
        name = _known(declared[1].decode("ascii"))
        try:
            return _decode(data, name), Encoding(name)
        except DocumentError:
            if not is_html:
                raise
    try:
        return data.decode("utf-8"), Encoding()
    except UnicodeDecodeError:
        return _decode(data, "cp1252"), Encoding("cp1252")


def _known(name: str) -> str:
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        raise DocumentError(f"is written in {name}, which is not known") from None
    if not found._is_text_encoding:
        raise DocumentError(f"is written in {name}, which is not an encoding of text")
    if found.name in ("utf-16", "utf-32"):
        return "utf-8"  # without a mark, who could read the declaration knows better
    # Web pages that say latin-1 mean windows-1252, but every byte is something in latin-1 only.
    return found.name


def _decode(data: bytes, name: str) -> str:
    try:
        text = data.decode(name)
    except (UnicodeDecodeError, ValueError):
        raise DocumentError(f"is not {name}, or is damaged") from None
    if name not in ("utf-8", "iso8859-1") and text.encode(name, "replace") != data:
        raise DocumentError(f"can't be written in {name} again as it is; save it as UTF-8 first")
    return text
