"""Dropout, with a mask that is cheap to draw on a CPU.

PyTorch draws one number per element with ``bernoulli_``, from a serial generator: on a CPU that was
a fifth of a training step. Here one 64-bit draw decides for four elements, 16 bits each, so the
probability is rounded to 1/65536 and the scale that makes up for it uses the rounded value.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_LEVELS = 1 << 16
_LOWEST = -(1 << 15)


def keep_mask(shape: torch.Size, probability: float, dtype: torch.dtype) -> Tensor:
    """0 for a dropped element, 1 / (share that is kept) for the others; on the CPU."""
    dropped = round(probability * _LEVELS)
    if dropped == 0:
        return torch.ones(shape, dtype=dtype)
    count = math.prod(shape)
    draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[:count].view(shape)
    # Clamping to two neighbouring values and moving them to 0 and 1 is a comparison in integer
    # arithmetic; a comparison proper makes booleans, which are slow to turn into floats.
    below = _LOWEST + dropped - 1
    keep = bits.clamp(below, below + 1).sub_(below)
    return keep.to(dtype).mul_(_LEVELS / (_LEVELS - dropped))


class Dropout(nn.Module):
    """Zero each element with the given probability while training; scale up the others."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.probability == 0.0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.probability)
        return x * keep_mask(x.shape, self.probability, x.dtype)

    def extra_repr(self) -> str:
        return str(self.probability)
