"""Trainers without a run around them, and what they did to the weights."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from dragoman_training.config.recipe import Recipe
from dragoman_training.data.batch import Batch
from dragoman_training.data.prepared import PreparedData
from dragoman_training.train.distributed import World
from dragoman_training.train.trainer import Trainer

CPU = torch.device("cpu")
ALONE = World(0, 1, CPU)

Weights = dict[str, Tensor]


def changed(recipe: Recipe, **sections: dict[str, Any]) -> Recipe:
    """The recipe with some settings of some sections replaced."""
    return replace(
        recipe,
        **{name: replace(getattr(recipe, name), **new) for name, new in sections.items()},
    )


def weights_of(model: nn.Module) -> Weights:
    """A copy, which further training leaves alone."""
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def largest_difference(one: Weights, other: Weights) -> float:
    return max((one[name] - other[name]).abs().max().item() for name in one)


def trained(recipe: Recipe, data: PreparedData, updates: int) -> Trainer:
    trainer = Trainer(recipe, data, ALONE)
    for _ in range(updates):
        trainer.update(stop=False)
    return trainer


def logits_and_labels(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Of every real target position: [N, V] and [N]."""
    logits_BTV = model(
        batch.source_BS, batch.source_lengths_B, batch.input_BT, batch.target_lengths_B
    )
    positions_T = torch.arange(batch.label_BT.shape[1])
    real_BT = positions_T < batch.target_lengths_B[:, None]
    return logits_BTV[real_BT], batch.label_BT[real_BT]
