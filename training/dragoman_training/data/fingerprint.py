"""Whether prepared data is that of a recipe: by its settings, and by the hashes of its files."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from dragoman_training.config.data_settings import DataSettings
from dragoman_training.config.recipe import Recipe
from dragoman_training.config.tables import build
from dragoman_training.data.prepared import META
from dragoman_training.data.text.corpus import check_readable
from dragoman_training.data.text.sources import named_files
from dragoman_training.data.tokenizer import TokenizerSettings
from dragoman_training.errors import CorpusError, RecipeError
from dragoman_training.files import sha256

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


def settings_of(recipe: Recipe) -> dict[str, Any]:
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


def describe_file(path: Path) -> dict[str, Any]:
    """Return the name, size and hash of a file."""
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": sha256(path)}


def check_unchanged(recipe: Recipe, directory: Path) -> None:
    """Raise an error that says how prepared data differs from what a recipe would make."""
    meta = json.loads((directory / META).read_text())
    if _relevant(meta["settings"]) != _relevant(settings_of(recipe)):
        raise RecipeError(
            f"{directory} was prepared with other settings of data, tokenizer, toy, seed or "
            "max_length: choose another --output"
        )
    if bool(recipe.training.initial) != ("initial" in meta):
        raise RecipeError(
            f"{directory} was prepared {'with' if 'initial' in meta else 'without'} "
            "training.initial: choose another --output"
        )
    files = named_files(recipe)
    if len(files) != len(meta["files"]):
        raise CorpusError(
            f"{directory} was prepared from {len(meta['files'])} files, not {len(files)}: "
            "choose another --output"
        )
    for path, then in zip(files, meta["files"], strict=True):
        if not path.exists():
            continue
        check_readable([path])
        if describe_file(path)["sha256"] != then["sha256"]:
            raise CorpusError(
                f"{path} is not the file that {directory} was prepared from: "
                "choose another --output"
            )
