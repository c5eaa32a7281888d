"""Training that begins with a model: its weights and vocabulary, another text."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman_export.source import provenance
from dragoman_training.config.recipe import Recipe, recipe_from_dict
from dragoman_training.errors import CheckpointError, RecipeError
from dragoman_training.report.records import Observer
from dragoman_training.train.checkpoint import Checkpoint, weights_of
from dragoman_training.train.run import train
from dragoman_training.train.trainer import Trainer
from support.corpora import prepared
from support.trainers import ALONE


def recipe_of(text: tuple[Path, Path], **training: Any) -> Recipe:
    return recipe_from_dict(
        {
            "data": {
                "source_language": "en",
                "target_language": "pt",
                "train_source": [str(text[0])],
                "train_target": [str(text[1])],
                "max_tokens": 32,
            },
            "tokenizer": {"vocabulary": 320},
            "model": {"preset": "tiny", "width": 16, "max_length": 32},
            "training": {"max_steps": 3, "batch_tokens": 512, "warmup_steps": 2, **training},
            "checkpoints": {"every": 1},
        }
    )


@pytest.fixture
def first(parallel_text: tuple[Path, Path], tmp_path: Path) -> Path:
    """A run that has ended."""
    train(recipe_of(parallel_text), tmp_path / "first", Observer())
    return tmp_path / "first"


@pytest.fixture
def other_text(tmp_path: Path) -> tuple[Path, Path]:
    """With words that the first text does not have."""
    source, target = tmp_path / "other.en", tmp_path / "other.pt"
    source.write_text("".join(f"xylophone number {n}\n" for n in range(40)))
    target.write_text("".join(f"xilofone de número {n}\n" for n in range(40)))
    return source, target


def test_it_begins_with_the_weights_and_vocabulary_of_the_model(
    first: Path, other_text: tuple[Path, Path], tmp_path: Path
) -> None:
    recipe = recipe_of(other_text, initial=str(first))
    data = prepared(recipe, tmp_path / "data")
    final = Checkpoint.load(first / "final")
    assert data.tokenizers.files() == final.tokenizers.files()
    weights = weights_of(Trainer(recipe, data, ALONE).model)
    assert weights.keys() == final.weights.keys()
    assert all(torch.equal(weights[name], final.weights[name]) for name in weights)
    assert data.provenance["initial"]["progress"]["step"] == 3


def test_its_run_holds_all_it_needs(
    first: Path, other_text: tuple[Path, Path], tmp_path: Path
) -> None:
    """The first model may go: the run is resumed without it, to the same bits."""
    recipe, output = recipe_of(other_text, initial=str(first)), tmp_path / "second"
    short = replace(recipe, training=replace(recipe.training, max_steps=2))
    train(recipe, output, Observer())
    train(short, tmp_path / "again", Observer())
    shutil.rmtree(first)
    train(recipe, tmp_path / "again", Observer())
    one, other = (Checkpoint.load(run / "final").weights for run in (output, tmp_path / "again"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_another_architecture_is_refused_and_named(
    first: Path, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    recipe = recipe_of(parallel_text, initial=str(first))
    for change, message in (
        ({"heads": 2}, "model.heads is 2: .*first.*final.* has 4"),
        ({"norm": "pre"}, "model.norm is 'pre'"),
    ):
        table = json.loads(json.dumps(recipe.to_dict()))
        table["model"].update(change)
        with pytest.raises(RecipeError, match=message):
            prepared(recipe_from_dict(table), tmp_path / "data")
        assert not (tmp_path / "data").exists()


def test_how_the_first_model_was_trained_does_not_matter(
    first: Path, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    recipe = recipe_of(parallel_text, initial=str(first))
    dropped = replace(recipe, model=replace(recipe.model, dropout=0.4))
    assert prepared(dropped, tmp_path / "data").initial is not None


def test_what_is_no_checkpoint_is_refused(parallel_text: tuple[Path, Path], tmp_path: Path) -> None:
    recipe = recipe_of(parallel_text, initial=str(tmp_path / "nowhere"))
    with pytest.raises(CheckpointError, match="nowhere"):
        train(recipe, tmp_path / "run", Observer())
    assert not (tmp_path / "run").exists()


def test_a_run_that_began_otherwise_does_not_take_it_up(
    first: Path, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    plain, begun = recipe_of(parallel_text), recipe_of(parallel_text, initial=str(first))
    with pytest.raises(RecipeError, match=r"was prepared without training\.initial"):
        train(begun, first, Observer())
    train(begun, tmp_path / "second", Observer())
    with pytest.raises(RecipeError, match=r"was prepared with training\.initial"):
        train(plain, tmp_path / "second", Observer())


def test_a_bundle_does_not_say_where_the_first_model_was(
    first: Path, other_text: tuple[Path, Path], tmp_path: Path
) -> None:
    train(recipe_of(other_text, initial=str(first)), tmp_path / "second", Observer())
    config = Checkpoint.load(tmp_path / "second" / "final").config
    told = provenance(config)
    assert told["recipe"]["training"]["initial"] == "first"
    assert str(tmp_path) not in json.dumps(told)
