"""The model that a run begins with, where that is not random weights."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dragoman_training.config.recipe import Recipe
from dragoman_training.data.rules.placeholders import MAX_PLACEHOLDERS
from dragoman_training.data.tokenizer import TokenizerPair
from dragoman_training.errors import RecipeError
from dragoman_training.train.checkpoint import Checkpoint, find_checkpoint

_HOW_TRAINED = {"dropout", "attention_dropout", "activation_dropout"}
"""Settings of a model that its weights do not depend on."""


def load_initial(recipe: Recipe) -> Checkpoint | None:
    """Return the weights and tokenizers that a recipe begins with, if it names any."""
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


def begun_with(initial: Checkpoint) -> dict[str, Any]:
    """Return where a first model came from, for the provenance of what is made of it."""
    data = initial.config.get("data") or {}
    return {"progress": initial.config.get("progress"), "files": data.get("files")}


def check_placeholders(recipe: Recipe, tokenizers: TokenizerPair) -> None:
    """Raise ``RecipeError`` where variants need placeholders that a vocabulary has not."""
    wanted = any(corpus.variants.placeholders for corpus in recipe.data.all_corpora)
    known = min(tokenizers.source.placeholders, tokenizers.target.placeholders)
    if wanted and known < MAX_PLACEHOLDERS:
        raise RecipeError(
            f"data.corpora: a corpus has placeholders, of which the vocabulary of "
            f"{recipe.training.initial} has {known}, not {MAX_PLACEHOLDERS}"
        )
