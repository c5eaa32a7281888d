"""From parallel text to what training reads: tokenizers and token stores, in one directory.

The directory appears when it is complete, and holds all that a run needs: a run goes on where the
corpus itself is no longer at hand.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman_training.checkpoint import Checkpoint, find_checkpoint
from dragoman_training.corpus import Pair, ParallelText, check_readable, read_lines
from dragoman_training.errors import CorpusError, RecipeError, TrainingError
from dragoman_training.files import sha256, staged_directory
from dragoman_training.filters import DuplicateFinder, FilterReport, is_empty, is_lopsided
from dragoman_training.recipe import Recipe
from dragoman_training.token_store import TokenStore, TokenStoreWriter
from dragoman_training.tokenizer import Tokenizer, TokenizerPair, train_tokenizer
from dragoman_training.toy import toy_text, write_toy

Watch = Callable[[str, int, int | None], None]
"""Told of the stage, how much of it is done, and of how much where that is known."""

_CHUNK = 4096
_META = "prepared.json"
_INITIAL = "initial"
_UNRELATED = {
    *("train_source", "train_target", "valid_source", "valid_target"),
    *("joined", "joined_pairs"),  # examples are joined when they are drawn
    "tokenized",
}
"""Settings of data that the prepared data does not depend on."""
_HOW_TRAINED = {"dropout", "attention_dropout", "activation_dropout"}
"""Settings of a model that its weights do not depend on."""


@dataclass(frozen=True)
class PreparedData:
    """What ``prepare`` left on disk."""

    train: TokenStore
    valid: TokenStore | None
    valid_sources: list[str]
    valid_targets: list[str]
    tokenizers: TokenizerPair
    initial: Checkpoint | None
    """What training begins with, where that is not random weights."""
    provenance: dict[str, Any]
    """The files read, with their hashes, and the filter's report."""


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
    check_readable(_corpus(recipe, "train").files + _corpus(recipe, "valid").files)
    with staged_directory(directory) as staging:
        if recipe.toy:
            write_toy(recipe.toy, recipe.seed, staging / "toy")
        train = _corpus(recipe, "train", staging)
        valid = _corpus(recipe, "valid", staging)
        valid_pairs = list(valid)  # small, and what is wrong with it is found before the long work
        initial = _initial(recipe)
        repeated = _find_duplicates(train, watch, keep_all=not recipe.data.remove_duplicates)
        if initial:
            initial.save(staging / _INITIAL)
            tokenizers = initial.tokenizers
        else:
            tokenizers = _train_tokenizers(recipe, train, repeated, watch)
        for name, model in tokenizers.files().items():
            (staging / name).write_bytes(model)
        report = _write_train(recipe, train, repeated, tokenizers, staging / "train", watch)
        meta: dict[str, Any] = {
            "settings": _relevant(recipe),
            "report": asdict(report),
            "files": [_describe(path) for path in train.files + valid.files if not recipe.toy],
        }
        if initial:
            meta["initial"] = _begun_with(initial)
        if valid.files:
            meta["valid_too_long"] = _write_valid(recipe, valid_pairs, tokenizers, staging)
        (staging / _META).write_text(json.dumps(meta, indent=2) + "\n")


def load_prepared(directory: Path) -> PreparedData:
    meta = json.loads((directory / _META).read_text())
    has_valid = (directory / "valid").exists()
    return PreparedData(
        train=TokenStore(directory / "train"),
        valid=TokenStore(directory / "valid") if has_valid else None,
        valid_sources=list(read_lines(directory / "valid.source")) if has_valid else [],
        valid_targets=list(read_lines(directory / "valid.target")) if has_valid else [],
        tokenizers=TokenizerPair.load(directory),
        initial=Checkpoint.load(directory / _INITIAL) if "initial" in meta else None,
        provenance={
            key: meta[key]
            for key in ("files", "report", "valid_too_long", "initial")
            if key in meta
        },
    )


def _initial(recipe: Recipe) -> Checkpoint | None:
    """The weights and tokenizers that the recipe begins with, if it names any."""
    if not recipe.training.initial:
        return None
    path = find_checkpoint(Path(recipe.training.initial))
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


def _begun_with(initial: Checkpoint) -> dict[str, Any]:
    """Where a first model came from, for the provenance of what is made of it."""
    data = initial.config.get("data") or {}
    return {"progress": initial.config.get("progress"), "files": data.get("files")}


def _corpus(recipe: Recipe, split: str, staging: Path | None = None) -> ParallelText:
    if recipe.toy:
        return toy_text(staging / "toy", split) if staging else ParallelText(())
    sources = getattr(recipe.data, f"{split}_source")
    targets = getattr(recipe.data, f"{split}_target")
    return ParallelText(tuple(map(Path, sources)), tuple(map(Path, targets)))


def _relevant(recipe: Recipe) -> dict[str, Any]:
    """The settings that the prepared data depends on; not the paths, which may move."""
    settings = recipe.to_dict()
    return {
        "seed": recipe.seed,
        "toy": settings["toy"],
        "tokenizer": settings["tokenizer"],
        "data": {key: value for key, value in settings["data"].items() if key not in _UNRELATED},
        "model.max_length": recipe.model.max_length,
    }


def _describe(path: Path) -> dict[str, Any]:
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": sha256(path)}


def _check_unchanged(recipe: Recipe, directory: Path) -> None:
    meta = json.loads((directory / _META).read_text())
    then = meta["settings"]
    then["data"] = {key: value for key, value in then["data"].items() if key not in _UNRELATED}
    if then != json.loads(json.dumps(_relevant(recipe))):
        raise RecipeError(
            f"{directory} was prepared with other settings of data, tokenizer, toy, seed or "
            "max_length: choose another --output"
        )
    if bool(recipe.training.initial) != ("initial" in meta):
        raise RecipeError(
            f"{directory} was prepared {'with' if 'initial' in meta else 'without'} "
            "training.initial: choose another --output"
        )
    files = _corpus(recipe, "train").files + _corpus(recipe, "valid").files
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


def _find_duplicates(text: ParallelText, watch: Watch, *, keep_all: bool) -> npt.NDArray[np.bool_]:
    """Read everything once, which also finds what is wrong with the files."""
    with tempfile.TemporaryFile() as hashes:
        finder = DuplicateFinder(hashes)
        count = 0
        for count, pair in enumerate(text, start=1):
            finder.add(pair)
            if count % _CHUNK == 0:
                watch("reading", count, None)
        watch("reading", count, count)
        return np.zeros(count, np.bool_) if keep_all else finder.find()


def _train_tokenizers(
    recipe: Recipe, text: ParallelText, repeated: npt.NDArray[np.bool_], watch: Watch
) -> TokenizerPair:
    settings = recipe.tokenizer
    different = int((~repeated).sum())
    stride = max(1, -(-different // settings.sample))
    watch("learning the vocabulary", 0, None)

    def sentences(sides: tuple[int, ...]) -> Iterator[str]:
        pairs = (pair for pair, again in zip(text, repeated, strict=True) if not again)
        for pair in islice(pairs, 0, None, stride):
            yield from (pair[side] for side in sides if pair[side].strip())

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
    text: ParallelText,
    repeated: npt.NDArray[np.bool_],
    tokenizers: TokenizerPair,
    directory: Path,
    watch: Watch,
) -> FilterReport:
    report = FilterReport()
    vocabulary = max(tokenizers.source.size, tokenizers.target.size)
    limit = recipe.data.max_tokens - 1  # the end token takes a place
    pairs = iter(zip(text, repeated, strict=True))
    with TokenStoreWriter(directory, vocabulary) as store:
        while chunk := list(islice(pairs, _CHUNK)):
            wanted: list[Pair] = []
            for pair, again in chunk:
                if is_empty(pair):
                    report.empty += 1
                elif again:
                    report.duplicate += 1
                else:
                    wanted.append(pair)
            for source, target in _tokenize(wanted, tokenizers):
                if max(len(source), len(target)) > limit:
                    report.too_long += 1
                elif is_lopsided(len(source), len(target), recipe.data.max_ratio):
                    report.ratio += 1
                else:
                    store.add(source, target)
                    report.kept += 1
            watch("tokenizing", report.read, len(repeated))
    if not report.kept:
        raise CorpusError(f"no sentence pair is left to train on: {asdict(report)}")
    return report


def _write_valid(
    recipe: Recipe, pairs: list[Pair], tokenizers: TokenizerPair, directory: Path
) -> int:
    """Keep everything that the model can take. Returns how many pairs it can't."""
    limit = recipe.model.max_length - 1
    vocabulary = max(tokenizers.source.size, tokenizers.target.size)
    too_long = 0
    with (
        TokenStoreWriter(directory / "valid", vocabulary) as store,
        (directory / "valid.source").open("w", encoding="utf-8") as sources,
        (directory / "valid.target").open("w", encoding="utf-8") as targets,
    ):
        for pair, (source, target) in zip(pairs, _tokenize(pairs, tokenizers), strict=True):
            if max(len(source), len(target)) > limit:
                too_long += 1
                continue
            store.add(source, target)
            sources.write(pair.source + "\n")
            targets.write(pair.target + "\n")
    if too_long == len(pairs):
        raise CorpusError("the validation text has no pair that the model can take")
    return too_long


def _tokenize(
    pairs: list[Pair], tokenizers: TokenizerPair
) -> Iterable[tuple[list[int], list[int]]]:
    return zip(
        tokenizers.source.encode_all([pair.source for pair in pairs]),
        tokenizers.target.encode_all([pair.target for pair in pairs]),
        strict=True,
    )
