"""Single words with their translations, found in sentence pairs.

People look words up, and sentences alone do not teach a model to translate a word: it makes a
sentence of it. Dictionaries often name rare senses before common ones. Here the translation of a
word is the one that it occurs with most, by the Dice coefficient over short sentence pairs:

    dice(s, t) = 2 · pairs with s and t / (pairs with s + pairs with t)
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import numpy.typing as npt

from dragoman_training.config.data_settings import WordSettings
from dragoman_training.data.text.corpus import Pair

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_MIN_TOGETHER = 3
"""Pairs that must have both a word and its translation."""
_CHUNK = 4_000_000
"""Pairs of words that are counted at a time: bounds memory."""

_Codes = npt.NDArray[np.int64]


def find_word_pairs(read: Callable[[], Iterable[Pair]], settings: WordSettings) -> list[Pair]:
    """Return words with their translations, the most frequent words first.

    The pairs are read twice: once to find the words, once to count which occur together.
    """
    sources, targets = _Words(), _Words()
    for pair in _short(read(), settings):
        sources.add(pair.source)
        targets.add(pair.target)
    known = sources.frequent(settings.min_sentences, settings.count)
    translations = targets.frequent(_MIN_TOGETHER)
    if not known or not translations:
        return []
    codes, counts = _count_together(_short(read(), settings), known, translations)
    source, target = np.divmod(codes, len(translations))
    source_counts = np.array([sources.counts[word] for word in known])
    target_counts = np.array([targets.counts[word] for word in translations])
    dice = 2 * counts / (source_counts[source] + target_counts[target])
    good = (dice >= settings.min_dice) & (counts >= _MIN_TOGETHER)
    # Of each source word the best comes first: sorted by word, then by falling coefficient.
    order = np.lexsort((-dice[good], source[good]))
    words, first = np.unique(source[good][order], return_index=True)
    best = target[good][order][first]
    source_spellings, target_spellings = sources.usual_spellings(), targets.usual_spellings()
    known_words, known_translations = list(known), list(translations)
    found = []
    for word, translation in zip(words.tolist(), best.tolist(), strict=True):
        left, right = known_words[word], known_translations[translation]
        found.append(Pair(source_spellings.get(left, left), target_spellings.get(right, right)))
    return found


@dataclass
class _Words:
    """The words of one side: how many sentences have each, and how it is spelt."""

    counts: Counter[str] = field(default_factory=Counter)
    """Sentences that have a word, by the word in lower case."""
    spellings: Counter[str] = field(default_factory=Counter)
    """Occurrences that do not begin a sentence, as they are spelt: there, a capital means a name.
    """

    def add(self, sentence: str) -> None:
        words = _WORD.findall(sentence)
        # In the order of the sentence: that of a set differs from process to process.
        self.counts.update(dict.fromkeys(map(str.lower, words), 1))
        self.spellings.update(words[1:])

    def frequent(self, min_count: int, most: int | None = None) -> dict[str, int]:
        """Return the frequent words, each with its rank."""
        ranked = (word for word, count in self.counts.most_common(most) if count >= min_count)
        return {word: rank for rank, word in enumerate(ranked)}

    def usual_spellings(self) -> dict[str, str]:
        """Return how each word is spelt most often, where it was seen inside of a sentence."""
        usual: dict[str, str] = {}
        for spelling, _ in self.spellings.most_common():
            usual.setdefault(spelling.lower(), spelling)
        return usual


def _short(pairs: Iterable[Pair], settings: WordSettings) -> Iterator[Pair]:
    short = (pair for pair in pairs if len(pair.source.split()) <= settings.max_words)
    return islice(short, settings.max_pairs)


def _count_together(
    pairs: Iterable[Pair], known: dict[str, int], translations: dict[str, int]
) -> tuple[_Codes, _Codes]:
    """Return the pairs of words that occur together as codes, and how many sentences have each.

    The code of a pair of words is its place in the table of all such pairs.
    """
    codes: _Codes = np.zeros(0, np.int64)
    counts: _Codes = np.zeros(0, np.int64)
    pending: list[int] = []

    def merge() -> None:
        nonlocal codes, counts
        new, times = np.unique(np.array(pending, np.int64), return_counts=True)
        every, place = np.unique(np.concatenate((codes, new)), return_inverse=True)
        counts = np.bincount(place, np.concatenate((counts, times)), len(every)).astype(np.int64)
        codes = every
        pending.clear()

    for pair in pairs:
        sources = {known[w] for w in map(str.lower, _WORD.findall(pair.source)) if w in known}
        targets = {
            translations[w] for w in map(str.lower, _WORD.findall(pair.target)) if w in translations
        }
        pending += [s * len(translations) + t for s in sources for t in targets]
        if len(pending) >= _CHUNK:
            merge()
    merge()
    return codes, counts
