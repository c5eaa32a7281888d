"""Line breaks that end no sentence: made spaces before a text is read.

XML and plain text end sentences at line breaks. Where a client does not want that, the breaks
between two words of a run of text go; white space at its ends and between blocks stays as it is.
"""

from collections.abc import Iterator

from dragoman_server.text.markup.document import LINE_BREAKS, visible
from dragoman_server.text.markup.outline import MarkupOptions, Role, outline_of
from dragoman_server.text.markup.tokens import Kind, Token, tokens_of

_BLOCKS = (Role.BLOCK, Role.KEPT_BLOCK)


def has_inner_breaks(text: str) -> bool:
    """Whether a line of a text comes after another, white space at its ends not counted."""
    return len(text.strip().splitlines()) > 1


def without_inner_breaks(text: str, options: MarkupOptions) -> str:
    """Return a text with spaces for line breaks, except around blocks and in what is kept.

    Raises ``MalformedError`` for XML that is not well-formed.
    """
    pieces: list[str] = []
    done = 0
    for run in _runs(text, options):
        words = [each for each in run if text[each.start : each.end].strip()]
        if not words:
            continue
        first, last = words[0], words[-1]
        start = first.end - len(text[first.start : first.end].lstrip())
        end = last.start + len(text[last.start : last.end].rstrip())
        for each in run:
            begin, stop = max(each.start, start), min(each.end, end)
            if begin < stop:
                pieces += [text[done:begin], text[begin:stop].translate(LINE_BREAKS)]
                done = stop
    return "".join([*pieces, text[done:]])


def _runs(text: str, options: MarkupOptions) -> Iterator[list[Token]]:
    """Yield the texts between two blocks, with whatever tags between them."""
    outline = outline_of(text, list(tokens_of(text, options.syntax)), options)
    run: list[Token] = []
    for number, token in visible(outline):
        if token.kind is Kind.TEXT:
            run.append(token)
        elif outline.roles[number] in _BLOCKS:
            yield run
            run = []
    yield run
