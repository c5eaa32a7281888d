"""The text that an export is given: to measure on, to calibrate with, to learn a shortlist from."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from dragoman_export.errors import ExportError
from dragoman_export.lexicon import LexiconSettings, shortlist_from
from dragoman_export.progress import Watch
from dragoman_export.source import Origin
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.bundle.shortlist import Shortlist

_BATCH_PAIRS = 1000
"""Sentence pairs that are tokenized at a time."""
CALIBRATION = 300
"""Sentences that the scales of int8 are found on."""


@dataclass(frozen=True)
class ParallelSample:
    """Text to measure quality on, and other text to find the scales of int8 on."""

    sources: Sequence[str]
    references: Sequence[str]
    calibration: Sequence[str] = ()
    """Where there is none, the sources serve for both."""
    golden: Sequence[str] = ()
    """Sentences for the golden decodings, where it should not be the sources."""


@dataclass(frozen=True)
class LexiconText:
    """Parallel text to learn a shortlist from."""

    pairs: Iterable[tuple[str, str]]
    settings: LexiconSettings


def that_fits(origin: Origin, sample: ParallelSample) -> ParallelSample:
    """The sentences that have text and that the model can take."""

    def fits(text: str) -> bool:
        (ids,) = origin.encode([text])
        return bool(text.strip()) and 0 < len(ids) <= origin.max_source_tokens

    pairs = [p for p in zip(sample.sources, sample.references, strict=True) if fits(p[0])]
    if not pairs:
        raise ExportError("the text to measure on has no sentence that the model can take")
    sources, references = zip(*pairs, strict=True)
    calibration, golden = (
        [t for t in texts if fits(t)] for texts in (sample.calibration, sample.golden)
    )
    return ParallelSample(sources, references, calibration, golden)


def calibration_ids(origin: Origin, sample: ParallelSample | None) -> list[list[int]]:
    """Sentences to find scales on: spread over the text."""
    texts = [] if sample is None else list(sample.calibration or sample.sources)
    stride = max(1, len(texts) // CALIBRATION)
    return origin.encode(texts[::stride][:CALIBRATION])


def learn_shortlist(origin: Origin, lexicon: LexiconText, watch: Watch) -> Shortlist:
    def as_ids() -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        pairs = iter(lexicon.pairs)
        while some := list(islice(pairs, _BATCH_PAIRS)):
            sources, targets = zip(*some, strict=True)
            yield from zip(
                origin.encode(sources), origin.target.encode_all(list(targets)), strict=True
            )

    return shortlist_from(
        as_ids(),
        source_vocabulary=origin.model.source_vocabulary,
        target_vocabulary=origin.model.target_vocabulary,
        end=origin.special.end,
        settings=lexicon.settings,
        watch=watch,
    )


def golden_candidates(
    origin: Origin, manifest: Manifest, sample: ParallelSample | None
) -> list[list[int]]:
    """Sentences of the text, or made-up ones where there is none."""
    if sample is not None:
        return origin.encode(list(sample.golden or sample.sources)[:200])
    rng = random.Random(1)  # noqa: S311
    vocabulary = manifest.dimensions.source_vocabulary
    longest = min(12, manifest.max_source_tokens - 1)
    return [
        [rng.randrange(4, vocabulary) for _ in range(rng.randint(1, longest))] for _ in range(200)
    ]
