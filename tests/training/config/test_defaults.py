"""Defaults that follow from how long a run is."""

from pathlib import Path

import pytest

from dragoman_training.config.recipe import Recipe, TrainingSettings, recipe_from_dict
from dragoman_training.train.run_directory import dump, with_defaults_of_run
from dragoman_training.train.schedule import learning_rate


def recipe(**training: object) -> Recipe:
    return recipe_from_dict({"toy": {}, "training": training})


@pytest.mark.parametrize(
    ("max_steps", "warmup", "every"), [(3, 1, 1), (400, 40, 80), (100_000, 4000, 1000)]
)
def test_warm_up_validation_and_checkpoints_follow_the_steps(
    max_steps: int, warmup: int, every: int
) -> None:
    settled = recipe(max_steps=max_steps).with_defaults()
    assert settled.training.warmup_steps == warmup
    assert settled.validation.every == settled.checkpoints.every == every
    assert settled.with_defaults() == settled


def test_what_a_recipe_says_stays() -> None:
    table = {"toy": {}, "validation": {"every": 7}, "checkpoints": {"every": 9}}
    settled = recipe_from_dict({**table, "training": {"warmup_steps": 5}}).with_defaults()
    assert settled.training.warmup_steps == 5
    assert (settled.validation.every, settled.checkpoints.every) == (7, 9)


def test_a_short_run_has_a_peak_that_small_models_bear() -> None:
    """The paper's formula would give 0.0099 here, from which a Transformer learns nothing."""
    settings = TrainingSettings(max_steps=400)
    rates = [learning_rate(step, settings, 256) for step in range(1, 401)]
    assert max(rates) == rates[39] == pytest.approx((256 * 2000) ** -0.5)
    assert rates[0] == pytest.approx(rates[39] / 40)
    long = TrainingSettings(max_steps=25_000)
    assert learning_rate(2500, long, 256) == pytest.approx((256 * 2500) ** -0.5)


def test_a_warm_up_that_outlasts_the_run_is_warned_of() -> None:
    (warning,) = recipe(max_steps=400, warmup_steps=4000).warnings()
    assert warning.startswith("training.warmup_steps is 4000, and training.max_steps only 400: ")
    assert "Leave warmup_steps out" in warning
    assert recipe(max_steps=400).warnings() == []
    assert recipe(max_steps=400, warmup_steps=399).warnings() == []


def test_a_run_that_goes_on_for_longer_keeps_its_warm_up(tmp_path: Path) -> None:
    """Its learning rate would jump otherwise."""
    begun = with_defaults_of_run(recipe(max_steps=400), tmp_path)
    (tmp_path / "recipe.json").write_text(dump(begun))
    longer = recipe(max_steps=4000)
    assert with_defaults_of_run(longer, tmp_path).training.warmup_steps == 400  # nothing is trained
    (tmp_path / "checkpoints" / "step-00000400").mkdir(parents=True)
    assert with_defaults_of_run(longer, tmp_path).training.warmup_steps == 40
    named = recipe(max_steps=4000, warmup_steps=300)
    assert with_defaults_of_run(named, tmp_path).training.warmup_steps == 300
