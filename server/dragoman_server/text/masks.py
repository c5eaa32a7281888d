"""Names in place of what a model can't copy.

Models copy names, and decline the words around them: masked by a name, "Write to a@b.example." is a
sentence like those that the model has seen, which it would not be with a hole or a tag in it. After
translation each name has to be there once, or the mask has failed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_server.text.segments import Span

_NAMES = ("Tom", "Boston", "Kevin", "Denver", "Linda", "Chicago", "Bob", "Oslo")
"""Of people and places in turn; short, frequent, and written alike in most languages."""
NAME = _NAMES[0]
"""For who needs to know how much room a mask takes."""


@dataclass(frozen=True)
class Masked:
    """A sentence as the model is given it."""

    source: str
    kept: tuple[Span, ...] = ()
    """What is masked, as spans of the text."""
    _names: tuple[tuple[str, str], ...] = ()
    """Each name, and what it stands for."""

    def restore(self, translation: str) -> str | None:
        """The translation with what was masked; None where a name is lost or repeated."""
        if not self._names:
            return translation
        stands_for = dict(self._names)
        pattern = re.compile(rf"(?<!\w)(?:{'|'.join(stands_for)})(?!\w)")
        if sorted(pattern.findall(translation)) != sorted(stands_for):
            return None
        return pattern.sub(lambda match: stands_for[match.group()], translation)


def mask(text: str, span: Span, kept: Sequence[Span]) -> Masked | None:
    """A sentence with names in place of some of its parts.

    None where there are more of them than names, or where one is the part of a word: a name would
    not be one there.
    """
    sentence = span.of(text)
    if not kept:
        return Masked(sentence)
    free = [name for name in _NAMES if name.lower() not in sentence.lower()]
    if len(kept) > len(free):
        return None
    pieces: list[str] = []
    start = span.start
    for name, part in zip(free, kept, strict=False):
        pieces += [text[start : part.start], name]
        start = part.end
    names = tuple((name, part.of(text)) for name, part in zip(free, kept, strict=False))
    masked = Masked("".join([*pieces, text[start : span.end]]), tuple(kept), names)
    return masked if masked.restore(masked.source) == sentence else None
