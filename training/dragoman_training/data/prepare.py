"""From parallel text to what training reads: tokenizers and token stores, in one directory.

The directory appears when it is complete, and holds all that a run needs: a run goes on where the
corpus itself is no longer at hand.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

from dragoman_training.config.data_settings import CorpusSettings, DataSettings
from dragoman_training.config.recipe import Recipe
from dragoman_training.config.tables import build
from dragoman_training.data.corpus import (
    LabelledText,
    Pair,
    ParallelText,
    check_readable,
    read_lines,
)
from dragoman_training.data.examples import CorpusReader, CorpusReport, Example, Watch
from dragoman_training.data.filters import FilterReport, is_lopsided
from dragoman_training.data.groups import GroupKey, GroupWriter, load_groups
from dragoman_training.data.mixture import Mixture
from dragoman_training.data.rules.placeholders import MAX_PLACEHOLDERS
from dragoman_training.data.rules.word_pairs import find_word_pairs
from dragoman_training.data.token_store import TokenStore, TokenStoreWriter
from dragoman_training.data.tokenizer import (
    Tokenizer,
    TokenizerPair,
    TokenizerSettings,
    train_tokenizer,
)
from dragoman_training.data.toy import toy_text, write_toy
from dragoman_training.errors import CorpusError, RecipeError, TrainingError
from dragoman_training.files import sha256, staged_directory
from dragoman_training.train.checkpoint import Checkpoint, find_checkpoint

WORDS = "words"
"""What reports call the corpus of single words."""

_CHUNK = 4096
_META = "prepared.json"
_INITIAL = "initial"
_PATHS = {
    *("directory", "train_source", "train_target", "valid_source", "valid_target"),
    *("source", "target", "labels"),  # of a corpus or a validation text
}
"""Settings that say where text is: it may move, as long as it is the same text."""
_UNRELATED = {
    *("joined", "joined_pairs"),  # examples are joined when they are drawn
    "tokenized",
}
"""Settings of data that the prepared data does not depend on."""
_HOW_TRAINED = {"dropout", "attention_dropout", "activation_dropout"}
"""Settings of a model that its weights do not depend on."""


@dataclass(frozen=True)
class PreparedValidation:
    """One validation text, as tokens and as text."""

    name: str
    store: TokenStore
    sources: list[str]
    targets: list[str]


@dataclass(frozen=True)
class PreparedData:
    """What ``prepare`` left on disk."""

    train: TokenStore
    mixture: Mixture | None
    """How often each pair is drawn; None where every pair is drawn once in each epoch."""
    valid: tuple[PreparedValidation, ...]
    tokenizers: TokenizerPair
    initial: Checkpoint | None
    """What training begins with, where that is not random weights."""
    provenance: dict[str, Any]
    """The files read, with their hashes, and the reports of the filters."""


def prepare(recipe: Recipe, directory: Path, watch: Watch, *, replace: bool = False) -> None:
    """Make the directory, unless it is there already and was made by the same recipe.

    One that was made by another recipe is an error, or replaced where nothing depends on it yet.
    """
    if directory.exists():
        try:
            _check_unchanged(recipe, directory)
            return
        except TrainingError:
            if not replace:
                raise
    check_readable(_files(recipe))
    with staged_directory(directory) as staging:
        if recipe.toy:
            write_toy(recipe.toy, recipe.seed, staging / "toy")
        readers = _toy_readers(recipe, staging) if recipe.toy else corpus_readers(recipe)
        # Validation text is small, and what is wrong with it is found before the long work.
        valid = {name: list(text) for name, text in _validation(recipe, staging).items()}
        initial = _initial(recipe)
        for reader in readers:
            reader.scan(watch)
        readers += word_readers(recipe, readers, watch)
        if initial:
            initial.save(staging / _INITIAL)
            tokenizers = initial.tokenizers
            _check_placeholders(recipe, tokenizers)
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
            "settings": _settings(recipe),
            "report": asdict(total),
            "corpora": [asdict(report) for report in reports],
            "files": [_describe(path) for path in _files(recipe)],
            "valid": list(valid),
        }
        if initial:
            meta["initial"] = _begun_with(initial)
        if valid:
            (staging / "valid").mkdir()
            meta["valid_too_long"] = sum(
                _write_valid(recipe, pairs, tokenizers, staging / "valid" / name)
                for name, pairs in valid.items()
            )
        (staging / _META).write_text(json.dumps(meta, indent=2, ensure_ascii=False) + "\n")


def load_prepared(directory: Path) -> PreparedData:
    meta = json.loads((directory / _META).read_text())
    groups = load_groups(directory / "groups")
    all_once = len(groups) == 1 and groups[0].weight == 1 and groups[0].joinable
    return PreparedData(
        train=TokenStore(directory / "train"),
        mixture=None if all_once else Mixture(groups, meta["settings"]["seed"]),
        valid=tuple(_load_valid(directory / "valid" / name) for name in meta["valid"]),
        tokenizers=TokenizerPair.load(directory),
        initial=Checkpoint.load(directory / _INITIAL) if "initial" in meta else None,
        provenance={
            key: meta[key]
            for key in ("files", "report", "corpora", "valid_too_long", "initial")
            if key in meta
        },
    )


def _load_valid(directory: Path) -> PreparedValidation:
    return PreparedValidation(
        name=directory.name,
        store=TokenStore(directory / "tokens"),
        sources=list(read_lines(directory / "source")),
        targets=list(read_lines(directory / "target")),
    )


def _initial(recipe: Recipe) -> Checkpoint | None:
    """The weights and tokenizers that the recipe begins with, if it names any."""
    if not recipe.training.initial:
        return None
    path = Path(recipe.training.initial)
    if (path / "manifest.json").exists():
        full = _read_bundle(path)
    else:
        path = find_checkpoint(path)
        full = Checkpoint.load(path)
    theirs, ours = full.config["model"], asdict(recipe.model)
    for name, value in ours.items():
        # How it was trained is its own affair; what it computes has to be the same.
        if name not in _HOW_TRAINED and theirs.get(name, value) != value:
            raise RecipeError(
                f"model.{name} is {value!r}: {path}, which training.initial names, "
                f"has {theirs[name]!r}"
            )
    return replace(full, state=None, optimizer=None)


def _read_bundle(path: Path) -> Checkpoint:
    """Return the model of an exported bundle. Only this needs what is installed for exporting."""
    try:
        from dragoman_export.read_back import checkpoint_of_bundle
    except ImportError as error:
        raise RecipeError(
            f"training.initial is {path}, a bundle: to read it, install dragoman[export] ({error})"
        ) from None
    return checkpoint_of_bundle(path)


def _begun_with(initial: Checkpoint) -> dict[str, Any]:
    """Where a first model came from, for the provenance of what is made of it."""
    data = initial.config.get("data") or {}
    return {"progress": initial.config.get("progress"), "files": data.get("files")}


def corpus_readers(recipe: Recipe) -> list[CorpusReader]:
    """Return the corpora that a recipe names."""
    return [
        CorpusReader(corpus, _text(recipe, corpus), recipe.seed)
        for corpus in recipe.data.all_corpora
    ]


def word_readers(
    recipe: Recipe, readers: Sequence[CorpusReader], watch: Watch
) -> list[CorpusReader]:
    """Return a corpus of single words, found in corpora that were scanned; none if not wanted."""
    settings = recipe.data.words
    if not settings.weight:
        return []
    watch("looking for words", 0, None)

    def read() -> Iterator[Pair]:
        for reader in readers:
            ignored = CorpusReport(reader.settings.name)
            yield from (example.pair for example in reader.pairs(ignored))

    found = find_word_pairs(read, settings)
    corpus = CorpusSettings(
        name=WORDS, source=(WORDS,), weight=settings.weight, variants=settings.variants
    )
    words = CorpusReader(corpus, [(pair, "") for pair in found], recipe.seed)
    words.scan(watch)
    return [words]


def _toy_readers(recipe: Recipe, directory: Path) -> list[CorpusReader]:
    text = toy_text(directory / "toy", "train")
    settings = CorpusSettings(
        name="toy",
        source=tuple(map(str, text.sources)),
        remove_duplicates=recipe.data.remove_duplicates,
    )
    return [CorpusReader(settings, LabelledText(text), recipe.seed)]


def _text(recipe: Recipe, corpus: CorpusSettings) -> LabelledText:
    paths = recipe.data.paths
    text = ParallelText(paths(corpus.source), paths(corpus.target))
    return LabelledText(text, paths(corpus.labels))


def _validation(recipe: Recipe, directory: Path) -> dict[str, ParallelText]:
    """Return the validation texts by name; a toy's is in the directory."""
    if recipe.toy:
        return {"valid": toy_text(directory / "toy", "valid")}
    paths = recipe.data.paths
    return {
        text.name: ParallelText(paths(text.source), paths(text.target))
        for text in recipe.data.all_validation
    }


def _files(recipe: Recipe) -> list[Path]:
    """Return the files that a recipe names."""
    if recipe.toy:
        return []
    files: list[Path] = []
    for corpus in recipe.data.all_corpora:
        files += _text(recipe, corpus).files
    for text in _validation(recipe, Path()).values():
        files += text.files
    return files


def _check_placeholders(recipe: Recipe, tokenizers: TokenizerPair) -> None:
    wanted = any(corpus.variants.placeholders for corpus in recipe.data.all_corpora)
    known = min(tokenizers.source.placeholders, tokenizers.target.placeholders)
    if wanted and known < MAX_PLACEHOLDERS:
        raise RecipeError(
            f"data.corpora: a corpus has placeholders, of which the vocabulary of "
            f"{recipe.training.initial} has {known}, not {MAX_PLACEHOLDERS}"
        )


def _settings(recipe: Recipe) -> dict[str, Any]:
    """Return the settings that the prepared data is made by."""
    settings = recipe.to_dict()
    return {
        "seed": recipe.seed,
        "toy": settings["toy"],
        "tokenizer": settings["tokenizer"],
        "data": settings["data"],
        "model.max_length": recipe.model.max_length,
    }


def _relevant(settings: dict[str, Any]) -> dict[str, Any]:
    """Return those of stored settings that the tokens depend on.

    What an older version did not know yet has its default.
    """
    data = asdict(build(DataSettings, settings["data"], "data"))
    tokenizer = asdict(build(TokenizerSettings, settings["tokenizer"], "tokenizer"))
    relevant = {**settings, "data": _without_paths(data), "tokenizer": tokenizer}
    return cast("dict[str, Any]", json.loads(json.dumps(relevant)))


def _without_paths(data: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of data, or of one of its tables, that decide about the tokens."""
    kept = {key: value for key, value in data.items() if key not in _PATHS | _UNRELATED}
    for key in ("corpora", "validation"):
        if key in kept:
            kept[key] = [_without_paths(table) for table in kept[key]]
    return kept


def _describe(path: Path) -> dict[str, Any]:
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": sha256(path)}


def _check_unchanged(recipe: Recipe, directory: Path) -> None:
    meta = json.loads((directory / _META).read_text())
    if _relevant(meta["settings"]) != _relevant(_settings(recipe)):
        raise RecipeError(
            f"{directory} was prepared with other settings of data, tokenizer, toy, seed or "
            "max_length: choose another --output"
        )
    if bool(recipe.training.initial) != ("initial" in meta):
        raise RecipeError(
            f"{directory} was prepared {'with' if 'initial' in meta else 'without'} "
            "training.initial: choose another --output"
        )
    files = _files(recipe)
    if len(files) != len(meta["files"]):
        raise CorpusError(
            f"{directory} was prepared from {len(meta['files'])} files, not {len(files)}: "
            "choose another --output"
        )
    for path, then in zip(files, meta["files"], strict=True):
        if not path.exists():
            continue
        check_readable([path])
        if _describe(path)["sha256"] != then["sha256"]:
            raise CorpusError(
                f"{path} is not the file that {directory} was prepared from: "
                "choose another --output"
            )


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
    limit = recipe.data.max_tokens - 1  # the end token takes a place
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
    limit = recipe.model.max_length - 1
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
