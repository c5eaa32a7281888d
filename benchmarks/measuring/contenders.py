"""Engines that are compared: each at its fastest setting, in turns.

They take turns, round by round, because a machine's speed drifts.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from measuring.names import IN_PROCESS, SERVED
from subjects.subject import Text

OURS = (SERVED, IN_PROCESS)
"""Names of our engines."""

Answers = list[str] | list[tuple[int, ...]]
"""Translations of a list of texts, as text or as ids."""
Run = Callable[[Sequence[Text], int], Answers]
"""Translates texts, as many at a time as the number says."""

SENTENCES = {1: 16, 8: 32, 32: 96, 64: 192}
"""Sentences of a round in greedy search, by how many are translated at a time."""
_FINALISTS = 3
"""Settings of an engine that are timed again after each was timed once."""


def add_round_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how often engines are timed."""
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="rounds in which engines take turns to be timed (default: %(default)s)",
    )
    parser.add_argument(
        "--tries",
        type=int,
        default=2,
        help="times that the fastest settings of an engine are tried again, to find the best "
        "(default: %(default)s)",
    )


def rows_for(beam: int) -> int:
    """Return the rows of an engine: beyond 128 it is no faster, and each row takes memory."""
    return 64 if beam == 1 else 128


def sentences_for(beam: int, concurrent: int) -> int:
    """Return how many sentences a round has, if so many are translated at a time."""
    count = SENTENCES.get(concurrent, 2 * concurrent)
    return count if beam == 1 else max(concurrent, count // 2)


@dataclass(frozen=True)
class Contender:
    """One engine with one setting."""

    engine: str
    setting: str
    run: Run
    share: float = 1.0
    """Share of the texts that the engine is given: below 1 where all would take minutes."""

    def texts(self, texts: Sequence[Text], concurrent: int) -> Sequence[Text]:
        """Return the engine's share of the texts: whole batches, and at least one."""
        batches = max(1, round(len(texts) * self.share / concurrent))
        return texts[: batches * concurrent]

    def rate(self, texts: Sequence[Text], concurrent: int) -> float:
        """Return how many sentences a second are translated."""
        mine = self.texts(texts, concurrent)
        began = time.perf_counter()
        self.run(mine, concurrent)
        return len(mine) / (time.perf_counter() - began)


@dataclass
class Figures:
    """What was measured of one engine."""

    engine: str
    setting: str
    rates: list[float] = field(default_factory=list)
    """Sentences a second, round by round."""

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
    """Return each engine with its fastest setting for so many texts at a time."""
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
        rates = {c.setting: [c.rate(texts, concurrent)] for c in settings}
        finalists = sorted(settings, key=lambda c: -rates[c.setting][0])[:_FINALISTS]
        for _ in range(tries):
            for contender in finalists:
                rates[contender.setting].append(contender.rate(texts, concurrent))
        # Not by its best try: threads that wait for each other are fast when they are lucky.
        chosen.append(max(finalists, key=lambda c: statistics.median(rates[c.setting])))
    return chosen


def in_turns(
    chosen: Sequence[Contender], texts: Sequence[Text], concurrent: int, rounds: int
) -> dict[str, Figures]:
    """Time the engines in turns, and return the figures of each by its name."""
    found = {c.engine: Figures(c.engine, c.setting) for c in chosen}
    for number in range(rounds):
        # Each goes first once in a while: what ran before leaves caches and heat behind.
        at = number % len(chosen)
        for contender in [*chosen[at:], *chosen[:at]]:
            found[contender.engine].rates.append(contender.rate(texts, concurrent))
    return found


def ratios(ours: Figures, theirs: Figures) -> list[float]:
    """Return the ratios of rates round by round, so that what slows both down does not count."""
    return [a / b for a, b in zip(ours.rates, theirs.rates, strict=True)]


def spread(values: list[float]) -> dict[str, float]:
    """Return median, lowest and highest."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def ratios_to_peers(figures: dict[str, Figures]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the spread of ratios, by peer and by which of ours is divided by it."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, theirs in figures.items():
        if name not in OURS:
            found[name] = {mine: spread(ratios(figures[mine], theirs)) for mine in OURS}
    found[IN_PROCESS] = {SERVED: spread(ratios(figures[SERVED], figures[IN_PROCESS]))}
    return found


def show_engines(entry: dict[str, Any]) -> None:
    """Print the rates of an entry's engines, and those of ours divided by them."""
    for name, one in entry["engines"].items():
        print(
            f"  {name:20s} {one['sentences_per_second']:8.2f} sentences/s "
            f"({one['least']:.2f}–{one['most']:.2f})  [{one['setting']}]",
            *(
                f" {'served' if mine == SERVED else 'in process'} {ratio['median']:.2f}x "
                f"({ratio['least']:.2f}–{ratio['most']:.2f})"
                for mine, ratio in entry["ratios"].get(name, {}).items()
            ),
        )


def share_alike(ours: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]]) -> float:
    """Return the share of tokens that two engines chose alike, sentence by sentence."""
    pairs = list(zip(ours, theirs, strict=True))
    same = sum(a == b for one, other in pairs for a, b in zip(one, other, strict=False))
    return same / sum(max(len(one), len(other)) for one, other in pairs)
