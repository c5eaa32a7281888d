"""Trainers that are restored, and trainers whose numbers go wrong."""

from pathlib import Path

import pytest
import torch
from torch import nn

from dragoman_training.config.recipe import Recipe
from dragoman_training.data.prepared import PreparedData
from dragoman_training.errors import DivergedError
from dragoman_training.train import trainer as trainer_module
from dragoman_training.train.checkpoint import Checkpoint
from dragoman_training.train.trainer import Trainer
from support.trainers import ALONE, changed, largest_difference, trained, weights_of


def resumed(trainer: Trainer, path: Path) -> Trainer:
    """A new trainer that goes on from a checkpoint of this one, by way of the disk."""
    trainer.snapshot({}).save(path)
    fresh = Trainer(trainer.recipe, trainer.data, ALONE)
    fresh.restore(Checkpoint.load(path))
    return fresh


def test_a_restored_trainer_goes_on_bit_for_bit(
    recipe: Recipe, data: PreparedData, tmp_path: Path
) -> None:
    recipe = changed(recipe, model={"dropout": 0.1, "attention_dropout": 0.1})
    first = trained(recipe, data, 3)
    before = weights_of(first.model)
    second = resumed(first, tmp_path / "checkpoint")
    assert largest_difference(before, weights_of(second.model)) == 0
    torch.manual_seed(99)  # what others draw in between does not matter
    records = [trainer.update(stop=False)[0] for trainer in (second, first)]
    assert largest_difference(weights_of(first.model), weights_of(second.model)) == 0
    assert largest_difference(before, weights_of(first.model)) > 1e-4
    assert records[0] is not None
    assert records[1] is not None
    assert (records[0].step, records[0].loss) == (records[1].step, records[1].loss)
    assert first.progress.position == second.progress.position


def test_a_loss_that_is_no_number_stops_before_the_weights_change(
    recipe: Recipe, data: PreparedData
) -> None:
    trainer = trained(recipe, data, 1)
    with torch.no_grad():
        trainer.model.get_parameter("encoder.0.feed_forward.widen.bias")[0] = torch.nan
    before = weights_of(trainer.model)
    with pytest.raises(DivergedError, match="the loss is no longer a number at step 2"):
        trainer.update(stop=False)
    after = weights_of(trainer.model)
    torch.testing.assert_close(after, before, atol=0, rtol=0, equal_nan=True)
    assert trainer.progress.step == 1


class Poison:
    """Turns the gradient of one parameter into no number, while it is on."""

    def __init__(self, model: nn.Module) -> None:
        self.on = True
        parameter = model.get_parameter("decoder.0.feed_forward.widen.bias")
        parameter.register_hook(lambda grad: grad * torch.nan if self.on else grad)


def test_a_gradient_that_is_no_number_stops_before_the_weights_change(
    recipe: Recipe, data: PreparedData
) -> None:
    trainer = trained(recipe, data, 1)
    Poison(trainer.model)
    before = weights_of(trainer.model)
    with pytest.raises(DivergedError, match="the gradient is no longer a number at step 2"):
        trainer.update(stop=False)
    assert largest_difference(before, weights_of(trainer.model)) == 0


def use_float16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recipes can't ask for it on a CPU, where it is slow; but a CPU computes it."""
    monkeypatch.setattr(trainer_module, "autocast_dtype", lambda precision, device: torch.float16)


def test_float16_updates_follow_those_of_float32(
    recipe: Recipe, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    single = Trainer(recipe, data, ALONE)
    use_float16(monkeypatch)
    half = Trainer(recipe, data, ALONE)
    before = weights_of(half.model)
    for _ in range(2):
        records = [trainer.update(stop=False)[0] for trainer in (half, single)]
        assert records[0] is not None
        assert records[1] is not None
        assert records[0].loss != records[1].loss
        assert records[0].loss == pytest.approx(records[1].loss, rel=1e-2)
        assert records[0].gradient_norm == pytest.approx(records[1].gradient_norm, rel=1e-2)
    assert largest_difference(weights_of(half.model), before) > 5e-3
    assert largest_difference(weights_of(half.model), weights_of(single.model)) < 1e-3


def test_float16_skips_steps_without_a_gradient_but_not_forever(
    recipe: Recipe, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_float16(monkeypatch)
    trainer = Trainer(recipe, data, ALONE)
    poison = Poison(trainer.model)
    before = weights_of(trainer.model)
    for _ in range(trainer_module.MAX_SKIPPED):
        trainer.update(stop=False)
    assert largest_difference(before, weights_of(trainer.model)) == 0
    poison.on = False
    trainer.update(stop=False)
    assert largest_difference(before, weights_of(trainer.model)) > 0
    poison.on = True
    before = weights_of(trainer.model)
    for _ in range(trainer_module.MAX_SKIPPED):  # only those in a row count
        trainer.update(stop=False)
    with pytest.raises(DivergedError):
        trainer.update(stop=False)
    assert largest_difference(before, weights_of(trainer.model)) == 0


def test_the_loss_scale_is_kept_in_a_checkpoint(
    recipe: Recipe, data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_float16(monkeypatch)
    trainer = Trainer(recipe, data, ALONE)
    start = trainer.snapshot({}).state
    poison = Poison(trainer.model)
    trainer.update(stop=False)
    poison.on = False
    trainer.update(stop=False)
    lowered = resumed(trainer, tmp_path / "checkpoint").snapshot({}).state
    assert start is not None
    assert lowered is not None
    assert lowered["scaler"]["scale"] == start["scaler"]["scale"] / 2
