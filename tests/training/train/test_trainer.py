"""Updates of the weights, against the formulas written out with PyTorch."""

import copy
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dragoman_training.config.recipe import Recipe
from dragoman_training.data.batch import Batch
from dragoman_training.data.batching import Position, batches_from
from dragoman_training.data.prepared import PreparedData
from dragoman_training.train.schedule import learning_rate
from dragoman_training.train.trainer import Trainer
from support.trainers import (
    ALONE,
    CPU,
    changed,
    largest_difference,
    logits_and_labels,
    trained,
    weights_of,
)


class ByHand:
    """The trainer's updates in plain PyTorch, with no part of it but the model and the batches."""

    def __init__(self, recipe: Recipe, data: PreparedData, model: nn.Module) -> None:
        self.recipe = recipe
        self.settings = settings = recipe.training
        self.model = copy.deepcopy(model).train()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            betas=settings.adam_betas,
            eps=settings.adam_epsilon,
            weight_decay=settings.weight_decay,
        )
        self.batches: Iterator[Batch] = (
            Batch.of([data.train[int(i)] for i in indices], CPU)
            for indices, _ in batches_from(
                data.train, Position(), tokens=settings.batch_tokens, seed=recipe.seed
            )
        )
        self.step = 0

    def update(self) -> tuple[float, float, float]:
        """Returns the loss, the perplexity and the norm of the gradient before it is clipped."""
        settings = self.settings
        batches = list(islice(self.batches, settings.accumulate))
        tokens = [int(batch.target_lengths_B.sum()) for batch in batches]
        assert len(set(tokens)) == len(tokens)  # or a mean of means would be the mean of all
        smoothed = torch.zeros(())
        nll = 0.0
        for batch in batches:
            logits_NV, label_N = logits_and_labels(self.model, batch)
            smoothed = smoothed + F.cross_entropy(
                logits_NV, label_N, label_smoothing=settings.label_smoothing, reduction="sum"
            )
            nll += F.cross_entropy(logits_NV, label_N, reduction="sum").item()
        loss = smoothed / sum(tokens)
        self.optimizer.zero_grad()
        loss.backward()
        limit = settings.clip_norm or float("inf")
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit).item()
        self.step += 1
        rate = learning_rate(self.step, settings, self.recipe.model.width)
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.step()
        return loss.item(), torch.tensor(nll / sum(tokens)).exp().item(), norm


@pytest.mark.parametrize("updates", [1, 3])
@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("clip_norm", [0.05, 0.0])
def test_updates_are_those_of_the_formulas(
    recipe: Recipe, data: PreparedData, updates: int, accumulate: int, clip_norm: float
) -> None:
    recipe = changed(recipe, training={"accumulate": accumulate, "clip_norm": clip_norm})
    trainer = Trainer(recipe, data, ALONE)
    by_hand = ByHand(recipe, data, trainer.model)
    for _ in range(updates):
        record, _ = trainer.update(stop=False)
        loss, perplexity, norm = by_hand.update()
        assert norm > 10 * clip_norm
        assert record is not None
        assert record.loss == pytest.approx(loss, rel=1e-5)
        assert record.perplexity == pytest.approx(perplexity, rel=1e-4)
        assert record.gradient_norm == pytest.approx(norm, rel=1e-4)
    expected = weights_of(by_hand.model)
    torch.testing.assert_close(weights_of(trainer.model), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "other",
    [
        {"label_smoothing": 0.0},
        {"clip_norm": 0.0},
        {"clip_norm": 0.1},
        {"weight_decay": 0.0},
        {"adam_betas": (0.9, 0.9)},
        {"adam_betas": (0.8, 0.98)},
        {"adam_epsilon": 1e-4},
        {"learning_rate": 0.011},
        {"accumulate": 2},
    ],
    ids=str,
)
def test_every_setting_of_the_updates_matters(
    recipe: Recipe, data: PreparedData, other: dict[str, Any]
) -> None:
    """By much more than the tolerance above, so the formulas hold for no other values."""
    one = weights_of(trained(recipe, data, 3).model)
    two = weights_of(trained(changed(recipe, training=other), data, 3).model)
    assert largest_difference(one, two) > 1e-4


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "cosine"])
def test_every_update_has_the_rate_of_the_schedule(
    recipe: Recipe, data: PreparedData, schedule: str
) -> None:
    recipe = changed(recipe, training={"schedule": schedule, "max_steps": 8, "final_rate": 0.1})
    trainer = Trainer(recipe, data, ALONE)
    rates = []
    for step in range(1, 6):
        record, _ = trainer.update(stop=False)
        rates.append(learning_rate(step, recipe.training, recipe.model.width))
        (adam,) = trainer.optimizers.all
        assert [group["lr"] for group in adam.param_groups] == rates[-1:]
        assert record is not None
        assert record.learning_rate == rates[-1]
    assert len(set(rates)) == 5
