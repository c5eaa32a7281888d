"""The directory of a run: what is in it, and whether a recipe may go on with it."""

import json
import re
from dataclasses import replace
from pathlib import Path

from dragoman_training.config.recipe import Recipe, recipe_from_dict
from dragoman_training.config.tables import flat, read_dict
from dragoman_training.errors import RecipeError

RECIPE, DATA, CHECKPOINTS, FINAL = "recipe.json", "data", "checkpoints", "final"

MAY_CHANGE = (
    "training.max_steps",
    "training.log_every",
    "training.device",
    # Another machine may be faster in another one.
    "training.precision",
    # What the advice after a diverged run names.
    "training.learning_rate",
    "training.warmup_steps",
    "training.clip_norm",
)
"""Settings that may differ when a run goes on, beside those of validation and checkpoints."""

_PATHS = re.compile(
    r"data\.(directory|(train|valid)_(source|target))|training\.initial|"
    r"data\.(corpora|validation)\.\d+\.(directory|source|target|labels)"
)
"""What they lead to is in the prepared data, so they may move."""


def dump(recipe: Recipe) -> str:
    """Return a recipe as it is stored."""
    return json.dumps(recipe.to_dict(), indent=2, ensure_ascii=False) + "\n"


def check_is_a_run(output: Path) -> None:
    """Raise ``RecipeError`` for a directory that is not ours: nothing of it may be touched."""
    if output.exists() and not output.is_dir():
        raise RecipeError(f"{output}: a file, not a directory")
    ours = any((output / name).exists() for name in (RECIPE, f"{DATA}/prepared.json"))
    if output.is_dir() and not ours:
        for other in output.iterdir():
            if other.name != f".{DATA}.partial":
                raise RecipeError(f"{output}: neither empty nor a training run ({other.name})")


def with_defaults_of_run(recipe: Recipe, output: Path) -> Recipe:
    """Return a recipe with its defaults filled in, for the run in a directory.

    A run that goes on for more steps keeps the warm-up that it began with, unless the recipe names
    another: the learning rate would jump otherwise.
    """
    settled = recipe.with_defaults()
    if recipe.training.warmup_steps is not None or not any((output / CHECKPOINTS).glob("step-*")):
        return settled
    try:
        stored = recipe_from_dict(read_dict(output / RECIPE)).training.warmup
    except (RecipeError, OSError, ValueError):
        return settled  # whoever goes on with the run says what is wrong with it
    return replace(settled, training=replace(settled.training, warmup_steps=stored))


def check_same_recipe(recipe: Recipe, output: Path) -> None:
    """Raise ``RecipeError`` where a run began with other settings that its result depends on."""
    try:
        # What an older version did not know yet has its default.
        stored = recipe_from_dict(read_dict(output / RECIPE))
    except RecipeError as error:
        raise RecipeError(f"{output / RECIPE}: {error}") from None
    before, now = (flat(json.loads(dump(r))) for r in (stored, recipe))
    may_change: tuple[str, ...] = MAY_CHANGE
    if recipe.training.schedule == "cosine":  # its rate depends on the number of steps
        may_change = tuple(key for key in may_change if key != "training.max_steps")
    for key in sorted(before.keys() | now.keys()):
        free = key in may_change or key.startswith(("validation.", "checkpoints."))
        is_path = _PATHS.fullmatch(key) is not None
        if not free and not is_path and before.get(key) != now.get(key):
            raise RecipeError(
                f"{output} holds a run with {key} = {before.get(key)!r}, not {now.get(key)!r}: "
                "choose another --output, or go on with the same setting"
            )
