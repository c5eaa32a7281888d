"""Additive attention, where attention began: appendix A.1.2 of "Neural Machine Translation by
Jointly Learning to Align and Translate" (Bahdanau, Cho and Bengio, 2015).

Shapes: B sentences, S source positions, W width of the decoder's state, C width of an annotation,
A = W width of the alignment model.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman_training.models.attention import RecordableAttention


class Annotations(NamedTuple):
    """What the decoder may look at: the encoder's vectors, and their keys, computed once."""

    annotations_BSC: Tensor
    keys_BSA: Tensor
    mask_BS: Tensor | None
    """True at real source tokens; None when nothing is padded."""

    def select(self, rows: Tensor) -> "Annotations":
        annotations, keys, mask = self
        return Annotations(
            annotations.index_select(0, rows),
            keys.index_select(0, rows),
            mask if mask is None else mask.index_select(0, rows),
        )


class AdditiveAttention(RecordableAttention):
    """The mean of the annotations, weighted by softmax(v · tanh(W state + U annotation))."""

    def __init__(self, width: int, annotation: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(annotation, width)
        self.energy = nn.Linear(width, 1, bias=False)

    def prepare(self, annotations_BSC: Tensor, mask_BS: Tensor | None) -> Annotations:
        """The part that does not depend on the decoder's state."""
        return Annotations(annotations_BSC, self.key(annotations_BSC), mask_BS)

    def forward(self, state_BW: Tensor, source: Annotations) -> Tensor:
        """The context (BC) that each state asks for."""
        aligned_BSA = torch.tanh(self.query(state_BW)[:, None] + source.keys_BSA)
        scores_BS = self.energy(aligned_BSA).squeeze(-1)
        if source.mask_BS is not None:
            scores_BS = scores_BS.masked_fill(~source.mask_BS, -math.inf)
        weights_B1S = scores_BS.softmax(dim=-1)[:, None]
        if self.recorded is not None:
            self.recorded.append(weights_B1S[:, None])
        return (weights_B1S @ source.annotations_BSC).squeeze(1)
