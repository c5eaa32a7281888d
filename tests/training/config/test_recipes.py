"""The recipes that come with the project: each one loads, and says how to run it."""

import re
import tomllib
from pathlib import Path

import pytest

from dragoman_training.config.recipe import Recipe, load_recipe
from dragoman_training.models.build import build_model
from support import ROOT

DIRECTORY = ROOT / "recipes"
RECIPES = sorted(DIRECTORY.glob("*.toml"))
FILES = ("train_source", "train_target", "valid_source", "valid_target")


def load(path: Path) -> Recipe:
    """With made-up paths where the recipe reads files; they are not opened."""
    table = tomllib.loads(path.read_text())
    names_files = "toy" in table or "corpora" in table["data"]
    return load_recipe(path, [] if names_files else [f"data.{name}={name}.gz" for name in FILES])


def parameters(name: str) -> int:
    recipe = load(DIRECTORY / name)
    size = recipe.tokenizer.vocabulary
    model = build_model(recipe.model, source_vocabulary=size, target_vocabulary=size)
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_loads_and_opens_with_its_command(path: Path) -> None:
    recipe = load(path)
    opening = path.read_text().partition("\n[")[0]
    assert all(line.startswith("#") for line in opening.splitlines() if line)
    assert f"dragoman train recipes/{path.name}" in opening
    named = set(re.findall(r"--set data\.(\w+)=", opening))
    if recipe.data.corpora:
        assert named == {"directory"}
    else:
        assert named == (set() if recipe.toy else set(FILES))
    if not recipe.toy:  # no path of anybody's machine
        table = tomllib.loads(path.read_text())
        assert not set(table["data"]) & {"directory", *FILES}


def test_there_are_recipes() -> None:
    assert len(RECIPES) >= 6


def test_what_is_compared_with_each_other_is_of_one_size_on_the_same_tokens() -> None:
    names = [f"multi30k-en-de{kind}.toml" for kind in ("", "-gru", "-gru-attention")]
    recipes = [load(DIRECTORY / name) for name in names]
    for recipe in recipes[1:]:
        assert (recipe.data, recipe.tokenizer) == (recipes[0].data, recipes[0].tokenizer)
        assert recipe.training.batch_tokens == recipes[0].training.batch_tokens
    sizes = [parameters(name) for name in names]
    assert max(sizes) < 1.03 * min(sizes)


def test_the_published_recipe_is_that_of_the_paper() -> None:
    recipe = load(DIRECTORY / "multi30k-en-de-published.toml")
    model, training = recipe.model, recipe.training
    assert model.kind == "transformer"
    assert (model.encoder_layers, model.decoder_layers, model.heads) == (4, 4, 4)
    assert (model.width, model.feed_forward, model.dropout) == (128, 256, 0.3)
    assert (model.tied_embeddings, recipe.tokenizer.kind) == ("all", "bpe")
    assert (training.max_steps, training.batch_tokens) == (8000, 8192)
    assert (training.learning_rate, training.warmup_steps) == (0.005, 2000)
    assert recipe.checkpoints.average == 10
    assert recipe.data.tokenized
