"""Bundles of seeded models, made once per test process."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.source import origin_of
from dragoman_export.texts import ParallelSample
from dragoman_server.bundle.reading import Bundle
from dragoman_training.data.batch import Batch
from dragoman_training.data.token_store import TokenPair
from dragoman_training.data.tokenizer import TokenizerPair
from dragoman_training.models.transformer import Transformer
from dragoman_training.train.objective import Objective
from support.checkpoints import checkpoint_of
from support.models import tiny_model
from support.tokenizers import PAIR

VOCABULARY = 320
TEXTS = [
    f"the {thing} of {who} is {where} number {n}"
    for thing in ("house", "goat", "boat")
    for who in ("louse", "mouse")
    for where in ("over there", "there")
    for n in range(3)
]
REFERENCES = [" ".join(reversed(text.split())) for text in TEXTS]
_DIRECTORY = tempfile.TemporaryDirectory()


def seeded_model(seed: int = 1, **settings: Any) -> Transformer:
    """Random weights: what it says means nothing, and is often nearly a tie."""
    sizes = {"width": 64, "heads": 4, "feed_forward": 128, "encoder_layers": 2, **settings}
    return tiny_model(seed, vocabulary=VOCABULARY, **sizes)


def teach(model: Transformer, tokenizers: TokenizerPair, steps: int) -> float:
    """Train a model until it knows TEXTS by heart, and return the loss of the last step."""
    objective = Objective(model, label_smoothing=0.05).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    pairs = [
        TokenPair(np.array(tokenizers.source.encode(a)), np.array(tokenizers.target.encode(b)))
        for a, b in zip(TEXTS, REFERENCES, strict=True)
    ]
    batch = Batch.of(pairs, torch.device("cpu"))
    for _ in range(steps):
        optimizer.zero_grad()
        loss = objective(batch).smoothed / batch.target_lengths_B.sum()
        loss.backward()
        optimizer.step()
    model.eval()
    return float(loss.item())


@cache
def trained_model(**settings: Any) -> Transformer:
    """Has learnt a few sentences by heart, so that it is sure of what it says."""
    model = seeded_model(**settings)
    assert teach(model, PAIR, steps=150) < 0.8
    return model


SAMPLE = ParallelSample(TEXTS, REFERENCES)


def ignore(stage: str, done: int, total: int) -> None:
    pass


def export(model: Transformer, path: Path, precision: str) -> Bundle:
    settings = ExportSettings(name="seeded", precision=precision, licence="Apache-2.0")
    return export_bundle(origin_of(checkpoint_of(model)), path, settings, SAMPLE, ignore)


@cache
def trained_bundle(precision: str, **settings: Any) -> Bundle:
    """A bundle of ``trained_model()``; not to be changed."""
    name = "-".join([precision, *map(str, settings.values())])
    return export(trained_model(**settings), Path(_DIRECTORY.name) / name, precision)
