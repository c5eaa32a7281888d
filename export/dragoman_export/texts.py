"""The text that an export is given: to measure on, to calibrate with, to learn a shortlist from."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

from dragoman_export.errors import ExportError
from dragoman_export.lexicon import LexiconSettings, shortlist_from
from dragoman_export.progress import Watch
from dragoman_export.source import Origin
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_training.config.tables import read_dict
from dragoman_training.data.text.corpus import Pair, ParallelText, check_readable, read_lines

_BATCH_PAIRS = 1000
"""Sentence pairs that are tokenized at a time."""
CALIBRATION = 300
"""Sentences that the scales of int8 are found on."""


@dataclass(frozen=True)
class ParallelSample:
    """Text to measure quality on, and other text to find the scales of int8 on."""

    sources: Sequence[str]
    """Sentences to measure quality on."""
    references: Sequence[str]
    """Right translation of each sentence in ``sources``."""
    calibration: Sequence[str] = ()
    """Sentences to find the scales of int8 on; if there are none, ``sources`` are used."""
    golden: Sequence[str] = ()
    """Sentences to make golden decodings of; if there are none, ``sources`` are used."""
    name: str = "the given text"
    """What reports call the text to measure quality on."""


@dataclass(frozen=True)
class LexiconText:
    """Parallel text to learn a shortlist from."""

    pairs: Iterable[tuple[str, str]]
    """Sentences and their translations."""
    settings: LexiconSettings
    """How the shortlist is learnt."""


def read_sample(
    source: Path | None, reference: Path | None, sentences: int, golden: Path | None
) -> ParallelSample | None:
    """Read text to measure on, and what follows it to calibrate on; None if no file is given."""
    if (source is None) != (reference is None):
        raise ExportError("--source and --reference go together")
    if source is None or reference is None:
        return None
    text = iter(ParallelText((source,), (reference,)))
    return _sample(text, sentences, golden, f"{source.name} and {reference.name}")


def read_sample_of_run(run: Path, sentences: int, golden: Path | None) -> ParallelSample | None:
    """Read the validation texts of a training run, in turns; None if it has none, or is no run."""
    try:
        names = read_dict(run / "data" / "prepared.json")["valid"]
    except (OSError, ValueError, KeyError):
        return None
    if not names:
        return None
    directories = [run / "data" / "valid" / name for name in names]
    texts = (ParallelText((each / "source",), (each / "target",)) for each in directories)
    in_turns = (pair for pairs in zip_longest(*texts) for pair in pairs if pair is not None)
    name = "the run's validation text"
    return _sample(in_turns, sentences, golden, name if len(names) == 1 else f"{name}s")


def _sample(text: Iterator[Pair], sentences: int, golden: Path | None, name: str) -> ParallelSample:
    pairs = list(islice(text, sentences))
    if not pairs:
        raise ExportError(f"{name}: empty")
    return ParallelSample(
        [pair.source for pair in pairs],
        [pair.target for pair in pairs],
        calibration=[pair.source for pair in islice(text, CALIBRATION)],
        golden=list(read_lines(golden)) if golden else (),
        name=name,
    )


def read_lexicon(source: Path | None, target: Path | None, likely: int) -> LexiconText | None:
    """Open text to learn a shortlist from; None if no file is given."""
    if (source is None) != (target is None):
        raise ExportError("--shortlist-source and --shortlist-target go together")
    if source is None or target is None:
        return None
    check_readable([source, target])
    try:
        settings = LexiconSettings(likely=likely)
    except ValueError as error:
        raise ExportError(f"--shortlist-likely: {error}") from None
    return LexiconText(ParallelText((source,), (target,)), settings)


def fitting(origin: Origin, sample: ParallelSample) -> ParallelSample:
    """Return the sentences that are not blank and not longer than the model takes."""

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
    return ParallelSample(sources, references, calibration, golden, sample.name)


def calibration_ids(origin: Origin, sample: ParallelSample | None) -> list[list[int]]:
    """Return sentences to find the scales of int8 on, as ids, spread over the text."""
    texts = [] if sample is None else list(sample.calibration or sample.sources)
    stride = max(1, len(texts) // CALIBRATION)
    return origin.encode(texts[::stride][:CALIBRATION])


def learn_shortlist(origin: Origin, lexicon: LexiconText, watch: Watch) -> Shortlist:
    """Learn a shortlist from text, with the model's own vocabularies."""

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


def golden_sources(
    origin: Origin, manifest: Manifest, sample: ParallelSample | None
) -> list[list[int]]:
    """Return sentences to make golden decodings of, as ids; made-up ones if there is no text."""
    if sample is not None:
        return origin.encode(list(sample.golden or sample.sources)[:200])
    rng = random.Random(1)  # noqa: S311
    vocabulary = manifest.dimensions.source_vocabulary
    longest = min(12, manifest.max_source_tokens - 1)
    return [
        [rng.randrange(4, vocabulary) for _ in range(rng.randint(1, longest))] for _ in range(200)
    ]
