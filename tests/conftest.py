"""Small seeded models and texts that several tests use."""

import os
import random
from pathlib import Path
from typing import Any

# Some virtual machines announce AMX but stop the process that uses it, as oneDNN does for bfloat16.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import pytest
import torch
from hypothesis import settings

from dragoman_training.models.settings import TransformerSettings
from dragoman_training.models.transformer import Transformer

# Tests run in parallel, one a core; what they start must not want both cores either.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"

# Shared machines are too uneven for a time limit per example.
settings.register_profile("dragoman", deadline=None)
settings.load_profile("dragoman")

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


def random_sources(count: int, seed: int, longest: int = 12) -> list[list[int]]:
    rng = random.Random(seed)
    return [
        [rng.randrange(4, VOCABULARY) for _ in range(rng.randint(1, longest))] for _ in range(count)
    ]


@pytest.fixture
def parallel_text(tmp_path: Path) -> tuple[Path, Path]:
    """A few hundred made-up sentence pairs in two files."""
    rng = random.Random(7)
    syllables = ["ca", "sa", "li", "vro", "gua", "so", "mar", "pão", "rua", "noi", "te", "flor"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(60)]
    source, target = tmp_path / "text.en", tmp_path / "text.pt"
    with source.open("w") as left, target.open("w") as right:
        for _ in range(300):
            sentence = rng.choices(words, k=rng.randint(2, 8))
            left.write(" ".join(sentence) + "\n")
            right.write(" ".join(word.upper() for word in reversed(sentence)) + "\n")
    return source, target
