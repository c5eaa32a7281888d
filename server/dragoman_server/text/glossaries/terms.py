"""Terms of a glossary in a text: found word by word, the longest first.

A term is found as whole words. What stands for it in the translation is written as the glossary has
it; in capitals where the text has the term in capitals.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_server.text.markup.units import units_of
from dragoman_server.text.protected import addresses
from dragoman_server.text.segments import Span, has_words, meets

_PLURALS = {
    "pt": (
        ("ão", "ões"),
        ("al", "ais"),
        ("vel", "veis"),
        ("el", "éis"),
        ("ol", "óis"),
        ("ul", "uis"),
        ("m", "ns"),
    ),
    "es": (("z", "ces"),),
}
"""Endings of words and of their plurals, by language, which are not those of most words."""
_VOWELS = tuple("aeiouáéíóúâêôãõàäöüy")


@dataclass(frozen=True)
class Entry:
    """A term, and what stands for it."""

    source: str
    target: str
    """What stands for the term in a translation; empty where it stays as the text has it."""
    number: int | None = None
    """Place of the entry in what the client sent; None where it comes from elsewhere."""


@dataclass(frozen=True)
class Term:
    """A place of a text at which a term stands."""

    span: Span
    target: str
    """What is to stand for the term in the translation."""
    entry: Entry
    is_capital: bool = False
    """Whether the text has the term with a capital, and the glossary has it without."""

    @property
    def in_place(self) -> str:
        """What stands for the term where it is in the text."""
        return self.target[:1].upper() + self.target[1:] if self.is_capital else self.target


class EntryError(ValueError):
    """An entry that can't be used; ``number`` is its place in the glossary."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(problem)
        self.number = number


class Glossary:
    """Terms to look for in texts."""

    def __init__(
        self, entries: Sequence[Entry], *, case_sensitive: bool = False, plurals: bool = False
    ) -> None:
        """Raises ``EntryError`` for a term that has no word, or is there already."""
        self._folded = str if case_sensitive else str.casefold
        self._plurals = plurals
        self._by_word: dict[str, list[tuple[tuple[str, ...], Entry]]] = {}
        seen: dict[tuple[str, ...], int] = {}
        for number, entry in enumerate(entries):
            if not has_words(entry.source):
                raise EntryError(number, "has no word")
            words = tuple(self._words(entry.source))
            if words in seen:
                raise EntryError(number, f"is there already, as entry {seen[words]}")
            seen[words] = number
            self._by_word.setdefault(words[0], []).append((words, entry))
        for found in self._by_word.values():
            found.sort(key=lambda each: -len(each[0]))

    def find(self, text: str, language: str = "") -> list[Term]:
        """Return the terms of a text in order; none overlaps another, nor an address.

        ``language`` is the code of what is translated into, by whose rules plurals are made.
        """
        units = units_of(text, Span(0, len(text)))
        words = [self._folded(unit.of(text)) for unit in units]
        whole = addresses(text)
        terms: list[Term] = []
        at = 0
        while at < len(units):
            term = self._at(text, units, words, at, language)
            if term is None or meets(whole, term[1].span):
                at += 1
                continue
            count, found = term
            terms.append(found)
            at += count
        return terms

    def _words(self, text: str) -> list[str]:
        return [self._folded(unit.of(text)) for unit in units_of(text, Span(0, len(text)))]

    def _at(
        self, text: str, units: Sequence[Span], words: Sequence[str], at: int, language: str
    ) -> tuple[int, Term] | None:
        """Return the longest term at a word, and how many words it has."""
        first = words[at]
        keys = [first, *(_singulars(first) if self._plurals else ())]
        found = [each for key in keys for each in self._by_word.get(key, ())]
        for own, entry in sorted(found, key=lambda each: -len(each[0])):
            here = words[at : at + len(own)]
            is_plural = False
            if tuple(here) != own:
                is_plural = (
                    self._plurals
                    and len(here) == len(own)
                    and tuple(here[:-1]) == own[:-1]
                    and own[-1] in _singulars(here[-1])
                )
                if not is_plural:
                    continue
            span = Span(units[at].start, units[at + len(own) - 1].end)
            if "\n" in span.of(text):
                continue
            found_text = span.of(text)
            is_capital = found_text[0].isupper() and entry.source[0].islower()
            target = _written(entry, found_text, language if is_plural else None)
            return len(own), Term(span, target, entry, is_capital)
        return None


def _singulars(word: str) -> list[str]:
    """Return what a word may be the plural of."""
    found = [word[: -len(ending)] for ending in ("s", "es") if word.endswith(ending)]
    if word.endswith("ies"):
        found.append(f"{word[:-3]}y")
    return [each for each in found if len(each) > 1]


def _written(entry: Entry, found: str, plural: str | None) -> str:
    """Return what stands for a term; ``plural`` is the language of what stands for its plural."""
    if not entry.target:
        return found
    target = entry.target if plural is None else _plural(entry.target, plural)
    is_loud = len(found) > 1 and found.isupper() and not entry.source.isupper()
    return target.upper() if is_loud else target


def _plural(target: str, language: str) -> str:
    for ending, plural in _PLURALS.get(language, ()):
        if target.endswith(ending):
            return target.removesuffix(ending) + plural
    return target + ("s" if target.lower().endswith(_VOWELS) else "es")
