"""Capitals: undone before a sentence is translated, and written again in its translation.

Models have read few sentences in capitals or in Title Case, and spell such words letter by letter.
What a word usually looks like is known to the model's vocabulary: it has fewer or more probable
pieces for "Paris" than for "paris", and for "stop" than for "STOP".
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

Cost = Callable[[str], tuple[int, float]]
"""How unusual a spelling is to a vocabulary: the number of its pieces, then their improbability."""

_WORD = re.compile(r"(?<![\w@#&])[^\W\d_]+(?:['’][^\W\d_]+)*(?!\w)")
"""Words of letters alone: what has digits or underscores in it is a name of something."""
_MIN_TITLE_WORDS = 4
"""Fewer words that all begin with a capital may well be a name."""
_SMALL_WORD = 3
"""Most letters of a word that Title Case may leave in small letters."""


@dataclass(frozen=True)
class Recased:
    """A sentence without the capitals that it was written in."""

    text: str
    in_capitals: bool
    """Whether all of it was in capitals, and its translation has to be."""


def recase(sentence: str, cost: Cost, masks: Collection[str] = ()) -> Recased | None:
    """Return a sentence in capitals or in Title Case as it would usually be written.

    Masks stay as they are. None where the sentence is in neither, or is usually written so.
    """
    words = [word for word in _WORD.finditer(sentence) if word.group() not in masks]
    spelt = [word.group() for word in words]
    if _is_in_capitals(spelt):
        usual = _without_capitals(spelt, cost)
        if words and not sentence[: words[0].start()].strip():
            usual[0] = usual[0][:1].upper() + usual[0][1:]
        changed = usual != spelt
        return Recased(_with(sentence, words, usual), in_capitals=True) if changed else None
    if _is_title(spelt):
        usual = _without_title(sentence, words, cost)
        changed = usual != spelt
        return Recased(_with(sentence, words, usual), in_capitals=False) if changed else None
    return None


def _is_in_capitals(words: Sequence[str]) -> bool:
    """Whether all words are in capitals, and it is not just an abbreviation."""
    return all(word.isupper() for word in words) and any(len(word) > 2 for word in words)


def _is_title(words: Sequence[str]) -> bool:
    if len(words) < _MIN_TITLE_WORDS:
        return False
    capitals = sum(word[:1].isupper() for word in words)
    return capitals >= _MIN_TITLE_WORDS and all(
        word[:1].isupper() or len(word) <= _SMALL_WORD for word in words
    )


def _without_capitals(words: Sequence[str], cost: Cost) -> list[str]:
    """Return each word as it is usually written."""
    return [
        min((word.lower(), word[:1] + word[1:].lower(), word), key=cost)
        if word.lower().upper() == word  # a few letters do not come back from small ones
        else word
        for word in words
    ]


def _without_title(sentence: str, words: Sequence[re.Match[str]], cost: Cost) -> list[str]:
    """Return the words with small letters, but for names and the words beside them.

    "New" and "City" are usually not names; in "New York City" they are.
    """
    spelt = [word.group() for word in words]
    # The first word has its capital anyway.
    is_name = [
        each[:1].isupper() and (not each.istitle() or cost(each) < cost(each.lower()))
        for each in spelt[1:]
    ]
    usual = spelt[:1]
    for place, each in enumerate(spelt[1:]):
        beside = [
            is_name[other]
            for other in (place - 1, place + 1)
            if 0 <= other < len(is_name) and _are_neighbours(sentence, words, place, other)
        ]
        usual.append(each if is_name[place] or any(beside) else each.lower())
    return usual


def _are_neighbours(sentence: str, words: Sequence[re.Match[str]], one: int, other: int) -> bool:
    """Whether only a space is between two words, which are counted from the second word on."""
    first, second = sorted((one + 1, other + 1))
    return sentence[words[first].end() : words[second].start()] == " "


def _with(sentence: str, words: Sequence[re.Match[str]], usual: Sequence[str]) -> str:
    pieces: list[str] = []
    done = 0
    for word, spelling in zip(words, usual, strict=True):
        pieces += [sentence[done : word.start()], spelling]
        done = word.end()
    return "".join([*pieces, sentence[done:]])
