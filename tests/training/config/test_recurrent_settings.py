"""The settings of recurrent models in a recipe."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman_training.config.recipe import recipe_from_dict
from dragoman_training.errors import RecipeError
from dragoman_training.models.settings import RecurrentSettings

DATA = {"source_language": "en", "target_language": "de", "train_source": ["a"]}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"kind": "gru"}, "model.kind is 'gru': it must be one of transformer, recurrent"),
        ({"kind": 3}, "model.kind is 3: it must be one of transformer, recurrent"),
        (
            {"kind": "recurrent", "heads": 4},
            "model.heads: a setting of kind 'transformer', not of 'recurrent'",
        ),
        ({"layers": 2}, "model.layers: a setting of kind 'recurrent', not of 'transformer'"),
        (
            {"kind": "recurrent", "preset": "tiny"},
            "model.preset: a setting of kind 'transformer', not of 'recurrent'",
        ),
        (
            {"kind": "recurrent", "attention": "dot"},
            "model.attention is 'dot': it must be one of none, additive",
        ),
        ({"kind": "recurrent", "layers": 0}, "model.layers is 0: it must be at least 1"),
        ({"kind": "recurrent", "embeding": 8}, "model.embeding: unknown key; did you mean embed"),
        (
            {"kind": "recurrent", "max_length": 64},
            "data.max_tokens is 128: it must be at most model.max_length, which is 64",
        ),
    ],
    ids=str,
)
def test_a_setting_of_the_wrong_kind_is_named(model: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        recipe_from_dict({"data": DATA, "model": model})
    assert str(caught.value).startswith(message)


def test_a_recipe_has_one_kind_and_survives_being_written(tmp_path: Path) -> None:
    recurrent = recipe_from_dict({"data": DATA, "model": {"kind": "recurrent"}})
    assert recurrent.model == RecurrentSettings()
    assert recipe_from_dict(json.loads(json.dumps(recurrent.to_dict()))) == recurrent
    old = recipe_from_dict({"data": DATA}).to_dict()
    del old["model"]["kind"]
    assert recipe_from_dict(old) == recipe_from_dict({"data": DATA})
    with pytest.raises(RecipeError, match=r"training\.compile is true: .*'recurrent'"):
        recipe_from_dict(
            {"data": DATA, "model": {"kind": "recurrent"}, "training": {"compile": True}}
        )
