"""What a translation model is, whatever it is made of: all that training, search, evaluation and
checkpoints know of one.

Shapes: B sentences, S source positions, T target positions, D what the output projection takes,
N target tokens (packed, see ``layout``), V target vocabulary.
"""

from abc import abstractmethod
from typing import Any, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from dragoman_training.models.layout import Layout
from dragoman_training.models.settings import ModelSettings


class DecoderState(Protocol):
    """Translations under way: what the next step needs of the steps before it."""

    @property
    def length(self) -> int:
        """How many steps there were."""

    def select(self, rows: Tensor) -> Self:
        """The state with these rows, in this order; a row may be taken more than once."""


Memory = TypeVar("Memory")
State = TypeVar("State", bound=DecoderState)


class TranslationModel(nn.Module, Generic[Memory, State]):
    """An encoder-decoder. A base class and no protocol, because it is also a module of PyTorch."""

    settings: ModelSettings
    source_vocabulary: int
    target_vocabulary: int
    projection: nn.Linear
    """From the decoder's last vectors to the scores of every token."""

    @abstractmethod
    def encode(self, source_BS: Tensor, lengths_B: Tensor) -> Memory:
        """Read the source sentences."""

    @abstractmethod
    def decode(self, ids_N: Tensor, layout: Layout, memory: Memory) -> Tensor:
        """The decoder's last vectors (ND) for given target tokens: teacher forcing."""

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """Begin a translation of each source sentence."""

    @abstractmethod
    def step(self, ids_B: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities (BV) of the token that follows, for every translation under way."""

    def cross_attentions(self) -> list[str]:
        """Each decoder layer's attention over the source, by the name that it is recorded under."""
        return []

    def compiled_parts(self) -> list[nn.Module]:
        """Parts for ``torch.compile``."""
        return []

    def forward(
        self,
        source_BS: Tensor,
        source_lengths_B: Tensor,
        target_BT: Tensor,
        target_lengths_B: Tensor | None = None,
    ) -> Tensor:
        """The scores of every next token, for every position of the given targets.

        Without target lengths, no target is padded. Scores at padding mean nothing.
        """
        if target_lengths_B is None:
            target_lengths_B = torch.full_like(source_lengths_B, target_BT.shape[1])
        memory = self.encode(source_BS, source_lengths_B)
        layout = Layout.of(target_lengths_B, target_BT.shape[1])
        hidden_ND = self.decode(layout.pack(target_BT), layout, memory)
        return layout.unpack(self.projection(hidden_ND))


AnyModel = TranslationModel[Any, Any]


def check_vocabularies(settings: ModelSettings, source: int, target: int) -> None:
    """Embeddings of both sides can be one matrix only where the vocabularies are one."""
    if settings.tied_embeddings == "all" and source != target:
        raise ValueError(
            f"tied_embeddings is 'all', but the vocabularies have {source} and "
            f"{target} entries: use a joint tokenizer, or tie 'target' only"
        )
