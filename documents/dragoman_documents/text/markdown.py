"""Markdown: markdown-it says what is what, and text is replaced in the source where it stands.

The library says in which lines a block is, and of inline markup only the order; each of its tokens
is found again in the source, one after the other. A block in which that fails is left as it is.
"""

import re
from collections.abc import Sequence
from functools import partial

from markdown_it import MarkdownIt
from markdown_it.token import Token

from dragoman_documents.document import Document
from dragoman_documents.encodings import decode
from dragoman_documents.errors import DocumentError
from dragoman_documents.flow import Flow, Kind, groups
from dragoman_documents.inline import one_line
from dragoman_documents.markup.html import html_slots
from dragoman_documents.settings import DocumentSettings
from dragoman_documents.template import Render, Slot, Template
from dragoman_documents.text.markdown_inline import InlineReader, MismatchError

_FRONT_MATTER = re.compile(
    r"\A(---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*\r?\n|\+\+\+[ \t]*\r?\n.*?^\+\+\+[ \t]*\r?\n)",
    re.DOTALL | re.MULTILINE,
)
_BLOCK_START = re.compile(r"(#{1,6}(?=\s|$)|[-+*](?=\s)|>|=+\s*$|-+\s*$|~~~|```|\|)")
_NUMBER_START = re.compile(r"(\d{1,9})([.)])(?=\s)")
_SPECIAL = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])|`|\*(?! )|(?<! )\*|(?<!\w)_|_(?!\w)|\[|\]"
    r"|<(?=[A-Za-z/!?])|&(?=#?\w+;)|~~"
)
_MAX_BYTES = 8 << 20
"""Bytes, beyond which markdown-it would take minutes."""


def open_markdown(data: bytes, settings: DocumentSettings) -> Document:
    """Take a Markdown file apart."""
    if len(data) > _MAX_BYTES:
        raise DocumentError(f"is Markdown of more than {_MAX_BYTES >> 20} MiB")
    text, encoding = decode(data)
    reader = _Reader(text)
    template = Template(text, reader.slots, (), reader.left)
    return Document("md", data, [template], lambda texts: encoding.encode(texts[0]), settings)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.slots: list[Slot] = []
        self.left: dict[str, int] = {}
        front = _FRONT_MATTER.match(text)
        first = front.end() if front else 0
        # markdown-it sees each kind of line end as one.
        self._lines = _line_spans(text, first)
        parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
        environment: dict[str, dict[str, object]] = {}
        body = "\n".join(text[start:end] for start, end in self._lines).replace("\0", "\ufffd")
        try:
            self._tokens = parser.parse(body, environment)
        except RecursionError:
            raise DocumentError("is nested too deep") from None
        self._inline = InlineReader(parser, set(environment.get("references", {})))
        self._read()

    def _read(self) -> None:
        row_line, row_column = -1, 0
        for index, token in enumerate(self._tokens):
            if token.type == "html_block" and token.map:
                first, last = token.map[0], token.map[1] - 1
                span = self._lines[first][0], self._lines[min(last, len(self._lines) - 1)][1]
                self.slots += html_slots(self._text, *span)
            elif token.type in ("fence", "code_block"):
                self._count("blocks of code")
            if token.type != "inline" or not token.content or not token.map:
                continue
            block = self._tokens[index - 1]
            if block.type in ("th_open", "td_open"):
                line = token.map[0]
                if line != row_line:
                    row_line, row_column = line, self._lines[line][0]
                spans = self._find([token.content], line, row_column)
                if spans:
                    row_column = spans[0][1]
            else:
                spans = self._find(token.content.split("\n"), token.map[0], None)
            self._take(token, block, spans)

    def _find(
        self, lines: Sequence[str], first: int, position: int | None
    ) -> list[tuple[int, int]]:
        """Return where the lines of a block's content stand in the source, or nothing."""
        found = []
        for number, line in enumerate(lines):
            if first + number >= len(self._lines):
                return []
            start, end = self._lines[first + number]
            source = self._text[start:end]
            if position is not None:
                at = self._text.find(line, position, end)
            elif source.rstrip().endswith(line):  # all but closed headings
                at = start + len(source.rstrip()) - len(line)
            else:
                at = self._text.find(line, start, end)
            if at < 0:
                return []
            found.append((at, at + len(line)))
        return found

    def _take(self, token: Token, block: Token, spans: list[tuple[int, int]]) -> None:
        try:
            if not spans:
                raise MismatchError
            atoms = self._inline.atoms(token, spans, self._text)
        except MismatchError:
            self._count("blocks that could not be taken apart")
            return
        context = block.tag or block.type
        is_cell = block.type in ("th_open", "td_open")
        for group in groups(atoms):
            if group[0].kind is Kind.BREAK:
                continue
            flow = Flow(group, _write_text, context=context)
            if flow.has_text:
                at_start = flow.span[0] == spans[0][0] and not is_cell and block.tag == "p"
                write = partial(_write, flow, at_start, is_cell)
                self.slots.append(Slot(*flow.span, (flow.unit,), write))

    def _count(self, what: str) -> None:
        self.left[what] = self.left.get(what, 0) + 1


def _line_spans(text: str, first: int) -> list[tuple[int, int]]:
    spans = []
    position = first
    for found in re.finditer(r"\r\n|\r|\n", text[first:]):
        spans.append((position, first + found.start()))
        position = first + found.end()
    return [*spans, (position, len(text))]


def _write_text(text: str, _: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\{found[0]}" if found[0] != "~~" else "\\~\\~", text)


def _write(
    flow: Flow, at_start: bool, is_cell: bool, translations: Sequence[str], render: Render
) -> str:
    written = flow.write_core(one_line(translations[0]), render)
    if is_cell:
        return re.sub(r"(?<!\\)\|", r"\\|", written)
    if at_start:  # where a paragraph would become a heading or a list
        written = (
            _BLOCK_START.sub(r"\\\1", written, count=1) if _BLOCK_START.match(written) else written
        )
        written = (
            _NUMBER_START.sub(r"\1\\\2", written, count=1)
            if _NUMBER_START.match(written)
            else written
        )
    return written
