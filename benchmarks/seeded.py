"""Seeded Transformers as bundles: speed does not depend on what the weights are."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from dragoman_export.graphs.writer import write_graphs
from dragoman_server.bundle.manifest import SHORTLIST, Manifest, SpecialIds
from dragoman_server.bundle.reading import Bundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_training.settings import PRESETS, TransformerSettings
from dragoman_training.tokenizer import BEGIN, END, PAD, UNKNOWN
from dragoman_training.transformer import Transformer

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
) -> Bundle:
    """Write a model's graphs to a new directory, without golden decodings or tokenizers.

    Scales of int8 are found on random sentences where no others are given.
    """
    if calibration is None:
        rng = np.random.default_rng(1)
        calibration = rng.integers(END + 1, model.target_vocabulary, (8, SOURCE)).tolist()
    directory.mkdir()
    layer = model.settings.decoder_layers - 1
    dimensions = write_graphs(model, directory, precision, layer, calibration, shortlist=shortlist)
    manifest = Manifest(
        name="seeded",
        version="1",
        source_language="",
        target_language="",
        precision=precision,
        dimensions=dimensions,
        max_source_tokens=model.settings.max_length,
        max_target_tokens=model.settings.max_length,
        special_ids=SpecialIds(pad=PAD, unknown=UNKNOWN, begin=BEGIN, end=END),
        source_tokenizer="",
        target_tokenizer="",
        alignment_layer=layer,
        licence="",
        shortlist=SHORTLIST if shortlist else "",
    )
    return Bundle(directory, manifest)
