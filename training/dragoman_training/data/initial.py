"""The model that a run begins with, where that is not random weights."""

from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from dragoman_training.config.recipe import Recipe
from dragoman_training.config.tables import read_dict
from dragoman_training.data.rules.placeholders import MAX_PLACEHOLDERS
from dragoman_training.data.tokenizer import TokenizerPair
from dragoman_training.errors import CheckpointError, RecipeError
from dragoman_training.train.checkpoint import Checkpoint, find_checkpoint, is_ours

_HOW_TRAINED = {"dropout", "attention_dropout", "activation_dropout"}
"""Settings of a model that its weights do not depend on."""


def load_initial(recipe: Recipe) -> Checkpoint | None:
    """Return the weights and tokenizers that a recipe begins with, if it names any."""
    if not recipe.training.initial:
        return None
    data = recipe.data
    path = Path(recipe.training.initial)
    full = _read(path, data.source_language, data.target_language)
    _read.cache_clear()  # it was kept since the recipe was read
    theirs, ours = full.config["model"], asdict(recipe.model)
    for name, value in ours.items():
        # How it was trained is its own affair; what it computes has to be the same.
        if name not in _HOW_TRAINED and theirs.get(name, value) != value:
            found = find_checkpoint(path) if is_ours(path) else path
            raise RecipeError(
                f"model.{name} is {value!r}: {found}, which training.initial names, "
                f"has {theirs[name]!r}"
            )
    return replace(full, state=None, optimizer=None)


def with_initial_model(table: dict[str, Any], run: Path | None = None) -> dict[str, Any]:
    """Return the tables of a recipe, with the settings of the model that it begins with where it
    has none of its own.

    A run that goes on has them too, so that the first model may be gone by then.
    """
    training, data, model = (table.get(key, {}) for key in ("training", "data", "model"))
    if not all(isinstance(part, dict) for part in (training, data, model)):
        return table
    initial = training.get("initial")
    if not initial or not isinstance(initial, str) or "preset" in model:
        return table
    stored = run / "recipe.json" if run else None
    if stored and stored.is_file() and not Path(initial).exists():
        known = read_dict(stored)["model"]
    else:
        tags = (str(data.get(f"{side}_language", "")) for side in ("source", "target"))
        known = dict(_read(Path(initial), *tags).config["model"])
        for side in ("source", "target"):
            del known[f"{side}_vocabulary"]
    return {**table, "model": {**known, **model}}


@lru_cache(maxsize=1)
def _read(path: Path, source_language: str, target_language: str) -> Checkpoint:
    if not path.exists():
        raise CheckpointError(f"training.initial is {path}: no such file or directory")
    if is_ours(path):
        return Checkpoint.load(find_checkpoint(path))
    # Only this needs what is installed for exporting.
    try:
        from dragoman_export.initial import read_initial
    except ImportError as error:
        kind = "a bundle" if (path / "manifest.json").exists() else "no checkpoint of a run"
        from dragoman_cli.extras import how_to_install

        raise RecipeError(
            f"training.initial is {path}, {kind}: to read it, {how_to_install('export')} ({error})"
        ) from None
    return read_initial(path, source_language, target_language)


def begun_with(initial: Checkpoint) -> dict[str, Any]:
    """Return where a first model came from, for the provenance of what is made of it."""
    data = initial.config.get("data") or {}
    told = {"progress": initial.config.get("progress"), "files": data.get("files")}
    if "imported" in initial.config:
        told["imported"] = initial.config["imported"]
    return told


def check_placeholders(recipe: Recipe, tokenizers: TokenizerPair) -> None:
    """Raise ``RecipeError`` where variants need placeholders that a vocabulary has not."""
    wanted = any(corpus.variants.placeholders for corpus in recipe.data.all_corpora)
    known = min(tokenizers.source.placeholders, tokenizers.target.placeholders)
    if wanted and known < MAX_PLACEHOLDERS:
        raise RecipeError(
            f"data.corpora: a corpus has placeholders, of which the vocabulary of "
            f"{recipe.training.initial} has {known}, not {MAX_PLACEHOLDERS}"
        )
