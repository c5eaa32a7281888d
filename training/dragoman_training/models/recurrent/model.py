"""Recurrent encoder-decoders, with and without attention: what the Transformer is measured against.

Shapes: B sentences, S source positions, E width of an embedding, L layers, W width of a state,
C width of what the decoder is given of the source, N target tokens (packed, see ``layout``).
"""

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman_training.models.base import TranslationModel, check_vocabularies
from dragoman_training.models.dropout import Dropout
from dragoman_training.models.layout import Layout
from dragoman_training.models.recurrent.layers import (
    AttentiveDecoder,
    RecurrentDecoder,
    RecurrentEncoder,
    RecurrentMemory,
    Source,
    SummaryDecoder,
)
from dragoman_training.models.settings import RecurrentSettings


class RecurrentState(NamedTuple):
    """Translations under way: the states of the decoder's layers, and what it keeps of the
    source."""

    hidden_LBW: Tensor
    source: Source
    length: int

    def select(self, rows: Tensor) -> "RecurrentState":
        return RecurrentState(
            self.hidden_LBW.index_select(1, rows), self.source.select(rows), self.length
        )


class RecurrentModel(TranslationModel[RecurrentMemory, RecurrentState]):
    """Encoder and decoder, with the embeddings and the output around them."""

    settings: RecurrentSettings

    def __init__(
        self, settings: RecurrentSettings, *, source_vocabulary: int, target_vocabulary: int
    ) -> None:
        super().__init__()
        check_vocabularies(settings, source_vocabulary, target_vocabulary)
        self.settings = settings
        self.source_vocabulary = source_vocabulary
        self.target_vocabulary = target_vocabulary
        tied, embedding = settings.tied_embeddings, settings.embedding
        self.target_table = nn.Embedding(target_vocabulary, embedding)
        self.source_table = (
            self.target_table if tied == "all" else nn.Embedding(source_vocabulary, embedding)
        )
        self.dropout = Dropout(settings.dropout)
        self.encoder = RecurrentEncoder(settings)
        self.decoder: RecurrentDecoder[Any] = (
            SummaryDecoder(settings) if settings.attention == "none" else AttentiveDecoder(settings)
        )
        # Back to the width of an embedding, so that the output can be the same matrix.
        self.readout = nn.Linear(settings.width + self.decoder.context + embedding, embedding)
        self.projection = nn.Linear(embedding, target_vocabulary, bias=settings.output_bias)
        self._initialise()
        if tied != "none":
            self.projection.weight = self.target_table.weight

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
            if isinstance(module, nn.Linear | nn.GRU):
                for name, parameter in module.named_parameters():
                    if "bias" in name:
                        nn.init.zeros_(parameter)
            if isinstance(module, nn.GRU):
                for name, parameter in module.named_parameters():
                    if "weight" in name:
                        _initialise_gates(parameter, recurrent="_hh_" in name)
        if isinstance(self.decoder, AttentiveDecoder):
            for part in (self.decoder.from_token, self.decoder.from_context):
                _initialise_gates(part.weight, recurrent=False)
            _initialise_gates(self.decoder.from_state.weight, recurrent=True)
        for table in (self.source_table, self.target_table):
            nn.init.normal_(table.weight, std=self.settings.embedding**-0.5)

    def encode(self, source_BS: Tensor, lengths_B: Tensor) -> RecurrentMemory:
        layout = Layout.of(lengths_B, source_BS.shape[1])
        x_ME = self._embed(self.source_table, layout.pack(source_BS))
        return self.encoder(layout.unpack(x_ME), lengths_B, layout)

    def decode(self, ids_N: Tensor, layout: Layout, memory: RecurrentMemory) -> Tensor:
        x_NE = self._embed(self.target_table, ids_N)
        decoded = self.decoder(layout.unpack(x_NE), *self.decoder.start(memory))
        return self._read_out(
            layout.pack(decoded.states_BTW), layout.pack(decoded.contexts_BTC), x_NE
        )

    def start(self, memory: RecurrentMemory) -> RecurrentState:
        hidden_LBW, source = self.decoder.start(memory)
        return RecurrentState(hidden_LBW, source, length=0)

    def step(self, ids_B: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        x_BE = self._embed(self.target_table, ids_B)
        decoded = self.decoder(x_BE[:, None], state.hidden_LBW, state.source)
        hidden_BE = self._read_out(decoded.states_BTW[:, 0], decoded.contexts_BTC[:, 0], x_BE)
        log_probs_BV = F.log_softmax(self.projection(hidden_BE).float(), dim=-1)
        return log_probs_BV, RecurrentState(decoded.hidden_LBW, state.source, state.length + 1)

    def cross_attentions(self) -> list[str]:
        return ["decoder"] if isinstance(self.decoder, AttentiveDecoder) else []

    def _embed(self, table: nn.Embedding, ids_N: Tensor) -> Tensor:
        return self.dropout(table(ids_N) * math.sqrt(self.settings.embedding))

    def _read_out(self, states_NW: Tensor, contexts_NC: Tensor, x_NE: Tensor) -> Tensor:
        """What the output projection takes: from the state, the source and the token before."""
        read_NE = torch.tanh(self.readout(torch.cat((states_NW, contexts_NC, x_NE), -1)))
        return self.dropout(read_NE)


def _initialise_gates(weight: Tensor, *, recurrent: bool) -> None:
    """Each gate's matrix by itself; an orthogonal one keeps the length of a state."""
    with torch.no_grad():
        for gate in weight.chunk(3):
            if recurrent:
                nn.init.orthogonal_(gate)
            else:
                nn.init.xavier_uniform_(gate)
