"""HTML and XML cut into tags and text, each with its place: together they are the source again.

HTML never fails: what is no tag is text, as in a browser. XML is checked, because half of a
document that is broken would be lost in silence. Entities of a document type are never expanded.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Syntax(Enum):
    """How a text is marked up."""

    HTML = "html"
    XML = "xml"


class Kind(Enum):
    """What a token is."""

    TEXT = "text"
    OPEN = "open"
    CLOSE = "close"
    EMPTY = "empty"
    """An element of one tag, such as ``<br>`` or ``<x/>``."""
    OTHER = "other"
    """A comment, a document type, an instruction, a CDATA section."""


@dataclass(frozen=True, slots=True)
class Token:
    """A tag, or the text between two of them."""

    kind: Kind
    start: int
    end: int
    name: str = ""
    """Name of the element, in HTML in small letters."""


class MalformedError(ValueError):
    """XML that is not well-formed. The message names the place, and repeats nothing of the text."""

    def __init__(self, text: str, place: int, problem: str) -> None:
        line = text.count("\n", 0, place) + 1
        column = place - text.rfind("\n", 0, place)
        super().__init__(f"is not well-formed: {problem} at line {line}, column {column}")


VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905
)
"""Elements of HTML that have no end tag."""
_RAW = frozenset(("script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext"))
_PLAIN = frozenset(("textarea", "title"))
"""Elements of HTML in which there are no tags, but text that people read."""
_WITHOUT_TAGS = _RAW | _PLAIN

_HTML_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[a-zA-Z][^\s/>]*+)"
    r"""(?:[^>"'=]++|=\s*+"[^"]*+"|=\s*+'[^']*+'|["'=])*+>"""
)
_HTML_OTHER = re.compile(r"<!--(?:-?>|.*?(?:--!?>|\Z))|<[!?][^>]*+>|</[^a-zA-Z>][^>]*+>", re.DOTALL)
_NAME = r"[:A-Za-z_\u00c0-\U000effff][-.:\w\u00b7]*+"
_XML_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{_NAME})"
    rf"""(?P<attributes>(?:\s++{_NAME}\s*+=\s*+(?:"[^<"]*+"|'[^<']*+'))*+)\s*+(?P<empty>/?)>"""
)
_XML_OTHER = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!DOCTYPE[^\[>]*+(?:\[[^\]]*+\]\s*+)?>", re.DOTALL
)
_XML_REFERENCE = re.compile(rf"&(?:#\d{{1,7}}|#x[0-9a-fA-F]{{1,6}}|{_NAME});")
_ATTRIBUTE = re.compile(
    r"""[\s/]([^\s"'<>/=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'=<>`]++)))?"""
)


def tokens_of(text: str, syntax: Syntax) -> Iterator[Token]:
    """Yield the tokens of a text in order. Raises ``MalformedError`` for XML that is not one."""
    return _html(text) if syntax is Syntax.HTML else _xml(text)


def text_alone(text: str, syntax: Syntax) -> str:
    """Return what people read of a text, without its tags; all of it where it is malformed."""
    try:
        found = [each for each in tokens_of(text, syntax) if each.kind is Kind.TEXT]
    except MalformedError:
        return text
    return html.unescape(" ".join(text[each.start : each.end] for each in found))


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a tag that has a value."""

    name: str
    """Name of the attribute, in small letters."""
    start: int
    """Where its value begins in the text, after a quotation mark if there is one."""
    end: int


def attributes_of(text: str, token: Token) -> Iterator[Attribute]:
    """Yield the attributes of a tag that have a value."""
    first = token.start + 1 + len(token.name)
    for match in _ATTRIBUTE.finditer(text, first, token.end - 1):
        group = match.lastindex or 1
        if group > 1:
            yield Attribute(match[1].lower(), *match.span(group))


def _html(text: str) -> Iterator[Token]:
    done = at = 0
    last = max(text.rfind(">"), text.rfind("<!--") + 1)  # beyond it nothing is a tag
    while 0 <= (at := text.find("<", at)) < last:
        token = _html_token(text, at)
        if token is None:
            at += 1
            continue
        if done < at:
            yield Token(Kind.TEXT, done, at)
        yield token
        done = at = token.end
        if token.kind is Kind.OPEN and token.name in _WITHOUT_TAGS:
            end = _end_of(text, token.end, token.name)
            if end > done:
                yield Token(Kind.OTHER if token.name in _RAW else Kind.TEXT, done, end)
            done = at = end
    if done < len(text):
        yield Token(Kind.TEXT, done, len(text))


def _html_token(text: str, at: int) -> Token | None:
    if match := _HTML_TAG.match(text, at):
        name = match["name"].lower()
        if match["close"]:
            return Token(Kind.CLOSE, at, match.end(), name)
        is_empty = name in VOID or text[match.end() - 2] == "/"
        return Token(Kind.EMPTY if is_empty else Kind.OPEN, at, match.end(), name)
    if match := _HTML_OTHER.match(text, at):
        return Token(Kind.OTHER, at, match.end())
    return None


def _end_of(text: str, start: int, name: str) -> int:
    """Return where the end tag of an element without tags in it stands, or the end of the text."""
    match = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, start)
    return match.start() if match else len(text)


def _xml(text: str) -> Iterator[Token]:
    opened: list[Token] = []
    done = 0
    while done < len(text):
        at = text.find("<", done)
        at = len(text) if at < 0 else at
        if done < at:
            _check_references(text, done, at)
            yield Token(Kind.TEXT, done, at)
        if at == len(text):
            break
        token = _xml_token(text, at)
        if token.kind is Kind.OPEN:
            opened.append(token)
        elif token.kind is Kind.CLOSE and (not opened or opened.pop().name != token.name):
            raise MalformedError(text, at, "an end tag that closes nothing")
        yield token
        done = token.end
    if opened:
        raise MalformedError(text, opened[-1].start, "an element without its end tag")


def _xml_token(text: str, at: int) -> Token:
    if match := _XML_TAG.match(text, at):
        if match["close"] and (match["attributes"] or match["empty"]):
            raise MalformedError(text, at, "an end tag with attributes")
        _check_references(text, *match.span("attributes"))
        kind = Kind.CLOSE if match["close"] else Kind.EMPTY if match["empty"] else Kind.OPEN
        return Token(kind, at, match.end(), match["name"])
    if match := _XML_OTHER.match(text, at):
        return Token(Kind.OTHER, at, match.end())
    raise MalformedError(text, at, "a < that begins no tag")


def _check_references(text: str, start: int, end: int) -> None:
    at = text.find("&", start, end)
    while at >= 0:
        match = _XML_REFERENCE.match(text, at, end)
        if not match:
            raise MalformedError(text, at, "an & that begins no entity")
        at = text.find("&", match.end(), end)
