"""A small recipe and its prepared text, with which trainers are tested."""

import random
from pathlib import Path
from typing import Any

import pytest

from dragoman_training.config.recipe import Recipe, recipe_from_dict
from dragoman_training.data.prepared import PreparedData
from support.corpora import prepared


def write_text(path: Path, pairs: int, seed: int) -> tuple[str, str]:
    """A file of each side; a target has more tokens than its source, by a number that varies."""
    rng = random.Random(seed)
    words = [x + y for x in ("ca", "li", "sol", "gue") for y in ("sa", "vro", "mão", "te")]
    sentences = [rng.choices(words, k=rng.randint(1, 5)) for _ in range(pairs)]
    sides = path.with_suffix(".source"), path.with_suffix(".target")
    sides[0].write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))
    sides[1].write_text(
        "".join(" ".join(f"o {w}" if "a" in w else w for w in s) + "\n" for s in sentences)
    )
    return str(sides[0]), str(sides[1])


@pytest.fixture(scope="module")
def data_settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("text")
    train, valid = (
        write_text(directory / name, pairs, seed)
        for name, pairs, seed in (("train", 90, 1), ("valid", 30, 2))
    )
    return {
        "source_language": "en",
        "target_language": "pt",
        "train_source": [train[0]],
        "train_target": [train[1]],
        "valid_source": [valid[0]],
        "valid_target": [valid[1]],
        "max_tokens": 40,
    }


@pytest.fixture(scope="module")
def recipe(data_settings: dict[str, Any]) -> Recipe:
    return recipe_from_dict(
        {
            "seed": 5,
            "data": data_settings,
            "tokenizer": {"kind": "bpe", "vocabulary": 300},
            "model": {
                "width": 16,
                "heads": 2,
                "feed_forward": 32,
                "encoder_layers": 1,
                "decoder_layers": 1,
                "dropout": 0.0,
                "max_length": 48,
            },
            "training": {
                "batch_tokens": 100,
                "label_smoothing": 0.2,
                "learning_rate": 0.01,
                "warmup_steps": 2,
                "adam_betas": [0.8, 0.9],
                "adam_epsilon": 1e-3,
                "weight_decay": 0.1,
                "clip_norm": 0.05,
                "log_every": 1,
            },
        }
    )


@pytest.fixture(scope="module")
def data(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    return prepared(recipe, tmp_path_factory.mktemp("prepared") / "data")
