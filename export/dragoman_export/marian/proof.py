"""Proof that the Transformer which was built of a model computes what Marian's formulas give."""

import numpy as np
import torch

from dragoman_export.errors import VerificationError
from dragoman_export.marian.reference import MarianReference
from dragoman_training.data.batch import pad_sources
from dragoman_training.models.transformer import Transformer

TOLERANCE = 1e-3
"""Largest difference of a log-probability, relative to the largest of all if that is above 1."""
_LENGTHS = (1, 6, 15)
"""Tokens of the sentences that are compared."""


@torch.inference_mode()
def check_against_reference(model: Transformer, reference: MarianReference, *, end: int) -> None:
    """Compare log-probabilities of random targets of random sources, position by position.

    Raises ``VerificationError`` for one that differs by too much.
    """
    rng = np.random.default_rng(1)
    longest = model.settings.max_length - 1
    for length in _LENGTHS:
        size = min(length, longest)
        source = rng.integers(2, model.source_vocabulary, size).tolist()
        target = rng.integers(2, model.target_vocabulary, size).tolist()
        with np.errstate(all="ignore"):  # what overflows is seen below
            expected = reference.log_probs(source, target)
        ids = pad_sources([source], torch.device("cpu"), end)
        found = model(*ids, torch.tensor([[end, *target]]))[0].log_softmax(-1).numpy()
        banned = np.isneginf(expected)
        if not np.array_equal(banned, np.isneginf(found)):
            raise VerificationError("the model differs from Marian's in which tokens are banned")
        difference = float(np.abs(found[~banned] - expected[~banned]).max())
        if not difference <= TOLERANCE * max(1.0, float(np.abs(expected[~banned]).max())):
            raise VerificationError(
                f"log-probabilities differ from those of Marian's formulas by {difference:.3g}"
            )
