"""From parallel text to what training reads: tokenizers and token stores, in one directory.

The directory appears when it is complete, and holds all that a run needs: a run goes on where the
corpus itself is no longer at hand.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman_training.config.recipe import Recipe
from dragoman_training.data.fingerprint import check_unchanged, describe_file, settings_of
from dragoman_training.data.groups import GroupKey, GroupWriter
from dragoman_training.data.initial import begun_with, check_placeholders, load_initial
from dragoman_training.data.prepared import INITIAL, META
from dragoman_training.data.text.corpus import Pair, check_readable
from dragoman_training.data.text.examples import CorpusReader, CorpusReport, Example, Watch
from dragoman_training.data.text.filters import FilterReport, is_lopsided
from dragoman_training.data.text.sources import (
    corpus_readers,
    named_files,
    toy_readers,
    validation_texts,
    word_readers,
)
from dragoman_training.data.text.toy import write_toy
from dragoman_training.data.token_store import TokenStoreWriter
from dragoman_training.data.tokenizer import Tokenizer, TokenizerPair, train_tokenizer
from dragoman_training.errors import CorpusError, TrainingError
from dragoman_training.files import staged_directory

_CHUNK = 4096


def prepare(recipe: Recipe, directory: Path, watch: Watch, *, replace: bool = False) -> None:
    """Make the directory, unless it is there already and was made by the same recipe.

    One that was made by another recipe is an error, or replaced where nothing depends on it yet.
    """
    if directory.exists():
        try:
            check_unchanged(recipe, directory)
            return
        except TrainingError:
            if not replace:
                raise
    check_readable(named_files(recipe))
    with staged_directory(directory) as staging:
        if recipe.toy:
            write_toy(recipe.toy, recipe.seed, staging / "toy")
        readers = toy_readers(recipe, staging) if recipe.toy else corpus_readers(recipe)
        # Validation text is small, and what is wrong with it is found before the long work.
        valid = {name: list(text) for name, text in validation_texts(recipe, staging).items()}
        initial = load_initial(recipe)
        for reader in readers:
            reader.scan(watch)
        readers += word_readers(recipe, readers, watch)
        if initial:
            initial.save(staging / INITIAL)
            tokenizers = initial.tokenizers
            check_placeholders(recipe, tokenizers)
        else:
            tokenizers = _train_tokenizers(recipe, readers, watch)
        for name, model in tokenizers.files().items():
            (staging / name).write_bytes(model)
        reports = _write_train(recipe, readers, tokenizers, staging, watch)
        total = FilterReport()
        for report in reports:
            total.add(report.pairs)
        if not total.kept:
            raise CorpusError(f"no sentence pair is left to train on: {asdict(total)}")
        meta: dict[str, Any] = {
            "settings": settings_of(recipe),
            "report": asdict(total),
            "corpora": [asdict(report) for report in reports],
            "files": [describe_file(path) for path in named_files(recipe)],
            "valid": list(valid),
        }
        if initial:
            meta["initial"] = begun_with(initial)
        if valid:
            (staging / "valid").mkdir()
            meta["valid_too_long"] = sum(
                _write_valid(recipe, pairs, tokenizers, staging / "valid" / name)
                for name, pairs in valid.items()
            )
        (staging / META).write_text(json.dumps(meta, indent=2, ensure_ascii=False) + "\n")


def _train_tokenizers(recipe: Recipe, readers: list[CorpusReader], watch: Watch) -> TokenizerPair:
    """Learn the vocabularies from a sample in which each corpus has the share that it weighs."""
    settings = recipe.tokenizer
    weighed = sum(reader.settings.weight * reader.lines for reader in readers)
    rate = settings.sample / max(1.0, weighed)
    watch("learning the vocabulary", 0, None)

    def sentences(sides: tuple[int, ...]) -> Iterator[str]:
        for reader in readers:
            ignored = CorpusReport(reader.settings.name)
            for example in reader.examples(ignored, rate * reader.settings.weight):
                yield from (example.pair[side] for side in sides)

    def learn(*sides: int) -> Tokenizer:
        if next(sentences(sides), None) is None:
            raise CorpusError("the training text is empty")
        return train_tokenizer(sentences(sides), settings, recipe.seed)

    if settings.joint:
        joint = learn(0, 1)
        return TokenizerPair(joint, joint)
    return TokenizerPair(learn(0), learn(1))


def _write_train(
    recipe: Recipe,
    readers: list[CorpusReader],
    tokenizers: TokenizerPair,
    directory: Path,
    watch: Watch,
) -> list[CorpusReport]:
    """Write the tokens of all examples, and how often each is drawn."""
    vocabulary = max(tokenizers.source.size, tokenizers.target.size)
    with (
        TokenStoreWriter(directory / "train", vocabulary) as store,
        GroupWriter(directory / "groups") as groups,
    ):
        return [
            _write_corpus(recipe, reader, tokenizers, store, groups, watch) for reader in readers
        ]


def _write_corpus(
    recipe: Recipe,
    reader: CorpusReader,
    tokenizers: TokenizerPair,
    store: TokenStoreWriter,
    groups: GroupWriter,
    watch: Watch,
) -> CorpusReport:
    settings = reader.settings
    report = CorpusReport(settings.name)
    limit = recipe.data.max_tokens - 1 - tokenizers.ends.most_around  # the end takes a place
    drawn = tokens = 0.0
    examples = reader.examples(report)
    while chunk := list(islice(examples, _CHUNK)):
        pairs = [example.pair for example in chunk]
        for example, (source, target) in zip(chunk, _tokenize(pairs, tokenizers), strict=True):
            problem = _problem(len(source), len(target), limit, settings.max_ratio)
            _count(report, example, problem)
            if problem is not None:
                continue
            store.add(source, target)
            weight = settings.weight_of(example.label)
            groups.add(GroupKey(weight, joinable=not example.variant))
            drawn += weight
            tokens += weight * (len(target) + 1)
        watch(f"tokenizing {settings.name}", report.pairs.read, reader.lines)
    report.epoch_examples, report.epoch_target_tokens = round(drawn), round(tokens)
    return report


def _problem(source: int, target: int, limit: int, max_ratio: float) -> str | None:
    """Return why a pair of so many tokens is not trained on, if it is not."""
    if max(source, target) > limit:
        return "too_long"
    return "ratio" if is_lopsided(source, target, max_ratio) else None


def _count(report: CorpusReport, example: Example, problem: str | None) -> None:
    """Pairs are counted by what became of them, variants where they are trained on."""
    if not example.variant:
        report.pairs.count(problem or "kept")
    if problem is None and example.variant:
        report.count_variant(example.variant)
    elif problem is None:
        report.count_label(example.label)


def _write_valid(
    recipe: Recipe, pairs: list[Pair], tokenizers: TokenizerPair, directory: Path
) -> int:
    """Keep everything that the model can take. Returns how many pairs it can't."""
    limit = recipe.model.max_length - 1 - tokenizers.ends.most_around
    vocabulary = max(tokenizers.source.size, tokenizers.target.size)
    too_long = 0
    directory.mkdir()
    with (
        TokenStoreWriter(directory / "tokens", vocabulary) as store,
        (directory / "source").open("w", encoding="utf-8") as sources,
        (directory / "target").open("w", encoding="utf-8") as targets,
    ):
        for pair, (source, target) in zip(pairs, _tokenize(pairs, tokenizers), strict=True):
            if max(len(source), len(target)) > limit:
                too_long += 1
                continue
            store.add(source, target)
            sources.write(pair.source + "\n")
            targets.write(pair.target + "\n")
    if too_long == len(pairs):
        raise CorpusError(f"validation text {directory.name!r} has no pair that the model can take")
    return too_long


def _tokenize(
    pairs: list[Pair], tokenizers: TokenizerPair
) -> Iterable[tuple[list[int], list[int]]]:
    return zip(
        tokenizers.source.encode_all([pair.source for pair in pairs]),
        tokenizers.target.encode_all([pair.target for pair in pairs]),
        strict=True,
    )
