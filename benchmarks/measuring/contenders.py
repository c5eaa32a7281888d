"""Who is compared, and how: each at its best setting, in turns, because speed drifts."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from subjects.catalogue import Text

Answers = list[str] | list[tuple[int, ...]]
"""Translations, as text or as ids."""
Run = Callable[[Sequence[Text], int], Answers]
"""Translates texts, so many at a time."""

_FINALISTS = 3
"""Settings that are tried again after the first look."""


@dataclass(frozen=True)
class Contender:
    """One engine with one setting."""

    engine: str
    setting: str
    run: Run
    share: float = 1.0
    """Of the texts that it is given: less where it is so slow that all would take minutes."""

    def texts(self, texts: Sequence[Text], concurrent: int) -> Sequence[Text]:
        """Whole batches, and at least one."""
        batches = max(1, round(len(texts) * self.share / concurrent))
        return texts[: batches * concurrent]

    def rate(self, texts: Sequence[Text], concurrent: int) -> float:
        """Sentences a second."""
        mine = self.texts(texts, concurrent)
        began = time.perf_counter()
        self.run(mine, concurrent)
        return len(mine) / (time.perf_counter() - began)


@dataclass
class Figures:
    """Of one engine in all rounds."""

    engine: str
    setting: str
    rates: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    def summary(self) -> dict[str, Any]:
        return {
            "setting": self.setting,
            "sentences_per_second": self.median,
            "least": min(self.rates),
            "most": max(self.rates),
        }


def best_settings(
    contenders: Sequence[Contender], texts: Sequence[Text], concurrent: int, tries: int
) -> list[Contender]:
    """Of each engine the fastest setting, for so many texts at a time."""
    by_engine: dict[str, list[Contender]] = {}
    for contender in contenders:
        by_engine.setdefault(contender.engine, []).append(contender)
    chosen = []
    for settings in by_engine.values():
        if len(settings) == 1:
            settings[0].rate(texts, concurrent)  # warms up
            chosen.append(settings[0])
            continue
        for contender in settings:
            contender.run(contender.texts(texts, concurrent)[:concurrent], concurrent)
        rates = {c.setting: c.rate(texts, concurrent) for c in settings}
        finalists = sorted(settings, key=lambda c: -rates[c.setting])[:_FINALISTS]
        for _ in range(tries):
            for contender in finalists:
                rates[contender.setting] = max(
                    rates[contender.setting], contender.rate(texts, concurrent)
                )
        chosen.append(max(finalists, key=lambda c: rates[c.setting]))
    return chosen


def in_turns(
    chosen: Sequence[Contender], texts: Sequence[Text], concurrent: int, rounds: int
) -> dict[str, Figures]:
    found = {c.engine: Figures(c.engine, c.setting) for c in chosen}
    for number in range(rounds):
        # Each goes first once in a while: what ran before leaves caches and heat behind.
        at = number % len(chosen)
        for contender in [*chosen[at:], *chosen[:at]]:
            found[contender.engine].rates.append(contender.rate(texts, concurrent))
    return found


def ratios(ours: Figures, theirs: Figures) -> list[float]:
    """Round by round, so that what slows both down does not count."""
    return [a / b for a, b in zip(ours.rates, theirs.rates, strict=True)]


def spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}
