"""A look at what training sees, without training: examples drawn by the recipe's own rules."""

import random
from dataclasses import asdict, dataclass
from typing import NamedTuple

from dragoman_training.config.recipe import Recipe
from dragoman_training.data.rules.variants import VARIANTS
from dragoman_training.data.text.corpus import Pair
from dragoman_training.data.text.examples import CorpusReport, Watch
from dragoman_training.data.text.sources import WORDS, corpus_readers, word_readers
from dragoman_training.errors import RecipeError

_CHUNK = 4096


class Drawn(NamedTuple):
    """An example, and where it comes from."""

    pair: Pair
    corpus: str
    label: str
    variant: str


@dataclass(frozen=True)
class Preview:
    """Examples in the order they were drawn, and what the filters did with each corpus."""

    examples: list[Drawn]
    reports: list[CorpusReport]

    def summary(self) -> list[str]:
        """Return a line for each corpus, for people. Tokens are not known yet, so pairs that are
        too long are still among them."""
        lines = []
        for report in self.reports:
            dropped = [f"{n:,} {reason}" for reason, n in asdict(report.pairs).items() if n]
            variants = [f"{count:,} {kind}" for kind, count in report.variants.items()]
            lines.append(
                f"{report.name}: {report.epoch_examples:,} examples in an epoch; "
                f"dropped: {', '.join(dropped) or 'none'}; mended: {report.mended:,}; "
                f"variants: {', '.join(variants) or 'none'}"
            )
        return lines


def draw_examples(
    recipe: Recipe,
    count: int,
    watch: Watch,
    *,
    corpus: str | None = None,
    variant: str | None = None,
) -> Preview:
    """Read the corpora of a recipe, and draw examples of an epoch at random, by their weights."""
    if recipe.toy:
        raise RecipeError("a toy recipe makes up its text: there is nothing to show")
    readers = corpus_readers(recipe)
    names = [reader.settings.name for reader in readers]
    if recipe.data.words.weight:
        names.append(WORDS)
    if corpus is not None and corpus not in names:
        raise RecipeError(f"--corpus is {corpus!r}: it must be one of {', '.join(names)}")
    if variant is not None and variant not in VARIANTS:
        raise RecipeError(f"--variant is {variant!r}: it must be one of {', '.join(VARIANTS)}")
    for reader in readers:
        if corpus in (None, WORDS, reader.settings.name):  # words are found in all of them
            reader.scan(watch)
    if corpus in (None, WORDS):
        readers += word_readers(recipe, readers, watch)
    rng = random.Random(recipe.seed)  # noqa: S311
    kept: list[tuple[float, Drawn]] = []
    reports = []
    for reader in readers:
        settings = reader.settings
        if corpus is not None and settings.name != corpus:
            continue
        report = CorpusReport(settings.name)
        drawn = 0.0
        for number, example in enumerate(reader.examples(report)):
            weight = settings.weight_of(example.label)
            drawn += weight
            if example.variant:
                report.count_variant(example.variant)
            if variant is None or example.variant == variant:
                # The largest keys of this kind are a sample by weight (Efraimidis, Spirakis 2006).
                key = rng.random() ** (1 / weight)
                kept.append((key, Drawn(example.pair, settings.name, *example[1:])))
            if number % _CHUNK == 0:
                kept = sorted(kept, key=_key, reverse=True)[:count]
                watch(f"drawing from {settings.name}", number, None)
        report.epoch_examples = round(drawn)
        reports.append(report)
    kept = sorted(kept, key=_key, reverse=True)[:count]
    return Preview([example for _, example in kept], reports)


def _key(item: tuple[float, Drawn]) -> float:
    return item[0]
