"""Which language a text is in, among a few that are possible.

Scripts decide first: what is written in Greek letters is Greek, however short it is. Among the
languages of one script py3langid decides, a naive Bayes classifier over n-grams of bytes.
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import regex

from dragoman_server.text.languages import Tag, parse

_MAX_LETTERS = 2000
"""Letters at the beginning of a text that are looked at."""
_MAX_DETECTORS = 64
"""Most sets of languages for which a detector is kept: clients may use different models."""
_LETTER = regex.compile(r"\p{L}")
_KANA = regex.compile(r"[\p{Script=Hira}\p{Script=Kana}]")
_MIXED_SCRIPTS = {
    "Jpan": r"[\p{Script=Hira}\p{Script=Kana}\p{Script=Hani}]",
    "Hans": r"\p{Script=Hani}",
    "Hant": r"\p{Script=Hani}",
    "Kore": r"[\p{Script=Hang}\p{Script=Hani}]",
}
"""Letters of what langcodes counts as one script and Unicode does not."""
_CHINESE = {"Hans", "Hant"}


@dataclass(frozen=True)
class Ranked:
    """A language that a text may be in."""

    language: str
    """The language's tag, as it was given to the detector."""
    confidence: float
    """How sure it is, from 0 to 1; those of all languages of a detector sum to 1 at most."""


class Detector:
    """Tells some languages apart. The first one that needs py3langid takes a second to load it."""

    def __init__(self, languages: Iterable[str]) -> None:
        """``languages`` are tags. Of several for one language, pt and pt-BR, the first counts."""
        self._tags: dict[str, tuple[str, Tag]] = {}
        for name in languages:
            tag = parse(name)
            self._tags.setdefault(tag.common, (name, tag))

    def rank(self, text: str) -> list[Ranked]:
        """Return the languages, the most likely first; all with 0 where there is no letter."""
        text = text[:_MAX_LETTERS]
        likely, share = self._of_script(text)
        if not share:
            return [Ranked(name, 0.0) for name, _ in self._tags.values()]
        scores = dict.fromkeys(self._tags, 0.0)
        for code, score in _scores(tuple(likely), text):
            scores[code] = share * score
        ranked = [Ranked(name, scores[code]) for code, (name, _) in self._tags.items()]
        return sorted(ranked, key=lambda each: -each.confidence)

    def _of_script(self, text: str) -> tuple[list[str], float]:
        """Return the languages of the script that most letters are of, and the share of those."""
        letters = len(_LETTER.findall(text))
        if not letters:
            return [], 0.0
        has_kana = _KANA.search(text) is not None
        shares = {
            code: 0.0
            if has_kana and tag.likely_script in _CHINESE
            else len(_letters_of(tag.likely_script).findall(text)) / letters
            for code, (_, tag) in self._tags.items()
        }
        most = max(shares.values())
        if not most:
            return list(self._tags), 1.0  # a script that none of them is known to be written in
        return [code for code, share in shares.items() if share == most], most


def detector(languages: Sequence[str]) -> Detector:
    """Return a detector of these languages, one for all who ask for the same."""
    return _detector(tuple(languages))


def warm_up() -> None:
    """Load the model of py3langid, so that nobody has to wait for it later."""
    _labels()


@lru_cache(maxsize=_MAX_DETECTORS)
def _detector(languages: tuple[str, ...]) -> Detector:
    return Detector(languages)


def _scores(codes: tuple[str, ...], text: str) -> list[tuple[str, float]]:
    """Return how likely each of some languages of one script is; together 1."""
    if len(codes) == 1:
        return [(codes[0], 1.0)]
    known = frozenset(codes) & _labels()
    if not known:
        return [(code, 1.0 / len(codes)) for code in codes]
    return [(str(code), float(score)) for code, score in _classifier(known).rank(text)]


@lru_cache(maxsize=_MAX_DETECTORS)
def _classifier(codes: frozenset[str]) -> Any:
    """Return py3langid's classifier of some of its languages."""
    restricted = copy.copy(_everything())
    restricted.set_languages(codes)
    return restricted


@cache
def _everything() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # only where it is needed

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def _labels() -> frozenset[str]:
    return frozenset(_everything().labels)


@cache  # of scripts that languages of models are written in
def _letters_of(script: str) -> "regex.Pattern[str]":
    try:
        return regex.compile(_MIXED_SCRIPTS.get(script) or rf"\p{{Script={script}}}")
    except regex.error:  # none is known, or Unicode has no letters of it
        return regex.compile(r"(?!)")
