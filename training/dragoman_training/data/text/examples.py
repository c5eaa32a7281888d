"""What training sees of a corpus, as text: its pairs after the filters, and their variants.

Everything is decided from the seed and the line, so that reading twice gives the same examples.
"""

import random
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman_training.config.data_settings import CorpusSettings
from dragoman_training.data.rules.machine_text import check_machine_made
from dragoman_training.data.rules.variants import variants_of
from dragoman_training.data.text.corpus import Pair
from dragoman_training.data.text.filters import DuplicateFinder, FilterReport, is_empty

Watch = Callable[[str, int, int | None], None]
"""Told of the stage, how much of it is done, and of how much where that is known."""

_CHUNK = 4096
"""Lines between two reports of progress."""


class Example(NamedTuple):
    """A pair to train on, and where it comes from."""

    pair: Pair
    label: str
    variant: str
    """How it was made of a pair of the corpus; empty for the pair itself."""


@dataclass
class CorpusReport:
    """What became of a corpus, and what an epoch has of it."""

    name: str
    pairs: FilterReport = field(default_factory=FilterReport)
    mended: int = 0
    """Pairs whose machine-made target was corrected by rule."""
    variants: dict[str, int] = field(default_factory=dict)
    """Examples that were made of other pairs, by kind."""
    labels: dict[str, int] = field(default_factory=dict)
    """Pairs that were kept, by label."""
    epoch_examples: int = 0
    epoch_target_tokens: int = 0

    def count_variant(self, kind: str) -> None:
        self.variants[kind] = self.variants.get(kind, 0) + 1

    def count_label(self, label: str) -> None:
        self.labels[label] = self.labels.get(label, 0) + 1


class CorpusReader:
    """One corpus of a recipe: reads it, as often as needed, always with the same result."""

    def __init__(
        self,
        settings: CorpusSettings,
        text: Iterable[tuple[Pair, str]],
        seed: int,
        languages: tuple[str, str] = ("", ""),
    ) -> None:
        """``text`` has the pairs with their labels, and can be read several times."""
        self.settings = settings
        self.text = text
        self._seed = seed
        self._languages = languages
        self._repeated: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)

    @property
    def lines(self) -> int:
        """Lines of the corpus; known when it was scanned."""
        return len(self._repeated)

    def scan(self, watch: Watch) -> None:
        """Read everything once, which finds duplicates and what is wrong with the files."""
        # A pair whose label has the weight 0 is not there, so that no other one repeats it.
        is_drawn = bytearray()
        with tempfile.TemporaryFile() as hashes:
            finder = DuplicateFinder(hashes)
            for pair, label in self.text:
                is_drawn.append(self.settings.weight_of(label) > 0)
                if is_drawn[-1]:
                    finder.add(pair)
                if len(is_drawn) % _CHUNK == 0:
                    watch(f"reading {self.settings.name}", len(is_drawn), None)
            watch(f"reading {self.settings.name}", len(is_drawn), len(is_drawn))
            self._repeated = np.zeros(len(is_drawn), np.bool_)
            if self.settings.remove_duplicates:
                self._repeated[np.frombuffer(is_drawn, np.bool_)] = finder.find()

    def examples(self, report: CorpusReport, share: float = 1.0) -> Iterator[Example]:
        """Read the examples. With a share below 1, only of so many lines, drawn at random."""
        for example, rng in self._kept(report, share):
            yield example
            for kind, variant in variants_of(example.pair, self.settings.variants, rng):
                yield Example(variant, example.label, kind)

    def pairs(self, max_words: int | None = None) -> Iterator[Pair]:
        """Read the pairs that pass the filters, without variants.

        With ``max_words``, only those whose source has no more words: the others take no time.
        """
        ignored = CorpusReport(self.settings.name)
        return (example.pair for example, _ in self._kept(ignored, 1.0, max_words))

    def _kept(
        self, report: CorpusReport, share: float, max_words: int | None = None
    ) -> Iterator[tuple[Example, random.Random]]:
        """Read the pairs that pass the filters, each with what its variants are drawn by."""
        settings = self.settings
        for number, (pair, label) in enumerate(self.text):
            if max_words is not None and len(pair.source.split()) > max_words:
                continue
            rng = random.Random(f"{self._seed} {settings.name} {number}")  # noqa: S311
            if rng.random() >= share:
                continue
            if settings.weight_of(label) == 0:
                report.pairs.weightless += 1
                continue
            if is_empty(pair):
                report.pairs.empty += 1
                continue
            if self._repeated[number]:
                report.pairs.duplicate += 1
                continue
            pair = Pair(pair.source.strip(), pair.target.strip())
            if settings.machine_made:
                pair, fault, mended = check_machine_made(pair, self._languages)
                if fault is not None:
                    report.pairs.count(fault)
                    continue
                report.mended += mended
            yield Example(pair, label, ""), rng
