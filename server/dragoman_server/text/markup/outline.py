"""What the elements of a text are to a translator: blocks, parts of a sentence, or to be kept.

Where a block begins or ends, a sentence does. HTML has lists of its elements. XML has none, so
there an element is a part of its sentence where text stands beside it, and a block where none does.
"""

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from dragoman_server.text.markup.tokens import Kind, Syntax, Token, attributes_of

_BLOCKS = frozenset(
    """address article aside audio blockquote body br button canvas caption center col colgroup dd
    details dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4
    h5 h6 head header hgroup hr html iframe legend li link main menu meta nav noframes noscript
    object ol optgroup option p pre search section select summary table tbody td textarea tfoot th
    thead title tr ul video""".split()  # noqa: SIM905
)
"""Elements of HTML that end sentences. All others, and those that HTML does not have, do not."""
_VERBATIM = frozenset(("code", "kbd", "samp", "var", "pre", "math", "tt"))
_UNREAD = frozenset(("script", "style", "svg", "template"))
"""Elements of HTML whose text is no part of the sentence around them."""
_RAISED = frozenset(("sup", "sub"))
_MAX_NOTE_TOKENS = 8
"""Most tags and texts of the number of a note."""


class Role(Enum):
    """What an element is to a translator."""

    BLOCK = "block"
    """Sentences end where the element begins and ends."""
    INLINE = "inline"
    """The element is around words of a sentence."""
    KEPT = "kept"
    """The element is a part of its sentence that stays as it is."""
    KEPT_BLOCK = "kept block"
    """The element stays as it is, and is no part of a sentence."""
    UNREAD = "unread"
    """The element stays as it is; the sentence around it is read without it."""


@dataclass(frozen=True, kw_only=True)
class MarkupOptions:
    """How a text with markup is read."""

    syntax: Syntax
    ignore_tags: frozenset[str] = frozenset()
    """Elements that stay as they are."""
    splitting_tags: frozenset[str] = frozenset()
    """Elements that are blocks, whatever else is known of them."""
    inline_tags: frozenset[str] = frozenset()
    """Elements that are parts of sentences, whatever else is known of them."""
    outline: bool = True
    """Whether blocks are found by what is known of HTML and seen of XML."""
    attributes: bool = False
    """Whether attributes that people read are translated."""


@dataclass(frozen=True)
class Outline:
    """The tags of a text with what they are."""

    tokens: Sequence[Token]
    partners: Sequence[int]
    """For each token the number of the tag that belongs to it: its end tag or its start tag; -1 for
    none."""
    roles: Sequence[Role]
    """For each token the role of its element; text is inline."""


def outline_of(text: str, tokens: Sequence[Token], options: MarkupOptions) -> Outline:
    """Return what the tags of a text are."""
    partners, parents = _nesting(tokens)
    roles = [Role.INLINE] * len(tokens)
    is_block = _html_blocks if options.syntax is Syntax.HTML else _xml_blocks
    blocks = is_block(text, tokens, parents) if options.outline else [False] * len(tokens)
    for number, token in enumerate(tokens):
        if token.kind in (Kind.TEXT, Kind.CLOSE):
            continue
        if token.kind is Kind.OTHER:
            is_text = options.syntax is Syntax.XML and text.startswith("<![CDATA[", token.start)
            roles[number] = Role.KEPT if is_text else Role.UNREAD
            continue
        if token.name in options.splitting_tags:
            is_cut = True
        else:
            is_cut = blocks[number] and token.name not in options.inline_tags
        is_whole = token.kind is Kind.EMPTY or partners[number] >= 0
        if is_whole and _is_kept(text, token, options):
            is_blank = not text[token.end : tokens[partners[number]].start].strip()
            as_inline = Role.UNREAD if token.kind is Kind.EMPTY or is_blank else Role.KEPT
            roles[number] = Role.KEPT_BLOCK if is_cut else as_inline
        elif is_whole and options.syntax is Syntax.HTML and token.name in _UNREAD:
            roles[number] = Role.UNREAD
        else:
            roles[number] = Role.BLOCK if is_cut else Role.INLINE
        is_note = options.syntax is Syntax.HTML and token.name in _RAISED
        is_short = 0 < partners[number] - number <= _MAX_NOTE_TOKENS
        if is_note and is_short and not _has_letters(text, tokens[number : partners[number]]):
            roles[number] = Role.UNREAD  # the number of a note, which is no part of the word
        if partners[number] >= 0:
            roles[partners[number]] = roles[number]
    if options.syntax is Syntax.HTML:  # end tags that close nothing
        for number, token in enumerate(tokens):
            if token.kind is Kind.CLOSE and partners[number] < 0 and token.name in _BLOCKS:
                roles[number] = Role.BLOCK
    return Outline(tokens, partners, roles)


def _nesting(tokens: Sequence[Token]) -> tuple[list[int], list[int]]:
    """Return the partner of each tag, and the element that each token is in; -1 for none."""
    partners, parents = [-1] * len(tokens), [-1] * len(tokens)
    opened: list[int] = []
    names: Counter[str] = Counter()
    for number, token in enumerate(tokens):
        if token.kind is Kind.CLOSE and names[token.name]:
            while tokens[start := opened.pop()].name != token.name:  # those have no end tag
                names[tokens[start].name] -= 1
            names[token.name] -= 1
            partners[number], partners[start] = start, number
        parents[number] = opened[-1] if opened else -1
        if token.kind is Kind.OPEN:
            opened.append(number)
            names[token.name] += 1
    return partners, parents


def _html_blocks(text: str, tokens: Sequence[Token], parents: Sequence[int]) -> list[bool]:
    return [token.name in _BLOCKS for token in tokens]


def _xml_blocks(text: str, tokens: Sequence[Token], parents: Sequence[int]) -> list[bool]:
    """Find the elements beside which there is no text.

    A text without an element around it is a part of a document, and the elements in it are inline.
    """
    beside: set[int] = set()
    """Elements with text of their own; -1 is the text itself."""
    roots = 0
    for token, parent in zip(tokens, parents, strict=True):
        if token.kind is Kind.TEXT and text[token.start : token.end].strip():
            beside.add(parent)
        roots += parent < 0 and token.kind in (Kind.OPEN, Kind.EMPTY)
    if roots != 1:
        beside.add(-1)
    inline: set[int] = set()
    blocks = [False] * len(tokens)
    for number, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
        if token.kind in (Kind.OPEN, Kind.EMPTY):
            if parent in beside or parent in inline:
                inline.add(number)
            else:
                blocks[number] = True
    return blocks


def _is_kept(text: str, token: Token, options: MarkupOptions) -> bool:
    if token.name in options.ignore_tags:
        return True
    is_html = options.syntax is Syntax.HTML
    if is_html and token.name in _VERBATIM:
        return True
    if "translate" not in text[token.start : token.end].lower():
        return False
    for attribute in attributes_of(text, token):
        value = text[attribute.start : attribute.end].lower()
        if attribute.name == "translate" and value.strip() == "no":
            return True
        if is_html and attribute.name == "class" and "notranslate" in value.split():
            return True
    return False


def _has_letters(text: str, tokens: Sequence[Token]) -> bool:
    return any(
        letter.isalpha()
        for token in tokens
        if token.kind is Kind.TEXT
        for letter in html.unescape(text[token.start : token.end])
    )
