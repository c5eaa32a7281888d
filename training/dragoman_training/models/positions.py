"""Position encodings: section 3.5 of the paper, its relatives, and the learned alternative.

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


def marian_sinusoids(length: int, width: int) -> Tensor:
    """The same waves as transformers' MarianMT has them: all sines, then all cosines."""
    table_LD = sinusoids(length, width)
    return torch.cat((table_LD[:, 0::2], table_LD[:, 1::2]), dim=1)


def tensor2tensor_sinusoids(length: int, width: int, first: int = 0) -> Tensor:
    """Those of Tensor2Tensor, which Marian itself has: in the same order, over another range of
    frequencies, of which the last is exactly 1/10000.

    In float32 throughout, as there: at far positions the rounding can be seen.
    """
    half = width // 2
    frequency = torch.exp(torch.arange(half).float() * -(math.log(1e4) / (half - 1)))
    angle_LF = torch.arange(first, first + length).float()[:, None] * frequency
    return torch.cat((torch.sin(angle_LF), torch.cos(angle_LF)), dim=1)


def m2m100_sinusoids(length: int, width: int) -> Tensor:
    """Those of fairseq, and with it M2M-100: Tensor2Tensor's from position 2 on, because the first
    two are padding's."""
    return tensor2tensor_sinusoids(length, width, first=2)


WAVES = {
    "sinusoidal": sinusoids,
    "marian": marian_sinusoids,
    "m2m100": m2m100_sinusoids,
    "tensor2tensor": tensor2tensor_sinusoids,
}
"""By the name that settings give them."""


class SinusoidalPositions(nn.Module):
    """Fixed waves, from fast to slow; nothing to learn and nothing to store."""

    table_LD: Tensor

    def __init__(self, length: int, width: int, kind: str = "sinusoidal") -> None:
        super().__init__()
        self.register_buffer("table_LD", WAVES[kind](length, width), persistent=False)

    def forward(self, positions_N: Tensor) -> Tensor:
        return self.table_LD[positions_N]


class LearnedPositions(nn.Embedding):
    """A vector per position, learned."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__(length, width)
        nn.init.normal_(self.weight, std=width**-0.5)
