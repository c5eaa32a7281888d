"""Faults that a translation shows by itself: empty, looping, or with other numbers.

Small models, rare input and unlucky searches make all of them. They are found here from the text
alone, so that the rules hold for every model; whoever translates decides what to do about them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from dragoman_server.text.numbers import Numbers, spelling_of
from dragoman_server.text.segments import has_words


class Fault(Enum):
    """What is wrong with a translation."""

    EMPTY = "empty"
    """The source has letters, and the translation has none."""
    LOOP = "loop"
    """The translation repeats itself where the source does not."""
    NUMBERS = "numbers"
    """The translation has other numbers than the source."""


_REPEATS = 3
"""How often the same words in a row make a loop."""
_MAX_LOOP_WORDS = 8
"""Most words of a loop."""
_STUTTER = re.compile(r"(\D{1,4}?)\1{5,}")
"""A few letters six times in a row, as in IIIIII."""
_EDGES = ".,;:!?…\"'“”()"


@dataclass(frozen=True)
class Examiner:
    """Finds the faults of translations between two languages."""

    numbers: Numbers

    def fault(self, source: str, target: str) -> Fault | None:
        """Return the worst fault of a translation, or None."""
        if has_words(source) and not has_words(target):
            return Fault.EMPTY
        if is_loop(target, source):
            return Fault.LOOP
        if self.numbers.differ(source, target):
            return Fault.NUMBERS
        return None


def examiner_for(source_language: str, target_language: str) -> Examiner:
    """Return the examiner of translations between two languages."""
    return Examiner(Numbers(spelling_of(source_language), spelling_of(target_language)))


def is_loop(target: str, source: str) -> bool:
    """Whether a translation repeats itself, and its source does not."""
    return _loop_start(target) is not None and _loop_start(source) is None


def cut_loop(text: str) -> str:
    """Return a text up to the end of what it then repeats."""
    start = _loop_start(text)
    return text if start is None else text[:start].rstrip()


def _loop_start(text: str) -> int | None:
    """Return where the second of three or more repetitions begins, in code points."""
    found = [start for start in (_repeated_words(text), _stutter(text)) if start is not None]
    return min(found, default=None)


def _repeated_words(text: str) -> int | None:
    words = [word.strip(_EDGES).lower() for word in text.split()]
    if len(words) - len({*words}) < _REPEATS - 1:  # as of most translations
        return None
    for size in range(1, min(_MAX_LOOP_WORDS, len(words) // _REPEATS) + 1):
        first = _run(words, size)
        if first is not None:
            return list(re.finditer(r"\S+", text))[first + size].start()
    return None


def _run(words: Sequence[str], size: int) -> int | None:
    """Return the first word of a run of so many words, repeated."""
    alike = 0
    for place in range(len(words) - size):
        alike = alike + 1 if words[place] and words[place] == words[place + size] else 0
        if alike == (_REPEATS - 1) * size:
            return place + 1 - alike
    return None


def _stutter(text: str) -> int | None:
    for match in _STUTTER.finditer(text):
        if any(letter.isalpha() for letter in match.group(1)):
            return match.start() + len(match.group(1))
    return None
