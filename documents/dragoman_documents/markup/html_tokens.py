"""HTML as a row of tokens that know where they stand in the source.

Nothing is corrected: who reads pages copes with what authors wrote, and text that is put back into
the same source is read the same way. Takes time in proportion to the source, whatever it is.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

_TAG = re.compile(
    r"""<(/?)([A-Za-z][^\s/>]*+)(?:[\s/]++|[^\s>/][^\s=>/]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+))?+)*+>"""
)
_ATTRIBUTE = re.compile(
    r"""([^\s=>/"'<]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"']++))""",
)
_RAW = ("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes", "title")
"""Elements whose content is not markup."""
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}


class TokenKind(Enum):
    """What a token is."""

    TEXT = auto()
    START = auto()
    END = auto()
    OTHER = auto()
    """Comments, declarations, instructions, and what is inside of scripts."""


@dataclass(slots=True)
class Token:
    """A token of HTML."""

    kind: TokenKind
    start: int
    end: int
    name: str = ""
    """Name of a tag, in small letters."""
    is_closed: bool = False
    """Whether a tag ends with a slash, as empty elements of XHTML do."""


def tokens(text: str, start: int, end: int, *, is_xml: bool) -> Iterator[Token]:
    """Yield the tokens of a span, one after the other without gaps."""
    position = start
    while position < end:
        opening = text.find("<", position, end)
        if opening < 0:
            opening = end
        token = _markup(text, opening, end, is_xml) if opening < end else None
        while token is None and opening < end:  # a < that is only text
            opening = text.find("<", opening + 1, end)
            if opening < 0:
                opening = end
                break
            token = _markup(text, opening, end, is_xml)
        if opening > position:
            yield Token(TokenKind.TEXT, position, opening)
        if token is None:
            return
        yield token
        position = token.end
        if token.kind is TokenKind.START and token.name in _RAW_ENDS:
            if is_xml and (token.is_closed or token.name == "title"):
                continue
            found = _RAW_ENDS[token.name].search(text, position, end)
            inner_end = found.start() if found else end
            if inner_end > position:
                kind = TokenKind.TEXT if token.name == "title" else TokenKind.OTHER
                yield Token(kind, position, inner_end)
            position = inner_end


def _markup(text: str, start: int, end: int, is_xml: bool) -> Token | None:
    following = text[start + 1 : start + 2]
    if following.isalpha() or (following == "/" and text[start + 2 : start + 3].isalpha()):
        found = _TAG.match(text, start, end)
        if found is None:  # a quote or tag that never ends: readers ignore all behind it
            return Token(TokenKind.OTHER, start, end)
        kind = TokenKind.END if found[1] else TokenKind.START
        is_closed = text[found.end() - 2] == "/"
        return Token(kind, start, found.end(), found[2].lower(), is_closed)
    for opening, closing in (
        ("<!--", "-->"),
        ("<![CDATA[", "]]>"),
        ("<?", "?>" if is_xml else ">"),
    ):
        if text.startswith(opening, start):
            stop = text.find(closing, start + len(opening), end)
            return Token(TokenKind.OTHER, start, stop + len(closing) if stop >= 0 else end)
    if following in ("!", "/"):
        stop = (
            _declaration_end(text, start, end) if following == "!" else text.find(">", start, end)
        )
        return Token(TokenKind.OTHER, start, stop + 1 if stop >= 0 else end)
    return None


def _declaration_end(text: str, start: int, end: int) -> int:
    """Return where a document type ends; it may have declarations in brackets."""
    stop = text.find(">", start, end)
    bracket = text.find("[", start, stop) if stop >= 0 else -1
    if bracket < 0:
        return stop
    closing = text.find("]", bracket, end)
    return text.find(">", closing, end) if closing >= 0 else -1


def attributes(text: str, token: Token) -> dict[str, tuple[str, int, int]]:
    """Return the attributes of a tag: their values as they are written, and where."""
    found: dict[str, tuple[str, int, int]] = {}
    for match in _ATTRIBUTE.finditer(text, token.start + 1 + len(token.name), token.end):
        group = match.lastindex or 2
        start, end = match.span(group)
        found.setdefault(match[1].lower(), (match[group], start, end))
    return found
