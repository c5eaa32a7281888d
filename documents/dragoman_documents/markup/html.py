"""HTML and XHTML: blocks are segments, inline elements are tags in them, code stays as it is."""

import re
from collections.abc import Sequence
from functools import partial
from html import unescape

from dragoman_documents.document import Document
from dragoman_documents.encodings import decode
from dragoman_documents.flow import Atom, Kind, flow_slots, tag
from dragoman_documents.inline import escape, has_letters, one_line
from dragoman_documents.markup.html_tokens import Token, TokenKind, attributes, tokens
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import LanguageSlot, Render, Slot, Template, Unit


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


INLINE = _names(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark nobr q rb rp rt rtc "
    "ruby s small span strike strong sub sup time tt u"
)
ALONE = _names("img wbr")
"""Inline elements that never have content."""
VOID = _names("area base br col embed hr img input link meta param source track wbr")
CODE = _names("code kbd samp var math svg")
"""Inline elements that stay as they are."""
VERBATIM = _names("pre script style textarea xmp iframe noembed noframes")
"""Blocks that stay as they are."""
READ_BY_PEOPLE = frozenset(("alt", "title", "placeholder", "aria-label"))
"""Attributes that are translated."""
_META = frozenset(
    (
        "description",
        "keywords",
        "og:title",
        "og:description",
        "twitter:title",
        "twitter:description",
    )
)
_SPACE_REFERENCE = re.compile(r"&(?:#(?:9|10|13|32|x0*9|x0*[aAdD]|x20)|Tab|NewLine);")


def open_html(data: bytes, settings: DocumentSettings, *, is_xml: bool = False) -> Document:
    """Take an HTML file apart."""
    text, encoding = decode(data, is_html=True)
    template = html_template(text, is_xml=is_xml or text.lstrip().startswith("<?xml"))
    return Document(
        "xhtml" if is_xml else "html",
        data,
        [template],
        lambda texts: encoding.encode(texts[0], "xmlcharrefreplace"),
        settings,
    )


def html_template(text: str, *, is_xml: bool) -> Template:
    """Return the slots of a page."""
    reader = _Reader(text, 0, len(text), is_xml=is_xml)
    return Template(text, reader.slots, reader.languages, reader.left)


def html_slots(text: str, start: int, end: int) -> list[Slot]:
    """Return the slots of HTML inside of another text."""
    return _Reader(text, start, end, is_xml=False).slots


class _Reader:
    def __init__(self, text: str, start: int, end: int, *, is_xml: bool) -> None:
        self._text = text
        self.slots: list[Slot] = []
        self.languages: list[LanguageSlot] = []
        self.left: dict[str, int] = {}
        self._atoms: list[Atom] = []
        self._block = "text"
        self._tokens = list(tokens(text, start, end, is_xml=is_xml))
        self._is_xml = is_xml
        self._ends = _match_ends(self._tokens)
        index = 0
        while index < len(self._tokens):
            index = self._read(index)
        self._flush()

    def _read(self, index: int) -> int:
        """Take in a token; return the index of the next one."""
        token = self._tokens[index]
        if token.kind is TokenKind.TEXT:
            self._atoms += text_atoms(self._text, token.start, token.end)
            return index + 1
        if token.kind is TokenKind.OTHER:
            self._atoms.append(tag(Kind.ALONE, token.start, token.end))
            return index + 1
        if token.kind is TokenKind.END:
            if token.name in INLINE or "-" in token.name:
                self._atoms.append(tag(Kind.CLOSE, token.start, token.end, token.name))
            elif token.name not in CODE:
                self._flush()
                self._block = "text"
            return index + 1
        return self._start(index, token)

    def _start(self, index: int, token: Token) -> int:
        name, found = token.name, attributes(self._text, token)
        is_kept = (
            name in CODE
            or name in VERBATIM
            or found.get("translate", ("",))[0].lower() == "no"
            or "notranslate" in found.get("class", ("",))[0].split()
        )
        is_inline = name in INLINE or name in CODE or name in ALONE or "-" in name
        if is_kept:
            last = self._ends.get(index, index)
            if not is_inline:
                self._flush()
            self._count(f"<{name}>")
            end = self._tokens[last].end
            self._atoms.append(tag(Kind.ALONE, token.start, end))
            if not is_inline:
                self._flush()
            return last + 1
        self._take_attributes(token, found)
        if name == "br":
            self._atoms.append(tag(Kind.BREAK, token.start, token.end))
        elif name in ALONE or (is_inline and token.is_closed and self._is_xml):
            self._atoms.append(tag(Kind.ALONE, token.start, token.end))
        elif is_inline:
            self._atoms.append(tag(Kind.OPEN, token.start, token.end, name))
        else:
            self._flush()
            self._block = name
        return index + 1

    def _take_attributes(self, token: Token, found: dict[str, tuple[str, int, int]]) -> None:
        for name, (value, start, end) in found.items():
            if token.name == "html" and name in ("lang", "xml:lang"):
                self.languages.append(LanguageSlot(start, end))
                continue
            is_read = name in READ_BY_PEOPLE
            if token.name == "meta" and name == "content":
                named = found.get("name", found.get("property", ("",)))[0].lower()
                is_read = named in _META
            elif token.name == "input" and name == "value":
                is_read = found.get("type", ("",))[0].lower() in ("submit", "button", "reset")
            quote = self._text[start - 1]
            if is_read and quote in "\"'" and has_letters(value):
                unit = Unit(one_line(unescape(value)), context=f"{token.name} {name}")
                self.slots.append(Slot(start, end, (unit,), partial(_write_attribute, quote)))

    def _flush(self) -> None:
        self.slots += flow_slots(self._atoms, self._block)
        self._atoms = []

    def _count(self, what: str) -> None:
        self.left[what] = self.left.get(what, 0) + 1


def text_atoms(text: str, start: int, end: int) -> list[Atom]:
    """Return the text between two tags of HTML."""
    found = []
    position = start
    for match in _SPACE_REFERENCE.finditer(text, start, end):
        if match.start() > position:
            found.append(_text_atom(text, position, match.start()))
        found.append(tag(Kind.ALONE, *match.span()))
        position = match.end()
    if position < end:
        found.append(_text_atom(text, position, end))
    return found


def _text_atom(text: str, start: int, end: int) -> Atom:
    return Atom(Kind.TEXT, start, end, text=unescape(text[start:end]))


def _match_ends(found: Sequence[Token]) -> dict[int, int]:
    """Return for each start tag the index of its end tag, where it has one."""
    ends: dict[int, int] = {}
    opened: dict[str, list[int]] = {}
    for index, token in enumerate(found):
        if token.kind is TokenKind.START and not token.is_closed and token.name not in VOID:
            opened.setdefault(token.name, []).append(index)
        elif token.kind is TokenKind.END and opened.get(token.name):
            ends[opened[token.name].pop()] = index
    return ends


def _write_attribute(quote: str, translations: Sequence[str], _: Render) -> str:
    escaped = escape(one_line(translations[0]))
    return escaped.replace(quote, "&quot;" if quote == '"' else "&#39;")
