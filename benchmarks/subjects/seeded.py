"""Seeded Transformers as bundles: speed does not depend on what the weights are."""

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

SOURCE = 20
"""Tokens of a source sentence, the end token included."""


def seeded_model(preset: str, vocabulary: int) -> Transformer:
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

    Scales of int8 are found on random sentences where no others are given.
    """
    if calibration is None:
        rng = np.random.default_rng(1)
        calibration = rng.integers(END + 1, model.target_vocabulary, (8, SOURCE)).tolist()
    directory.mkdir()
    return write_unverified(
        model, directory, precision, calibration=calibration, shortlist=shortlist
    )
