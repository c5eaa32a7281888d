"""Numbers of a text: whether a translation has the same ones, and how its language spells them.

English writes 1,250.50 where Portuguese writes 1.250,50. Two texts have the same numbers where they
have the same values; times, dates and versions are taken as the numbers they are made of.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman_server.text.segments import Span

_DIGITS = re.compile(r"\d+(?:[.,\u00a0\u202f]\d+)*")
_POINT_LANGUAGES = frozenset(
    (
        *("en", "zh", "ja", "ko", "th", "he", "hi", "bn", "ta", "te", "ml", "mr", "gu", "pa", "ur"),
        *("ms", "tl", "sw", "cy", "ga", "mt", "yue", "my", "km", "si", "ne"),
    )
)
"""Languages that write a point before the decimals, by their first subtag."""
_COMMA_LANGUAGES = frozenset(
    (
        *("pt", "es", "fr", "de", "it", "nl", "ca", "gl", "eu", "ro", "pl", "cs", "sk", "sl"),
        *("hr", "bs", "sr", "bg", "mk", "ru", "uk", "be", "hu", "fi", "et", "lv", "lt", "sv"),
        *("nb", "nn", "no", "da", "is", "el", "tr", "az", "id", "vi", "sq", "hy", "ka", "kk"),
        *("uz", "af", "lb"),
    )
)
"""Languages that write a comma before the decimals, by their first subtag."""
_GROUP = 3
"""Digits between two separators of thousands."""


@dataclass(frozen=True)
class Spelling:
    """How a language writes numbers."""

    decimal: str
    """Mark before the decimals."""
    group: str
    """Mark between thousands; a narrow or fixed space is always understood."""


POINT, COMMA = Spelling(".", ","), Spelling(",", ".")


def spelling_of(language: str) -> Spelling | None:
    """Return how a language writes numbers; None where that is not known here."""
    code = re.split(r"[-_]", language, maxsplit=1)[0].lower()
    if code in _POINT_LANGUAGES:
        return POINT
    return COMMA if code in _COMMA_LANGUAGES else None


@dataclass(frozen=True)
class Numbers:
    """Compares and rewrites numbers between two languages."""

    source: Spelling | None
    target: Spelling | None

    def differ(self, source: str, target: str) -> bool:
        """Whether a number of the source is missing in the target, or one was made up."""
        if not any(map(str.isdigit, source)):
            return False  # a number in words may well become one in figures
        if self.source is None or self.target is None:
            return _figures(source) != _figures(target)
        return _values(source, self.source) != _values(target, self.target)

    def corrected(self, source: str, target: str) -> str | None:
        """Return the target with its one wrong number replaced by the one that it lacks.

        None where more is wrong, or where it can't be told which number is to be replaced.
        """
        if self.source is None or self.target is None:
            return None
        ours, theirs = _by_value(source, self.source), _by_value(target, self.target)
        missing = [at for value in ours for at in ours[value][len(theirs.get(value, ())) :]]
        made_up = [at for value in theirs for at in theirs[value][len(ours.get(value, ())) :]]
        if len(missing) != 1 or len(made_up) != 1:
            return None
        (right,), (wrong,) = missing, made_up
        if len(theirs[tuple(_parts(wrong.group(), self.target))]) > 1:
            return None
        return target[: wrong.start()] + self._respell(right.group()) + target[wrong.end() :]

    def respelt(self, text: str, span: Span) -> dict[Span, str]:
        """Return the numbers within a span of a text, each as the target language writes it."""
        return {
            Span(match.start(), match.end()): self._respell(match.group())
            for match in _DIGITS.finditer(text, span.start, span.end)
        }

    def _respell(self, number: str) -> str:
        if self.source is None or self.target is None or self.source == self.target:
            return number
        if _value(number, self.source) is None:
            return number  # a version, an address: not a number in the source's spelling
        swapped = {self.source.decimal: self.target.decimal, self.source.group: self.target.group}
        return "".join(swapped.get(letter, letter) for letter in number)


def _figures(text: str) -> Counter[str]:
    """Return the digits of each number, whatever stands between them."""
    return Counter(re.sub(r"\D", "", number) for number in _DIGITS.findall(text))


def _values(text: str, spelling: Spelling) -> Counter[str]:
    return Counter(value for number in _DIGITS.findall(text) for value in _parts(number, spelling))


def _by_value(text: str, spelling: Spelling) -> dict[tuple[str, ...], list[re.Match[str]]]:
    """Return where the numbers of a text stand, by their value or those of their parts."""
    found: dict[tuple[str, ...], list[re.Match[str]]] = {}
    for match in _DIGITS.finditer(text):
        found.setdefault(tuple(_parts(match.group(), spelling)), []).append(match)
    return found


def _parts(number: str, spelling: Spelling) -> Iterator[str]:
    """Yield the value of a number; of what is not one number, the values of its parts."""
    value = _value(number, spelling)
    if value is not None:
        yield value
        return
    for part in re.findall(r"\d+", number):
        yield _plain(part)


def _value(number: str, spelling: Spelling) -> str | None:
    whole, point, decimals = number.partition(spelling.decimal)
    if not decimals.isdigit() and point:
        return None
    groups = re.split(rf"[{re.escape(spelling.group)}\u00a0\u202f]", whole)
    if len(groups) > 1:
        ordinary = 1 <= len(groups[0]) <= _GROUP and all(len(g) == _GROUP for g in groups[1:])
        if not ordinary:
            return None
    if not all(group.isdigit() for group in groups):
        return None
    digits = _plain("".join(groups))
    return f"{digits}.{decimals}" if point else digits


def _plain(digits: str) -> str:
    return digits.lstrip("0") or "0"
