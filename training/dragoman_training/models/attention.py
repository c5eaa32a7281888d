"""Scaled dot-product and multi-head attention: section 3.2 of the paper.

Shapes: B sentences, T query positions, S key positions, D width, H heads, K = D / H width of a
head; N and M real tokens of the querying and of the attended side (see ``layout``).
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman_training.models.dropout import Dropout
from dragoman_training.models.layout import Layout


class KeysValues(NamedTuple):
    """What a query attends to, already split into heads."""

    k_BHSK: Tensor
    v_BHSK: Tensor

    def select(self, rows: Tensor) -> "KeysValues":
        """Those of these sentences, in this order."""
        return KeysValues(*(part.index_select(0, rows) for part in self))


def causal_mask(length: int, device: torch.device) -> Tensor:
    """True where position t may look at position s: s <= t."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


class RecordableAttention(nn.Module):
    """Any attention whose weights can be looked at; see ``record_attention``."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded: list[Tensor] | None = None
        """Where to put the weights (BHTS) of each call."""


class ScaledDotProductAttention(RecordableAttention):
    """softmax(Q Kᵀ / √K) V, over the keys that the mask lets through."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)

    def forward(self, q_BHTK: Tensor, keys_values: KeysValues, mask: Tensor | None) -> Tensor:
        """``mask`` broadcasts to BHTS and is True where a query may look at a key."""
        k_BHSK, v_BHSK = keys_values
        if self.recorded is None and self._is_fused_faster(q_BHTK):
            return F.scaled_dot_product_attention(q_BHTK, k_BHSK, v_BHSK, attn_mask=mask)
        scores_BHTS = (q_BHTK / math.sqrt(q_BHTK.shape[-1])) @ k_BHSK.transpose(-2, -1)
        if mask is not None:
            scores_BHTS = scores_BHTS.masked_fill(~mask, -math.inf)
        # Under autocast the softmax would go through float32 and back, which costs more than the
        # last bits of weights between 0 and 1 are worth.
        weights_BHTS = scores_BHTS.softmax(dim=-1, dtype=scores_BHTS.dtype)
        if self.recorded is not None:
            self.recorded.append(weights_BHTS)
        return self.dropout(weights_BHTS) @ v_BHSK

    def _is_fused_faster(self, q_BHTK: Tensor) -> bool:
        """PyTorch's fused attention has no dropout of ours, and on CPUs its gradient is slow."""
        if self.training and self.dropout.probability > 0.0:
            return False
        return q_BHTK.device.type != "cpu" or not torch.is_grad_enabled()


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """While entered, every attention of the model records its weights (BHTS), call by call.

    They are found under the name of the module, as in ``decoder.5.cross_attention``.
    """
    found = {
        name.removesuffix(".attention"): module
        for name, module in model.named_modules()
        if isinstance(module, RecordableAttention)
    }
    recorded: dict[str, list[Tensor]] = {name: [] for name in found}
    for name, module in found.items():
        module.recorded = recorded[name]
    try:
        yield recorded
    finally:
        for module in found.values():
            module.recorded = None


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each over its own projection of queries, keys and values.

    Self-attention passes the same tokens on both sides, cross-attention the encoder's on the
    attended side.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.attention = ScaledDotProductAttention(dropout)
        self.output = nn.Linear(width, width)

    def forward(
        self,
        x_ND: Tensor,
        layout: Layout,
        memory_MD: Tensor,
        memory_layout: Layout,
        mask: Tensor | None,
    ) -> Tensor:
        """Attend from every token of one packed batch to those of another."""
        keys_values = self.keys_values(memory_layout.unpack(self.key_value(memory_MD)))
        x_BTD = self.attend(layout.unpack(self.query(x_ND)), keys_values, mask)
        return self.output(layout.pack(x_BTD))

    def keys_values(self, projected_BS2D: Tensor) -> KeysValues:
        """Split projected keys and values into heads."""
        k_BSD, v_BSD = projected_BS2D.chunk(2, dim=-1)
        return KeysValues(self._split(k_BSD), self._split(v_BSD))

    def attend(self, q_BTD: Tensor, keys_values: KeysValues, mask: Tensor | None) -> Tensor:
        """All heads at once, before the output projection."""
        x_BHTK = self.attention(self._split(q_BTD), keys_values, mask)
        return x_BHTK.transpose(1, 2).flatten(2)

    def _split(self, x_BLD: Tensor) -> Tensor:
        return x_BLD.unflatten(-1, (self.heads, -1)).transpose(1, 2)
