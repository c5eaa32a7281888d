"""Small seeded models, and sources for them."""

import random
from typing import Any

import torch
from torch import Tensor

from dragoman_training.models.settings import TransformerSettings
from dragoman_training.models.transformer import Transformer

VOCABULARY = 50


def tiny_model(seed: int = 0, vocabulary: int = VOCABULARY, **settings: Any) -> Transformer:
    """A model with random weights; its output is far from uniform, so that searches differ."""
    defaults: dict[str, Any] = {
        "width": 16,
        "heads": 2,
        "feed_forward": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "dropout": 0.0,
        "max_length": 40,
        "tied_embeddings": "none",
    }
    torch.manual_seed(seed)
    model = Transformer(
        TransformerSettings(**{**defaults, **settings}),
        source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
    )
    with torch.no_grad():
        model.projection.weight.mul_(3.0)
    return model.eval()


def ssru_model(seed: int = 0, vocabulary: int = VOCABULARY, **settings: Any) -> Transformer:
    """A model with an SSRU in its decoder, whose gates differ widely, as learnt ones do."""
    model = tiny_model(seed, vocabulary, decoder="ssru", **settings)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for layer in model._decoder_layers:
            gate = layer.ssru.forget
            gate.weight.mul_(3.0)
            gate.bias.add_(torch.randn(gate.bias.shape, generator=generator))
    return model


def random_sources(count: int, seed: int, longest: int = 12) -> list[list[int]]:
    rng = random.Random(seed)
    return [
        [rng.randrange(4, VOCABULARY) for _ in range(rng.randint(1, longest))] for _ in range(count)
    ]


LENGTHS = torch.tensor([5, 9, 1, 7])


TARGET_LENGTHS = torch.tensor([6, 2, 8, 8])


def grid(lengths: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    size = (len(lengths), int(lengths.max()))
    ids = torch.randint(4, VOCABULARY, size, generator=generator)
    return ids * (torch.arange(size[1]) < lengths[:, None])
