"""Recipes: what is accepted, and one clear line for what is not."""

from pathlib import Path

import pytest

from dragoman_training.config.recipe import load_recipe, recipe_from_dict
from dragoman_training.errors import RecipeError
from dragoman_training.models.settings import PRESETS, TransformerSettings

MINIMAL = """
[data]
source_language = "en"
target_language = "pt"
train_source = ["a.en", "b.en.gz"]
train_target = ["a.pt", "b.pt.gz"]
"""


@pytest.fixture
def minimal(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(MINIMAL)
    return path


def test_defaults_are_the_papers_base_model(minimal: Path) -> None:
    recipe = load_recipe(minimal, [])
    assert isinstance(recipe.model, TransformerSettings)
    assert (recipe.model.width, recipe.model.heads, recipe.model.encoder_layers) == (512, 8, 6)
    assert recipe.data.train_source == ("a.en", "b.en.gz")
    assert recipe.training.learning_rate is None


def test_preset_is_a_start_for_other_settings(minimal: Path) -> None:
    recipe = load_recipe(minimal, ["model.preset=big", "model.dropout=0.2"])
    assert isinstance(recipe.model, TransformerSettings)
    assert (recipe.model.width, recipe.model.dropout) == (1024, 0.2)


def test_values_on_the_command_line_are_toml_or_plain_text(minimal: Path) -> None:
    recipe = load_recipe(
        minimal,
        [
            "training.max_steps=5",
            "training.learning_rate=1e-3",
            "training.compile=true",
            "data.valid_source=../valid.en.gz",
            'data.valid_target=["x.pt"]',
        ],
    )
    assert recipe.training.max_steps == 5
    assert recipe.training.learning_rate == 1e-3
    assert recipe.training.compile is True
    assert recipe.data.valid_source == ("../valid.en.gz",)
    assert recipe.data.valid_target == ("x.pt",)


def test_survives_being_written_and_read(minimal: Path) -> None:
    recipe = load_recipe(minimal, ["model.preset=tiny"])
    assert recipe_from_dict(recipe.to_dict()) == recipe


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_valid(minimal: Path, preset: str) -> None:
    load_recipe(minimal, [f"model.preset={preset}"])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.widht=8", "model.widht: unknown key; did you mean width?"),
        ("trainign.max_steps=8", "trainign: unknown key; did you mean training?"),
        ("model.presett=base", "model.presett: unknown key; did you mean preset?"),
        ("model.preset=huge", "model.preset is 'huge': it must be one of tiny, small, base, big"),
        ("model.width=wide", "model.width is 'wide': it must be a whole number"),
        ("model.width=1.5", "model.width is 1.5: it must be a whole number"),
        ("model.width=true", "model.width is True: it must be a whole number"),
        ("model.dropout=1.0", "model.dropout is 1.0: it must be at least 0 and below 1"),
        ("model.dropout=nan", "model.dropout is nan: it must be at least 0 and below 1"),
        ("model.heads=0", "model.heads is 0: it must be at least 1"),
        ("model.heads=7", "model.width is 512 and heads is 7: the width must be a multiple"),
        (
            "model.activation=tanh",
            "model.activation is 'tanh': it must be one of relu, gelu, swish",
        ),
        ("model.decoder=gru", "model.decoder is 'gru': it must be one of attention, ssru"),
        ("model.decoder_start=0", "model.decoder_start is 0: it must be"),
        ("tokenizer.joint=false", "model.tied_embeddings is 'all': that needs tokenizer.joint"),
        ("tokenizer.vocabulary=10", "tokenizer.vocabulary is 10: it must be at least 261"),
        ("training.batch_tokens=10", "training.batch_tokens is 10: it must be at least"),
        ("training.adam_betas=[0.9]", "training.adam_betas is [0.9]: it must have 2 values"),
        ("training.learning_rate=0", "training.learning_rate is 0.0: it must be above 0"),
        ("data.max_tokens=1000", "data.max_tokens is 1000: it must be at most model.max_length"),
        ("data.joined=11", "data.joined is 11.0: it must be at most 10"),
        ("data.joined_pairs=1", "data.joined_pairs is 1: it must be at least 2"),
        ("data.joined_pairs=65", "data.joined_pairs is 65: it must be at most 64"),
        ("data.train_source=[]", "data.train_source is empty"),
        ("data.train_source=[1]", "data.train_source is 1: it must be a text"),
        ("data.source_language=''", "data.source_language and data.target_language are needed"),
        ("checkpoints.average=9", "checkpoints.average is 9: it must be at most keep"),
        ("model=3", "model is 3: it must be a section of settings"),
        ("seed=5000000000", "seed is 5000000000: it must be at most 4294967295"),
        ("model.preset=[1]", "model.preset is [1]: it must be one of"),
        ("training.learning_rate=inf", "training.learning_rate is inf: it must be above 0"),
        ("training.final_rate=5", "training.final_rate is 5.0: it must be at most 1"),
        ("validation.patience=3", "validation.patience needs validation text"),
        ("checkpoints.average_of=best", "checkpoints.average_of = 'best' needs validation text"),
        ("toy.task=reverse", "toy makes its own text: data must name no files"),
        ("seed", "--set seed: write it as section.key=value"),
        ("seed.x=1", "seed is {'x': 1}: it must be a whole number"),
    ],
)
def test_a_bad_setting_is_named(minimal: Path, override: str, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(minimal, [override])
    assert str(caught.value).startswith(f"{minimal}: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"a = = 1\n", "line 1"), (b'a = "\xff"', "utf-8"), (None, "no such file")],
)
def test_an_unreadable_recipe_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "bad.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RecipeError, match=message) as caught:
        load_recipe(path, [])
    assert str(path) in str(caught.value)
