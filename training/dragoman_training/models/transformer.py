"""The Transformer: figure 1 of "Attention Is All You Need", from token ids to scores.

Shapes: B sentences, S source positions, T target positions, D width, V target vocabulary,
H heads, M source tokens, N target tokens (packed, see ``layout``).
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman_training.models.attention import causal_mask
from dragoman_training.models.base import TranslationModel, check_vocabularies
from dragoman_training.models.dropout import Dropout
from dragoman_training.models.layers import DecoderLayer, EncoderLayer, LayerCache
from dragoman_training.models.layout import Layout
from dragoman_training.models.positions import LearnedPositions, SinusoidalPositions
from dragoman_training.models.settings import TransformerSettings


class Memory(NamedTuple):
    """The encoder's view of a batch of source sentences."""

    x_MD: Tensor
    layout: Layout

    @property
    def mask_B11S(self) -> Tensor | None:
        """True at real source tokens; None when nothing is padded."""
        return None if self.layout.full else self.layout.real_BL[:, None, None, :]


class CachedState(NamedTuple):
    """Translations under way: what each layer keeps of the steps so far and of the source."""

    layers: tuple[LayerCache, ...]
    source_mask_B11S: Tensor | None
    length: int

    def select(self, rows: Tensor) -> "CachedState":
        layers = tuple(layer.select(rows) for layer in self.layers)
        mask = self.source_mask_B11S
        return CachedState(
            layers, mask if mask is None else mask.index_select(0, rows), self.length
        )


class Embedding(nn.Module):
    """Token ids to vectors: embedding, scaled, plus the encoding of the position.

    With ``zero_start``, whatever token stands at position 0 counts as a vector of zeros.
    """

    def __init__(
        self, settings: TransformerSettings, table: nn.Embedding, *, zero_start: bool = False
    ) -> None:
        super().__init__()
        self.zero_start = zero_start
        sizes = (settings.max_length, settings.width)
        self.table = table
        self.positions: SinusoidalPositions | LearnedPositions = (
            LearnedPositions(*sizes)
            if settings.positions == "learned"
            else SinusoidalPositions(*sizes, settings.positions)
        )
        self.scale = math.sqrt(settings.width) if settings.scale_embeddings else 1.0
        self.dropout = Dropout(settings.dropout)

    def forward(self, ids_N: Tensor, positions_N: Tensor) -> Tensor:
        vectors_ND = self.table(ids_N) * self.scale
        if self.zero_start:
            vectors_ND = vectors_ND * (positions_N > 0)[:, None]
        return self.dropout(vectors_ND + self.positions(positions_N))


class Transformer(TranslationModel[Memory, CachedState]):
    """Encoder and decoder, with the embeddings and the output projection around them."""

    settings: TransformerSettings

    def __init__(
        self, settings: TransformerSettings, *, source_vocabulary: int, target_vocabulary: int
    ) -> None:
        super().__init__()
        check_vocabularies(settings, source_vocabulary, target_vocabulary)
        self.settings = settings
        self.source_vocabulary = source_vocabulary
        self.target_vocabulary = target_vocabulary
        width = settings.width
        target_table = nn.Embedding(target_vocabulary, width)
        tied = settings.tied_embeddings
        source_table = target_table if tied == "all" else nn.Embedding(source_vocabulary, width)
        zero_start = settings.decoder_start == "zero"
        self.target_embedding = Embedding(settings, target_table, zero_start=zero_start)
        self.source_embedding = Embedding(settings, source_table)
        self.encoder = nn.ModuleList(EncoderLayer(settings) for _ in range(settings.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(settings) for _ in range(settings.decoder_layers))
        # With the norm before each sublayer, nothing else bounds what leaves the last layer.
        final_norm = nn.LayerNorm if settings.norm == "pre" else nn.Identity
        self.encoder_norm = final_norm(width, settings.norm_epsilon)
        self.decoder_norm = final_norm(width, settings.norm_epsilon)
        self.projection = nn.Linear(width, target_vocabulary, bias=settings.output_bias)
        self._initialise()
        if tied != "none":
            self.projection.weight = target_table.weight

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for table in (self.source_embedding.table, self.target_embedding.table):
            nn.init.normal_(table.weight, std=self.settings.width**-0.5)

    def encode(self, source_BS: Tensor, lengths_B: Tensor) -> Memory:
        layout = Layout.of(lengths_B, source_BS.shape[1])
        x_MD = self.source_embedding(layout.pack(source_BS), layout.positions_N)
        memory = Memory(x_MD, layout)
        for layer in self.encoder:
            x_MD = layer(x_MD, layout, memory.mask_B11S)
        return Memory(self.encoder_norm(x_MD), layout)

    def decode(self, ids_N: Tensor, layout: Layout, memory: Memory) -> Tensor:
        x_ND = self.target_embedding(ids_N, layout.positions_N)
        causal_TT = causal_mask(layout.real_BL.shape[1], x_ND.device)
        for layer in self.decoder:
            x_ND = layer(x_ND, layout, memory.x_MD, memory.layout, causal_TT, memory.mask_B11S)
        return self.decoder_norm(x_ND)

    def start(self, memory: Memory) -> CachedState:
        memory_BSD = memory.layout.unpack(memory.x_MD)
        layers = tuple(layer.start(memory_BSD) for layer in self._decoder_layers)
        return CachedState(layers, memory.mask_B11S, length=0)

    def step(self, ids_B: Tensor, state: CachedState) -> tuple[Tensor, CachedState]:
        x_BD = self.target_embedding(ids_B, torch.full_like(ids_B, state.length))
        layers = []
        for layer, cache in zip(self._decoder_layers, state.layers, strict=True):
            x_BD, cache = layer.step(x_BD, cache, state.source_mask_B11S)
            layers.append(cache)
        log_probs_BV = F.log_softmax(self.projection(self.decoder_norm(x_BD)).float(), dim=-1)
        return log_probs_BV, CachedState(tuple(layers), state.source_mask_B11S, state.length + 1)

    def cross_attentions(self) -> list[str]:
        return [f"decoder.{number}.cross_attention" for number in range(len(self.decoder))]

    def compiled_parts(self) -> list[nn.Module]:
        if self.settings.decoder == "attention":
            return [*self.encoder, *self.decoder]
        # The loop of a cell would be compiled anew for every length.
        apart = [(layer.cross_attention, layer.feed_forward) for layer in self._decoder_layers]
        return [*self.encoder, *(part for parts in apart for part in parts)]

    @property
    def _decoder_layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]
