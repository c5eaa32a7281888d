"""Seeded Transformers as bundles: speed does not depend on the values of weights."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from dragoman_export.bundle_files import write_unverified
from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_training.data.tokenizer import END
from dragoman_training.models.settings import PRESETS, TransformerSettings
from dragoman_training.models.transformer import Transformer

SOURCE_TOKENS = 20
"""Tokens of every source sentence of a seeded model, the end token included."""
TARGET_TOKENS = 24
"""Tokens that every translation of a seeded model is made to have, the end token included."""


def seeded_model(preset: str, vocabulary: int) -> Transformer:
    """Return a Transformer with random weights, the same each time."""
    torch.manual_seed(1)
    settings = TransformerSettings(**PRESETS[preset])
    return Transformer(settings, source_vocabulary=vocabulary, target_vocabulary=vocabulary).eval()


def export(
    model: Transformer,
    precision: str,
    directory: Path,
    calibration: Sequence[Sequence[int]] | None = None,
    shortlist: Shortlist | None = None,
) -> UncheckedBundle:
    """Write a model's graphs to a new directory, without golden decodings or tokenizers.

    Scales of int8 are found on the sentences of ``calibration``, or on random ones without it.
    """
    if calibration is None:
        rng = np.random.default_rng(1)
        calibration = rng.integers(END + 1, model.target_vocabulary, (8, SOURCE_TOKENS)).tolist()
    directory.mkdir()
    return write_unverified(
        model, directory, precision, calibration=calibration, shortlist=shortlist
    )
