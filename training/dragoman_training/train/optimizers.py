"""The optimizers: Adam, as in the paper, or Muon for the matrices inside the layers.

Muon (Jordan et al., 2024) makes each update of a matrix orthogonal, so that no direction of it is
learnt at the cost of others. Embeddings, norms and biases are not such matrices: Adam takes those.
Its steps are scaled to the size of Adam's (Liu et al., 2025), so both take one learning rate.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from dragoman_training.config.recipe import TrainingSettings
from dragoman_training.models.base import AnyModel

_MUON_MOMENTUM = 0.95


class Optimizers:
    """One or two optimizers that share out the parameters of a model."""

    def __init__(self, model: AnyModel, settings: TrainingSettings) -> None:
        matrices: list[nn.Parameter] = []
        if settings.optimizer == "muon":
            matrices = list(_inner_matrices(model))
        taken = {id(matrix) for matrix in matrices}
        others = [p for p in model.parameters() if id(p) not in taken]
        # Without decay this is plain Adam.
        self.all: list[Optimizer] = [
            torch.optim.AdamW(
                others,
                lr=0.0,
                betas=settings.adam_betas,
                eps=settings.adam_epsilon,
                weight_decay=settings.weight_decay,
                fused=True,
            )
        ]
        if matrices:
            self.all.append(
                torch.optim.Muon(
                    matrices,
                    lr=0.0,
                    weight_decay=settings.weight_decay,
                    momentum=_MUON_MOMENTUM,
                    adjust_lr_fn="match_rms_adamw",
                )
            )
        self._owner = {
            parameter: optimizer
            for optimizer in self.all
            for group in optimizer.param_groups
            for parameter in group["params"]
        }

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next step."""
        for optimizer in self.all:
            for group in optimizer.param_groups:
                group["lr"] = rate

    def clear(self) -> None:
        """Forget the gradients."""
        for optimizer in self.all:
            optimizer.zero_grad(set_to_none=True)

    def moments(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return what is remembered of a parameter's gradients."""
        return self._owner[parameter].state[parameter]

    def set_moments(self, parameter: Tensor, moments: dict[str, Tensor]) -> None:
        """Go on from what was remembered earlier."""
        self._owner[parameter].state[parameter] = moments


def _inner_matrices(model: AnyModel) -> Iterator[nn.Parameter]:
    """Yield the matrices that are neither an embedding nor the output projection."""
    tables = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    tables.add(id(model.projection.weight))
    for parameter in model.parameters():
        if parameter.ndim == 2 and id(parameter) not in tables:
            yield parameter
