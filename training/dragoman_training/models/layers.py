"""The layers of encoder and decoder: section 3.1 and 3.3 of the paper.

Shapes: B sentences, T target positions, S source positions, D width, F feed-forward width,
N target tokens, M source tokens (packed, see ``layout``), H heads.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman_training.models.attention import KeysValues, MultiHeadAttention
from dragoman_training.models.dropout import Dropout
from dragoman_training.models.layout import Layout
from dragoman_training.models.settings import TransformerSettings
from dragoman_training.models.ssru import SSRU

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "swish": F.silu,
}


class FeedForward(nn.Module):
    """FFN(x) = activation(x W₁ + b₁) W₂ + b₂, for each token by itself."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        self.widen = nn.Linear(settings.width, settings.feed_forward)
        self.activation = ACTIVATIONS[settings.activation]
        self.dropout = Dropout(settings.activation_dropout)
        self.narrow = nn.Linear(settings.feed_forward, settings.width)

    def forward(self, x_ND: Tensor) -> Tensor:
        hidden_NF = self.activation(self.widen(x_ND))
        return self.narrow(self.dropout(hidden_NF))


class Residual(nn.Module):
    """A residual connection around a sublayer, with its layer norm.

    Post-norm, as in the paper: LayerNorm(x + sublayer(x)).
    Pre-norm, steadier to train when deep: x + sublayer(LayerNorm(x)).
    """

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(settings.width, settings.norm_epsilon)
        self.dropout = Dropout(settings.dropout)
        self.norm_first = settings.norm == "pre"

    def forward(self, x_ND: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_first:
            return x_ND + self.dropout(sublayer(self.norm(x_ND)))
        normed: Tensor = self.norm(x_ND + self.dropout(sublayer(x_ND)))
        return normed


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(
            settings.width, settings.heads, settings.attention_dropout
        )
        self.attention_residual = Residual(settings)
        self.feed_forward = FeedForward(settings)
        self.feed_forward_residual = Residual(settings)

    def forward(self, x_MD: Tensor, layout: Layout, mask_B11S: Tensor | None) -> Tensor:
        def self_attention(x_MD: Tensor) -> Tensor:
            return self.attention(x_MD, layout, x_MD, layout, mask_B11S)

        x_MD = self.attention_residual(x_MD, self_attention)
        return self.feed_forward_residual(x_MD, self.feed_forward)


class LayerCache(NamedTuple):
    """What one decoder layer remembers of a translation under way."""

    own: KeysValues | Tensor
    """Keys and values of the tokens so far, or the state of the cell (BD) after them."""
    source: KeysValues
    """Keys and values of the source, computed once."""

    def select(self, rows: Tensor) -> "LayerCache":
        """Those of these sentences, in this order."""
        own = self.own
        chosen = own.index_select(0, rows) if isinstance(own, Tensor) else own.select(rows)
        return LayerCache(chosen, self.source.select(rows))


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the source, then the feed-forward network.

    Where the settings say so, an SSRU stands in place of self-attention.
    """

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        sizes = (settings.width, settings.heads, settings.attention_dropout)
        self.has_cell = settings.decoder == "ssru"
        if self.has_cell:
            self.ssru = SSRU(settings.width)
        else:
            self.self_attention = MultiHeadAttention(*sizes)
        self.self_residual = Residual(settings)
        self.cross_attention = MultiHeadAttention(*sizes)
        self.cross_residual = Residual(settings)
        self.feed_forward = FeedForward(settings)
        self.feed_forward_residual = Residual(settings)

    def forward(
        self,
        x_ND: Tensor,
        layout: Layout,
        memory_MD: Tensor,
        source_layout: Layout,
        causal_TT: Tensor,
        source_mask_B11S: Tensor | None,
    ) -> Tensor:
        """All target tokens at once: teacher forcing."""

        def look_back(x_ND: Tensor) -> Tensor:
            if self.has_cell:
                return self.ssru(x_ND, layout)
            # Padding follows the real tokens, so the causal mask hides it from them already.
            return self.self_attention(x_ND, layout, x_ND, layout, causal_TT)

        def cross_attention(x_ND: Tensor) -> Tensor:
            return self.cross_attention(x_ND, layout, memory_MD, source_layout, source_mask_B11S)

        x_ND = self.self_residual(x_ND, look_back)
        x_ND = self.cross_residual(x_ND, cross_attention)
        return self.feed_forward_residual(x_ND, self.feed_forward)

    def start(self, memory_BSD: Tensor) -> LayerCache:
        """The cache before the first token."""
        source = self.cross_attention.keys_values(self.cross_attention.key_value(memory_BSD))
        if self.has_cell:
            return LayerCache(own=self.ssru.start(memory_BSD), source=source)
        empty = source.k_BHSK[:, :, :0]
        return LayerCache(own=KeysValues(empty, empty), source=source)

    def step(
        self, x_BD: Tensor, cache: LayerCache, source_mask_B11S: Tensor | None
    ) -> tuple[Tensor, LayerCache]:
        """One more token for every sentence, from the cache of those before it."""

        def look_back(x_BD: Tensor) -> Tensor:
            nonlocal cache
            if isinstance(cache.own, Tensor):
                x_BD, state_BD = self.ssru.step(x_BD, cache.own)
                cache = LayerCache(state_BD, cache.source)
                return x_BD
            attention = self.self_attention
            newest = attention.keys_values(attention.key_value(x_BD)[:, None])
            own = KeysValues(
                torch.cat((cache.own.k_BHSK, newest.k_BHSK), dim=2),
                torch.cat((cache.own.v_BHSK, newest.v_BHSK), dim=2),
            )
            cache = LayerCache(own, cache.source)
            x_B1D = attention.attend(attention.query(x_BD)[:, None], own, None)
            return attention.output(x_B1D[:, 0])

        def cross_attention(x_BD: Tensor) -> Tensor:
            attention = self.cross_attention
            q_B1D = attention.query(x_BD)[:, None]
            x_B1D = attention.attend(q_B1D, cache.source, source_mask_B11S)
            return attention.output(x_B1D[:, 0])

        x_BD = self.self_residual(x_BD, look_back)
        x_BD = self.cross_residual(x_BD, cross_attention)
        return self.feed_forward_residual(x_BD, self.feed_forward), cache
