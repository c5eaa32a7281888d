"""Weights of a model from elsewhere, taken by name: each is checked, and none is forgotten."""

from collections.abc import Mapping

import torch
from torch import Tensor

from dragoman_export.errors import ExportError


class TakenWeights:
    """Weights by their names, which notes those that were used."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self._weights = weights
        self.used: set[str] = set()

    def one(self, shape: tuple[int, ...], *names: str) -> Tensor:
        """Return a weight that a file may hold under any of its names, or under several."""
        found = [name for name in names if name in self._weights]
        if not found:
            raise ExportError(f"no weight is named {names[0]}")
        first, *others = (self._checked(name, shape) for name in found)
        for name, other in zip(found[1:], others, strict=True):
            if not torch.equal(first, other):
                raise ExportError(f"{name} differs from {found[0]}, which it is tied to")
        return first

    def maybe(self, name: str, shape: tuple[int, ...]) -> Tensor | None:
        """Return a weight that a file may leave out."""
        return self._checked(name, shape) if name in self._weights else None

    def _checked(self, name: str, shape: tuple[int, ...]) -> Tensor:
        tensor = self._weights[name]
        self.used.add(name)
        if tuple(tensor.shape) != shape:
            raise ExportError(f"{name} is {list(tensor.shape)}, not {list(shape)}")
        if tensor.isnan().any():
            raise ExportError(f"{name} has what is not a number")
        return tensor

    def check_all_used(self) -> None:
        """Raise ``ExportError`` if there is a weight that was not asked for."""
        for name in sorted(self._weights.keys() - self.used):
            raise ExportError(f"{name}: a weight that the architecture has no place for")
