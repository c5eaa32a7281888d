"""A batch of sentence pairs as padded tensors, with the special tokens in place.

Shapes: B pairs, S source positions, T target positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman_training.data.token_store import TokenPair
from dragoman_training.data.tokenizer import END, OURS, PAD, Ends


@dataclass(frozen=True, eq=False)
class Batch:
    source_BS: Tensor
    """The source and its end token."""
    source_lengths_B: Tensor
    input_BT: Tensor
    """What the decoder is given: the begin token, then the target."""
    label_BT: Tensor
    """What it is to predict: the target, then its end token."""
    target_lengths_B: Tensor

    @classmethod
    def of(cls, pairs: Sequence[TokenPair], device: torch.device, ends: Ends = OURS) -> "Batch":
        """Put the special tokens in place. That of a target language is to be predicted too."""
        start = ends.start
        sources, lengths = pad_sources(
            [[*ends.before, *pair.source] for pair in pairs],
            device,
            ends.end if ends.ends_source else None,
        )
        return cls(
            source_BS=sources,
            source_lengths_B=lengths,
            input_BT=pad([[ends.begin, *start, *pair.target] for pair in pairs]).to(device),
            label_BT=pad([[*start, *pair.target, ends.end] for pair in pairs]).to(device),
            target_lengths_B=torch.tensor(
                [len(start) + len(p.target) + 1 for p in pairs], device=device
            ),
        )


def pad_sources(
    sources: Sequence[Sequence[int]], device: torch.device, end: int | None = END
) -> tuple[Tensor, Tensor]:
    """Source sentences without targets: their padded ids, end token included, and lengths.

    Models from elsewhere may have another end token, or none there.
    """
    lines = [[*source] if end is None else [*source, end] for source in sources]
    return pad(lines).to(device), torch.tensor([len(line) for line in lines], device=device)


def pad(sequences: Sequence[Sequence[int]]) -> Tensor:
    """Sequences as the lines of a grid."""
    longest = max(map(len, sequences))
    grid = np.full((len(sequences), longest), PAD, np.int64)
    for row, ids in zip(grid, sequences, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(grid)
