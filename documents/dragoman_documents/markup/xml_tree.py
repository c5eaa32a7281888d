"""XML as a tree of elements that know where they stand in the source.

Expat reads it: entities are refused where they are declared, and nothing is ever fetched.
"""

import re
from collections.abc import Iterator, Mapping, Set
from xml.parsers import expat

from dragoman_documents.errors import DocumentError
from dragoman_documents.flow import Atom, Kind, tag
from dragoman_documents.settings import DocumentSettings

_OPENING = re.compile(r"""<[^\s/>]+(?:\s+[^\s=]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*(/?)>""")
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]+)|#x([0-9A-Fa-f]+));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_NO_TEXT = re.compile(
    r"<!--.*?-->|<\?.*?\?>|&#(?:9|10|13|32|x0*9|x0*[aAdD]|x20);|&(?!amp;|lt;|gt;|quot;|apos;|#)[^;]+;",
    re.DOTALL,
)
"""What is between tags and is not text: comments, instructions, spaces that were written as
numbers, and entities of a document type."""
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)


class Element:
    """An element of XML."""

    __slots__ = (
        "attributes",
        "children",
        "content",
        "content_end",
        "end",
        "name",
        "parent",
        "start",
    )

    def __init__(
        self, name: str, attributes: dict[str, str], start: int, parent: "Element | None"
    ) -> None:
        self.name = name
        """Short name of the namespace, a colon, and the name."""
        self.attributes = attributes
        self.start = start
        self.content = self.content_end = self.end = start
        """Where the content begins and ends, and where the element ends."""
        self.parent = parent
        self.children: list[Element] = []

    def walk(self) -> "Iterator[Element]":
        """Yield this element and all inside it, in the order of the source."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))

    def child(self, name: str) -> "Element | None":
        """Return the first child of a name."""
        return next((each for each in self.children if each.name == name), None)


class XmlSource:
    """A text in XML, and its tree."""

    def __init__(
        self, text: str, settings: DocumentSettings, namespaces: Mapping[str, str] | None = None
    ) -> None:
        self.text = text
        self.root = _Reader(text, settings, namespaces or {}).root

    def tag_name(self, element: Element) -> str:
        """Return the name of an element as the source has it, with its prefix."""
        found = re.compile(r"<([^\s/>]+)").match(self.text, element.start)
        return found[1] if found else ""

    def inner(self, element: Element) -> str:
        """Return the source between an element's tags."""
        return self.text[element.content : element.content_end]

    def string(self, element: Element) -> str:
        """Return the characters of an element that holds only text."""
        return plain(_NO_TEXT.sub("", self.inner(element)))

    def gaps(self, element: Element) -> "Iterator[tuple[int, int] | Element]":
        """Yield the children of an element, and the spans between them."""
        position = element.content
        for child in element.children:
            if child.start > position:
                yield position, child.start
            yield child
            position = child.end
        if position < element.content_end:
            yield position, element.content_end

    def atoms(
        self, element: Element, pairs: Set[str], breaks: Set[str] = frozenset()
    ) -> Iterator[Atom]:
        """Yield the running text of an element: pairs hold text, what is in others is not in it."""
        for each in self.gaps(element):
            if isinstance(each, tuple):
                yield from self.text_atoms(*each)
            elif each.name in breaks:
                yield tag(Kind.BREAK, each.start, each.end)
            elif each.name in pairs and each.content < each.end:
                name = f"{each.name} {each.start}"
                yield tag(Kind.OPEN, each.start, each.content, name)
                yield from self.atoms(each, pairs, breaks)
                yield tag(Kind.CLOSE, each.content_end, each.end, name)
            else:
                yield tag(Kind.ALONE, each.start, each.end)

    def text_atoms(self, start: int, end: int) -> Iterator[Atom]:
        """Yield what is between two tags."""
        position = start
        for found in _NO_TEXT.finditer(self.text, start, end):
            if found.start() > position:
                yield self._text_atom(position, found.start())
            yield tag(Kind.ALONE, found.start(), found.end())
            position = found.end()
        if position < end:
            yield self._text_atom(position, end)

    def _text_atom(self, start: int, end: int) -> Atom:
        return Atom(Kind.TEXT, start, end, text=plain(self.text[start:end]))

    def attribute(self, element: Element, name: str) -> tuple[int, int] | None:
        """Return where the value of an attribute stands, by its name as the source has it."""
        pattern = re.compile(rf"""\s{re.escape(name)}\s*=\s*(?:"([^"]*)"|'([^']*)')""")
        found = pattern.search(self.text, element.start, element.content)
        return found.span(found.lastindex or 1) if found else None


def plain(source: str) -> str:
    """Return the characters of text in XML."""
    if "<![CDATA[" in source:
        pieces = _CDATA.split(source)  # text and sections by turns
        return "".join(p if i % 2 else _unescape(p) for i, p in enumerate(pieces))
    return _unescape(source)


def _unescape(source: str) -> str:
    return _ENTITY.sub(_character, source) if "&" in source else source


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return _NAMED[found[1]]
    return chr(int(found[2]) if found[2] else int(found[3], 16))


class _Reader:
    def __init__(self, text: str, settings: DocumentSettings, names: Mapping[str, str]) -> None:
        self._text = text
        self._data = text.encode()
        self._names = names
        self._max_depth = settings.max_depth
        self._stack: list[Element] = []
        self._root: Element | None = None
        self._byte = self._position = 0
        self._parser = expat.ParserCreate("utf-8", "}")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.EntityDeclHandler = self._refuse_entity
        try:
            self._parser.Parse(self._data, True)
        except expat.ExpatError as error:
            raise DocumentError(f"is not well-formed XML: {error}") from None

    @property
    def root(self) -> Element:
        if self._root is None:
            raise DocumentError("is XML without an element")
        return self._root

    def _at(self) -> int:
        """Return where the parser is, in characters; it counts bytes, and never goes back."""
        byte = self._parser.CurrentByteIndex
        self._position += len(self._data[self._byte : byte].decode())
        self._byte = byte
        return self._position

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._stack) >= self._max_depth:
            raise DocumentError(f"has XML nested more than {self._max_depth} deep")
        start = self._at()
        parent = self._stack[-1] if self._stack else None
        short = {self._short(key): value for key, value in attributes.items()}
        element = Element(self._short(name), short, start, parent)
        found = _OPENING.match(self._text, start)
        if found is None:
            raise DocumentError("is not XML that can be taken apart")
        element.content = found.end()
        if found[1]:
            element.content_end = element.end = found.end()
        if parent is not None:
            parent.children.append(element)
        else:
            self._root = element
        self._stack.append(element)

    def _end(self, name: str) -> None:
        element = self._stack.pop()
        if element.end > element.start:
            return  # it was a tag that stands alone
        element.content_end = self._at()
        element.end = self._text.index(">", element.content_end) + 1

    def _short(self, name: str) -> str:
        space, _, local = name.rpartition("}")
        if not space:
            return local
        return f"{self._names.get(space, space)}:{local}"

    def _refuse_entity(self, *_: object) -> None:
        raise DocumentError("declares entities, which are not read")
