"""Faults of machine translation, found by rules: text that a model should not learn from.

A teacher model leaves words untranslated, repeats itself, stops early, loses quotation marks, adds
brackets or changes figures. Most such pairs are dropped. Where the right form can be told from the
source, the target is mended instead.
"""

import re
import unicodedata
from collections import Counter
from typing import Literal, NamedTuple

from dragoman_training.data.rules.english_portuguese import (
    has_lost_currency,
    has_lost_time,
    has_stock_phrase,
    mend_english_portuguese,
)
from dragoman_training.data.text.corpus import Pair

Fault = Literal[
    "untranslated",
    "repeated",
    "length",
    "characters",
    "numbers",
    "quotes",
    "brackets",
    "times",
    "currency",
    "made_up",
    "short",
]
"""Why a machine-made pair is dropped, as the report names it."""


class Checked(NamedTuple):
    """What became of a machine-made pair."""

    pair: Pair
    fault: Fault | None
    mended: bool


_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_NUMBER = re.compile(r"\d+(?:[.,: \u00a0\u202f]?\d+)*")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b")
_CURRENCY = re.compile(r"\b(US|R|A|C|HK|NZ) \$ ?(?=\d)")
_QUOTES = '“”„«»"'

_EDGES = ".,;:!?…"
_MAX_REPEATED = 6
"""Most words of a repetition that is looked for."""
_MIN_WORDS = 5
"""Words that a sentence must have before the share of copied words says anything."""
_MAX_COPIED = 0.6
"""Largest share of the target's words that may also stand in the source."""
_MIN_SOURCE_WORDS = 3
"""Words that a source must have: what one or two words mean, a teacher of sentences guesses."""
_RATIO_LOW, _RATIO_HIGH = 0.5, 2.0
"""Bounds of the target's length in characters, as a multiple of the source's."""
_SLACK = 12
"""Characters by which a target may miss those bounds: short text varies more."""


def check_machine_made(pair: Pair, languages: tuple[str, str] = ("", "")) -> Checked:
    """Return the pair, mended where that is possible, and the first fault found in it.

    Some rules are for certain languages only, of the source and of the target.
    """
    mended = Pair(pair.source, _mend(pair))
    is_english_portuguese = tuple(language.partition("-")[0] for language in languages) == (
        "en",
        "pt",
    )
    if is_english_portuguese:
        mended = Pair(pair.source, mend_english_portuguese(mended))
    fault = _fault(mended)
    if fault is None and is_english_portuguese:
        fault = _english_portuguese_fault(mended)
    return Checked(mended, fault, mended.target != pair.target)


def _mend(pair: Pair) -> str:
    target = _CURRENCY.sub(r"\1$ ", pair.target)
    source = pair.source
    is_quoted = source[:1] in _QUOTES and source[-1:] in _QUOTES and _count_quotes(source) == 2
    if is_quoted and len(source) > 2 and _count_quotes(target) == 0:
        target = f"{source[0]}{target}{source[-1]}"
    return target


def _fault(pair: Pair) -> Fault | None:
    source, target = pair
    if len(source.split()) < _MIN_SOURCE_WORDS:
        return "short"
    if not (_RATIO_LOW * len(source) - _SLACK <= len(target) <= _RATIO_HIGH * len(source) + _SLACK):
        return "length"
    if _numbers_differ(source, target):
        return "numbers"
    if _count_quotes(target) < _count_quotes(source) or _count_quotes(target) % 2:
        return "quotes"
    if target.count("(") > source.count("("):
        return "brackets"
    if _repeats(target) and not _repeats(source):
        return "repeated"
    if _is_copied(source, target):
        return "untranslated"
    if _strange(target) - _strange(source):
        return "characters"
    return None


def _english_portuguese_fault(pair: Pair) -> Fault | None:
    if has_lost_time(pair):
        return "times"
    if has_lost_currency(pair):
        return "currency"
    return "made_up" if has_stock_phrase(pair) else None


def _numbers_differ(source: str, target: str) -> bool:
    """Whether a number was lost, changed or made up. An ordinal may become a word, as XXI."""
    ours, theirs = _figures(source), _figures(target)
    if ours == theirs:
        return False
    ordinals = _figures(" ".join(_ORDINAL.findall(source)))
    return bool(theirs - ours) or bool(ours - theirs - ordinals)


def _figures(text: str) -> Counter[str]:
    """The numbers of a text, without separators: they differ between languages."""
    return Counter(re.sub(r"\D", "", number) for number in _NUMBER.findall(text))


def _count_quotes(text: str) -> int:
    return sum(text.count(mark) for mark in _QUOTES)


def _repeats(text: str) -> bool:
    """Whether some words stand three times in a row."""
    words = [word.strip(_EDGES) for word in text.lower().split()]
    for size in range(1, _MAX_REPEATED + 1):
        alike = 0
        for word, later in zip(words, words[size:], strict=False):
            alike = alike + 1 if word == later else 0
            if alike == 2 * size:
                return True
    return False


def _is_copied(source: str, target: str) -> bool:
    words = [word for word in _WORD.findall(target) if word.islower() and len(word) > 1]
    if len(words) < _MIN_WORDS:
        return False
    known = set(_WORD.findall(source))
    return sum(word in known for word in words) > _MAX_COPIED * len(words)


def _strange(text: str) -> set[str]:
    """Characters that Portuguese text has no use for: other scripts, symbols, controls."""
    if text.isascii():
        return set()
    return {c for c in text if ord(c) > 0x24F and unicodedata.category(c)[0] in "LSC"}
