"""The models that are compared.

*base* is a seeded Transformer-base whose translations are all made to have the same length: peers
do the same work, and nothing depends on what the model says. *en-pt* is the model of the
repository, on everyday sentences with the lengths that it chooses; *en-pt-wide* is the same, made
as large as a Transformer-base.
"""

import argparse
from pathlib import Path

from dragoman_export.read_back import read_back
from dragoman_server.bundle.reading import read_bundle
from dragoman_training.data.tokenizer import Tokenizer
from dragoman_training.models.settings import PRESETS
from subjects.seeded import SOURCE_TOKENS, TARGET_TOKENS, seeded_model
from subjects.subject import Subject
from subjects.widened import widened
from subjects.words import word_tokenizer

EN_PT = Path(__file__).parents[2] / "models" / "en-pt"
VOCABULARY = 32_000
"""Tokens of *base*'s vocabulary, unless told otherwise."""


def add_arguments(
    parser: argparse.ArgumentParser,
    model: str = "the seeded model",
    vocabulary: int = VOCABULARY,
) -> None:
    """Add the options that say how large a seeded model is. A small one is for trials."""
    parser.add_argument(
        "--preset",
        default="base",
        choices=PRESETS,
        help=f"size of {model} (default: %(default)s)",
    )
    parser.add_argument(
        "--vocabulary",
        type=int,
        default=vocabulary,
        help=f"tokens of the vocabulary of {model} (default: %(default)s)",
    )


def named(name: str, preset: str, vocabulary: int) -> Subject:
    """Return a subject by its name. ``preset`` and ``vocabulary`` are for *base* alone."""
    makers = {"en-pt": en_pt, "en-pt-wide": en_pt_wide}
    return base(preset, vocabulary) if name == "base" else makers[name]()


def base(preset: str = "base", vocabulary: int = VOCABULARY) -> Subject:
    """Return a seeded Transformer whose translations all have the same length."""
    return Subject(
        "base" if preset == "base" else preset,
        f"a seeded Transformer ({preset}) with a vocabulary of {vocabulary:,} tokens; every source "
        f"has {SOURCE_TOKENS} tokens, and every translation {TARGET_TOKENS}",
        seeded_model(preset, vocabulary),
        Tokenizer(word_tokenizer(vocabulary)),
        forced=TARGET_TOKENS,
    )


def en_pt() -> Subject:
    """Return the repository's model, with the lengths that it chooses."""
    bundle = read_bundle(EN_PT)
    sizes = bundle.manifest.dimensions
    tokenizer = (EN_PT / bundle.manifest.source_tokenizer).read_bytes()
    return Subject(
        "en-pt",
        f"the repository's model (models/en-pt): width {sizes.width}, {sizes.encoder_layers} "
        f"encoder and {sizes.decoder_layers} decoder layers, a vocabulary of "
        f"{sizes.target_vocabulary:,} tokens; everyday sentences, and "
        "translations as long as the model makes them; peers get its int8 weights read back as "
        "float32, and quantise them their own way",
        read_back(bundle),
        Tokenizer(tokenizer),
        forced=None,
        stored=EN_PT,
    )


def en_pt_wide() -> Subject:
    """Return the repository's model, widened to the size that most models have."""
    small = en_pt()
    model = widened(small.model)
    sizes = model.settings
    return Subject(
        "en-pt-wide",
        f"the repository's model, widened to {sizes.width} with {sizes.encoder_layers} encoder and "
        f"{sizes.decoder_layers} decoder layers: it says the same, at the cost of a "
        "Transformer-base; everyday sentences, and translations as long as the model makes them",
        model,
        small.tokenizer,
        forced=None,
    )
