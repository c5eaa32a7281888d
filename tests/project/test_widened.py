"""The widened model of the benchmarks says what the model that it was made from says."""

import importlib
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman_training.data.batch import pad, pad_sources
from dragoman_training.data.tokenizer import BEGIN
from dragoman_training.models.transformer import Transformer
from dragoman_training.translate.search import greedy_search
from support import ROOT
from support.models import random_sources, tiny_model

BENCHMARKS = ROOT / "benchmarks"
CPU = torch.device("cpu")

TOLERANCE = 5e-5
"""Ours are down to -19, where steps of float32 are 2e-6: a few of them, and layers that add a
millionth of what others do. A weight that is left out changes 0.3 and more."""


def small_model(**settings: Any) -> Transformer:
    """Like the repository's, unless told otherwise: pre-norm, with a shallow decoder.

    No weight is what models begin with, as biases of 0 are: one that is forgotten has to show.
    """
    model = tiny_model(seed=3, **{"norm": "pre", "encoder_layers": 3, **settings})
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def log_probs(model: Transformer, sources: list[list[int]], targets: list[list[int]]) -> Tensor:
    """Of every token at every position, by teacher forcing."""
    given = pad([[BEGIN, *target] for target in targets])
    with torch.no_grad():
        return model(*pad_sources(sources, CPU), given).log_softmax(-1)


@pytest.mark.parametrize(
    "settings",
    [
        {"tied_embeddings": "all"},
        {"decoder_layers": 1, "positions": "learned"},
        {"decoder_layers": 4, "scale_embeddings": False, "output_bias": True},
    ],
    ids=str,
)
def test_it_says_the_same(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    small = small_model(**settings)
    wide = importlib.import_module("subjects.widened").widened(small)
    assert wide.projection.in_features == 2 * small.projection.in_features
    assert len(wide.decoder) >= len(wide.encoder) == 3
    sources = random_sources(20, seed=5)
    ids, lengths = pad_sources(sources, CPU)
    own, theirs = (
        [list(found.ids) for found in greedy_search(model, ids, lengths, [12] * len(sources))]
        for model in (wide, small)
    )
    assert own == theirs
    torch.testing.assert_close(
        log_probs(wide, sources, own), log_probs(small, sources, own), rtol=0.0, atol=TOLERANCE
    )
