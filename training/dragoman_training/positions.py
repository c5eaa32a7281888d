"""Position encodings: section 3.5 of the paper, and the learned alternative.

Shapes: L positions, N tokens, D width.
"""

import math

import torch
from torch import Tensor, nn


def sinusoids(length: int, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same."""
    position_L1 = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * -math.log(1e4) / width)
    table_LD = torch.empty(length, width, dtype=torch.float64)
    table_LD[:, 0::2] = torch.sin(position_L1 * frequency)
    table_LD[:, 1::2] = torch.cos(position_L1 * frequency)
    return table_LD.float()


class SinusoidalPositions(nn.Module):
    """Fixed waves, from fast to slow; nothing to learn and nothing to store."""

    table_LD: Tensor

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.register_buffer("table_LD", sinusoids(length, width), persistent=False)

    def forward(self, positions_N: Tensor) -> Tensor:
        return self.table_LD[positions_N]


class LearnedPositions(nn.Embedding):
    """A vector per position, learned."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__(length, width)
        nn.init.normal_(self.weight, std=width**-0.5)
