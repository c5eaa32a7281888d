"""Inline tags of a segment: ``<x1>…</x1>`` and ``<x2/>`` in text that is escaped as XML."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_TAG = re.compile(r"<(/?)x([1-9][0-9]*)(/?)>")
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#39|#x27);")
_SPACES = re.compile(r"[ \t\r\n\f\v]+")
_CHARACTERS = {
    "&amp;": "&",
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&apos;": "'",
    "&#39;": "'",
    "&#x27;": "'",
}


@dataclass(frozen=True, slots=True)
class InlineTag:
    """One tag: the beginning or the end of a pair, or one that stands alone."""

    number: int
    is_end: bool = False
    is_alone: bool = False

    def __str__(self) -> str:
        return f"<{'/' * self.is_end}x{self.number}{'/' * self.is_alone}>"


def escape(text: str) -> str:
    """Return text as it stands between tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    """Return the characters of text that stood between tags."""
    return _ENTITY.sub(lambda found: _CHARACTERS[found[0]], text)


def split(text: str) -> list[str | InlineTag]:
    """Return the texts between tags, unescaped, and the tags; texts that are empty are left out."""
    found: list[str | InlineTag] = []
    position = 0
    for match in _TAG.finditer(text):
        if match.start() > position:
            found.append(unescape(text[position : match.start()]))
        found.append(InlineTag(int(match[2]), bool(match[1]), bool(match[3])))
        position = match.end()
    if position < len(text):
        found.append(unescape(text[position:]))
    return found


def join(pieces: Sequence[str | InlineTag]) -> str:
    """Return texts and tags as one text with tags: the opposite of ``split``."""
    return "".join(escape(each) if isinstance(each, str) else str(each) for each in pieces)


def tags_hold(source: str, translation: str) -> bool:
    """Whether a translation has the tags of its source, each once, and balanced."""
    if "<" in _TAG.sub("", translation):
        return False
    tags = [each for each in split(translation) if isinstance(each, InlineTag)]
    wanted = [each for each in split(source) if isinstance(each, InlineTag)]
    if len(tags) != len(wanted) or set(tags) != set(wanted):
        return False
    opened: list[int] = []
    for tag in tags:
        if tag.is_end:
            if not opened or opened.pop() != tag.number:
                return False
        elif not tag.is_alone:
            opened.append(tag.number)
    return not opened


def texts_of(text: str) -> list[str]:
    """Return the texts between tags that have letters, without the spaces around them."""
    return [each.strip() for each in split(text) if isinstance(each, str) and has_letters(each)]


def by_pieces(text: str, translate: Callable[[str], str]) -> str:
    """Return a segment with each text between its tags translated for itself."""
    return join(
        [
            _keep_spaces(each, translate) if isinstance(each, str) and has_letters(each) else each
            for each in split(text)
        ]
    )


def one_line(text: str) -> str:
    """Return a text with single spaces where it had any number of them or of line breaks.

    Spaces that do not break a line are letters like others.
    """
    return _SPACES.sub(" ", text).strip(" ")


def has_letters(text: str) -> bool:
    """Whether there is something to translate in a text."""
    return any(map(str.isalpha, text))


def _keep_spaces(text: str, translate: Callable[[str], str]) -> str:
    core = text.strip()
    before, _, after = text.partition(core)
    return f"{before}{translate(core)}{after}"
