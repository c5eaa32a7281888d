"""The settings of several corpora in a recipe: what is wrong is named in one line."""

import json
from typing import Any

import pytest

from dragoman_training.config.data_settings import CorpusSettings, DataSettings
from dragoman_training.config.recipe import load_recipe, recipe_from_dict
from dragoman_training.errors import RecipeError
from support import ROOT
from support.corpora import LANGUAGES, Table


@pytest.mark.parametrize(
    ("corpora", "message"),
    [
        ([{"source": "a.tsv"}], "data.corpora[0].name and source are needed for each corpus"),
        ([{"name": "a"}], "data.corpora[0].name and source are needed for each corpus"),
        (
            [{"name": "a", "source": "a.tsv"}, {"name": "b", "source": "b", "weight": -1}],
            "data.corpora[1].weight is -1.0: it must be at least 0",
        ),
        (
            [{"name": "a", "source": "a.tsv", "weight": 1001}],
            "data.corpora[0].weight is 1001.0: it must be at most 1000.0",
        ),
        (
            [{"name": "a", "source": "a.tsv", "weight": "much"}],
            "data.corpora[0].weight is 'much': it must be a number",
        ),
        (
            [{"name": "a", "source": "a.tsv", "wieght": 1}],
            "data.corpora[0].wieght: unknown key; did you mean weight?",
        ),
        (
            [{"name": "a", "source": "a.tsv", "variants": {"uper": 1}}],
            "data.corpora[0].variants.uper: unknown key; did you mean upper?",
        ),
        (
            [{"name": "a", "source": "a.tsv", "variants": {"upper": 2}}],
            "data.corpora[0].variants.upper is 2.0: it must be at most 1",
        ),
        (
            [{"name": "a", "source": "a.tsv", "label_weights": {"x": 1}}],
            "data.corpora[0].label_weights need labels: a file with the label of each line",
        ),
        (
            [{"name": "a", "source": "a", "labels": "l", "label_weights": {"x/*": float("nan")}}],
            "data.corpora[0].label_weights.x/* is nan: it must be at least 0",
        ),
        (
            [{"name": "a", "source": "a", "labels": "l", "label_weights": 3}],
            "data.corpora[0].label_weights is 3: it must be a table",
        ),
        (
            [{"name": "a", "source": "a.tsv", "max_ratio": 0.5}],
            "data.corpora[0].max_ratio is 0.5: it must be at least 1",
        ),
        (
            [{"name": "a", "source": "a.tsv"}, {"name": "a", "source": "b.tsv"}],
            "data.corpora: two are called 'a'",
        ),
        (["a.tsv"], "data.corpora is 'a.tsv': it must be a section of settings"),
    ],
)
def test_a_bad_setting_is_named_in_one_line(corpora: list[Any], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        recipe_from_dict({"data": {**LANGUAGES, "corpora": corpora}})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"train_source": "a", "corpora": [{"name": "a", "source": "a.tsv"}]},
            "data.train_source and corpora exclude each other: use one of them",
        ),
        (
            {"train_source": "a", "valid_source": "v", "validation": [{"source": "v"}]},
            "data.valid_source and validation exclude each other: use one of them",
        ),
        (
            {"train_source": "a", "validation": [{"source": "v"}, {"source": "w"}]},
            "data.validation: two are called 'valid'",
        ),
        (
            {"train_source": "a", "validation": [{"name": "v"}]},
            "data.validation[0].name and source are needed for each validation text",
        ),
        *(
            (
                {"train_source": "a", "validation": [{"name": name, "source": "v"}]},
                f"data.validation[0].name is {name!r}: it must have no slash and begin with no dot",
            )
            for name in ("a/b", "..")
        ),
    ],
)
def test_what_excludes_each_other_is_named_in_one_line(data: Table, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        recipe_from_dict({"data": {**LANGUAGES, **data}})
    assert str(caught.value) == message


def test_one_corpus_may_be_written_the_short_way() -> None:
    short = DataSettings(
        train_source=("a",), train_target=("b",), max_ratio=3.0, remove_duplicates=False
    )
    expected = CorpusSettings(
        name="train", source=("a",), target=("b",), max_ratio=3.0, remove_duplicates=False
    )
    assert short.all_corpora == (expected,)


def test_a_recipe_survives_being_written_and_read() -> None:
    recipe = load_recipe(ROOT / "recipes" / "en-pt.toml", [])
    assert recipe_from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
