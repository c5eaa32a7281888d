"""Encoder and decoders of gated recurrent units.

Shapes: B sentences, S source positions, T target positions, L layers, E width of an embedding,
W width of a state, C width of what a decoder is given of the source.
"""

from abc import abstractmethod
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dragoman_training.models.dropout import Dropout
from dragoman_training.models.layout import Layout
from dragoman_training.models.recurrent.attention import AdditiveAttention, Annotations
from dragoman_training.models.settings import RecurrentSettings


def stacked_gru(inputs: int, settings: RecurrentSettings, layers: int, **options: Any) -> nn.GRU:
    """PyTorch's GRU; between its layers, and only there, it drops."""
    return nn.GRU(
        inputs,
        settings.width,
        layers,
        batch_first=True,
        dropout=settings.dropout if layers > 1 else 0.0,
        **options,
    )


class RecurrentMemory(NamedTuple):
    """The encoder's view of a batch of source sentences."""

    annotations_BSC: Tensor
    """Each token with what is before and after it, from both directions."""
    last_BC: Tensor
    """Where each direction ended."""
    layout: Layout

    @property
    def mask_BS(self) -> Tensor | None:
        """True at real source tokens; None when nothing is padded."""
        return None if self.layout.full else self.layout.real_BL


class RecurrentEncoder(nn.Module):
    """Reads each sentence forwards and backwards."""

    def __init__(self, settings: RecurrentSettings) -> None:
        super().__init__()
        self.gru = stacked_gru(settings.embedding, settings, settings.layers, bidirectional=True)

    def forward(self, x_BSE: Tensor, lengths_B: Tensor, layout: Layout) -> RecurrentMemory:
        # Packed, so that the backward direction begins at each sentence's own end.
        packed = pack_padded_sequence(
            x_BSE, lengths_B.cpu(), batch_first=True, enforce_sorted=False
        )
        outputs, last_LBW = self.gru(packed)
        annotations_BSC, _ = pad_packed_sequence(
            outputs, batch_first=True, total_length=x_BSE.shape[1]
        )
        return RecurrentMemory(annotations_BSC, torch.cat((last_LBW[-2], last_LBW[-1]), -1), layout)


class Source(Protocol):
    """What a decoder keeps of the source, a line for each sentence."""

    def select(self, rows: Tensor) -> Self: ...


SourceT = TypeVar("SourceT", bound=Source)


class Decoded(NamedTuple):
    states_BTW: Tensor
    """Of the last layer, at each position."""
    contexts_BTC: Tensor
    """What the decoder was given of the source there."""
    hidden_LBW: Tensor
    """All layers' states after the last position."""


class RecurrentDecoder(nn.Module, Generic[SourceT]):
    """A decoder is the same for a whole target at once and for one token more."""

    context: int
    """C, the width of what is given of the source."""

    @abstractmethod
    def start(self, memory: RecurrentMemory) -> tuple[Tensor, SourceT]:
        """The states (LBW) before the first token, and what is kept of the source."""

    @abstractmethod
    def forward(self, x_BTE: Tensor, hidden_LBW: Tensor, source: SourceT) -> Decoded: ...


class Summary(NamedTuple):
    """The source as one vector."""

    summary_BC: Tensor

    def select(self, rows: Tensor) -> "Summary":
        return Summary(self.summary_BC.index_select(0, rows))


class SummaryDecoder(RecurrentDecoder[Summary]):
    """Without attention: begins with one vector of the source, and is given it at each step.

    That is Cho et al., 2014, section 2.2. Nothing in a step waits for the one before it but the
    GRU itself, so a whole target is one call.
    """

    def __init__(self, settings: RecurrentSettings) -> None:
        super().__init__()
        width = settings.width
        self.context = width
        self.summary = nn.Linear(2 * width, width)
        self.first = nn.Linear(width, settings.layers * width)
        self.gru = stacked_gru(settings.embedding + width, settings, settings.layers)

    def start(self, memory: RecurrentMemory) -> tuple[Tensor, Summary]:
        summary_BC = torch.tanh(self.summary(memory.last_BC))
        return _first_states(self.first, summary_BC, self.gru.num_layers), Summary(summary_BC)

    def forward(self, x_BTE: Tensor, hidden_LBW: Tensor, source: Summary) -> Decoded:
        contexts_BTC = source.summary_BC[:, None].expand(-1, x_BTE.shape[1], -1)
        states_BTW, hidden_LBW = self.gru(torch.cat((x_BTE, contexts_BTC), -1), hidden_LBW)
        return Decoded(states_BTW, contexts_BTC, hidden_LBW)


class AttentiveDecoder(RecurrentDecoder[Annotations]):
    """With attention: before each step, the first layer looks for what it needs of the source.

    That is Bahdanau et al., 2015, appendix A. Where to look depends on the state before, so the
    first layer goes step by step; what can be is computed for all steps at once. Further layers
    only read the first one's states.
    """

    def __init__(self, settings: RecurrentSettings) -> None:
        super().__init__()
        width, context = settings.width, 2 * settings.width
        self.context = context
        self.first = nn.Linear(context, settings.layers * width)
        self.layers = settings.layers
        self.attention = AdditiveAttention(width, context)
        # The three gates of a GRU, by what they come from.
        self.from_token = nn.Linear(settings.embedding, 3 * width)
        self.from_context = nn.Linear(context, 3 * width, bias=False)
        self.from_state = nn.Linear(width, 3 * width)
        self.dropout = Dropout(settings.dropout)
        self.further: nn.GRU | None = None
        if settings.layers > 1:
            self.further = stacked_gru(width, settings, settings.layers - 1)

    def start(self, memory: RecurrentMemory) -> tuple[Tensor, Annotations]:
        source = self.attention.prepare(memory.annotations_BSC, memory.mask_BS)
        return _first_states(self.first, memory.last_BC, self.layers), source

    def forward(self, x_BTE: Tensor, hidden_LBW: Tensor, source: Annotations) -> Decoded:
        state_BW = hidden_LBW[0]
        states, contexts = [], []
        for token_B3W in self.from_token(x_BTE).unbind(1):
            context_BC = self.attention(state_BW, source)
            state_BW = gru_cell(
                token_B3W + self.from_context(context_BC), self.from_state(state_BW), state_BW
            )
            states.append(state_BW)
            contexts.append(context_BC)
        states_BTW, contexts_BTC = torch.stack(states, 1), torch.stack(contexts, 1)
        after_LBW = state_BW[None]
        if self.further is not None:
            states_BTW, further = self.further(
                self.dropout(states_BTW), hidden_LBW[1:].contiguous()
            )
            after_LBW = torch.cat((after_LBW, further))
        return Decoded(states_BTW, contexts_BTC, after_LBW)


def gru_cell(input_B3W: Tensor, recurrent_B3W: Tensor, state_BW: Tensor) -> Tensor:
    """The next state, as PyTorch's GRU has it: reset gate, update gate and candidate."""
    reset_update_B2W, candidate_BW = input_B3W.tensor_split([2 * state_BW.shape[-1]], -1)
    recurrent_B2W, recurrent_BW = recurrent_B3W.tensor_split([2 * state_BW.shape[-1]], -1)
    reset_BW, update_BW = torch.sigmoid(reset_update_B2W + recurrent_B2W).chunk(2, -1)
    new_BW = torch.tanh(candidate_BW + reset_BW * recurrent_BW)
    return torch.lerp(new_BW, state_BW, update_BW)


def _first_states(first: nn.Linear, source_BC: Tensor, layers: int) -> Tensor:
    """Each decoder layer's state before the first token, from a vector of the source."""
    states_BLW = torch.tanh(first(source_BC)).unflatten(-1, (layers, -1))
    return states_BLW.transpose(0, 1).contiguous()
