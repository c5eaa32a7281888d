"""Parallel text that is made up: for trying things out, where no corpus is at hand.

The task "reverse" has sentences of single letters; their translation is the same letters
backwards. No word-by-word rule does that: the model must learn to look at the right place of the
source, which makes its cross-attention a pleasure to see.
"""

import random
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dragoman_training.config.checks import at_least, at_most, literals
from dragoman_training.data.text.corpus import ParallelText

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, kw_only=True)
class ToySettings:
    task: Literal["reverse"] = "reverse"
    """What a translation is: the letters of the source backwards."""
    letters: int = 20
    """Size of the alphabet."""
    min_length: int = 4
    """Fewest letters of a sentence."""
    max_length: int = 12
    """Most letters of a sentence."""
    train: int = 20_000
    """Pairs to train on; no pair is in two of the three splits."""
    valid: int = 500
    """Pairs to validate with."""
    test: int = 1000
    """Pairs to test with."""

    def __post_init__(self) -> None:
        literals(self)
        at_least(2, "letters", self.letters)
        at_least(1, "min_length", self.min_length)
        at_least(self.min_length, "max_length", self.max_length)
        for name in SPLITS:
            at_least(1, name, getattr(self, name))
        at_most(len(string.ascii_lowercase), "letters", self.letters)
        wanted = self.train + self.valid + self.test
        if self.letters**self.max_length < 2 * wanted:
            raise ValueError(
                f"letters is {self.letters} and max_length is {self.max_length}: "
                f"too few sentences are possible for {wanted} different ones"
            )


def write_toy(settings: ToySettings, seed: int, directory: Path) -> None:
    """Write ``train``, ``valid`` and ``test``, each as a source and a target file."""
    directory.mkdir()
    rng = random.Random(seed)
    alphabet = string.ascii_lowercase[: settings.letters]
    seen: set[str] = set()
    for split in SPLITS:
        text = toy_text(directory, split)
        with text.sources[0].open("w") as sources, text.targets[0].open("w") as targets:
            missing = getattr(settings, split)
            while missing:
                length = rng.randint(settings.min_length, settings.max_length)
                letters = rng.choices(alphabet, k=length)
                source = " ".join(letters)
                if source in seen:
                    continue
                seen.add(source)
                sources.write(source + "\n")
                targets.write(" ".join(reversed(letters)) + "\n")
                missing -= 1


def toy_text(directory: Path, split: str) -> ParallelText:
    return ParallelText((directory / f"{split}.source",), (directory / f"{split}.target",))
