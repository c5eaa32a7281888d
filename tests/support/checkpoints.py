"""Checkpoints of models that no run has trained."""

from dataclasses import asdict
from typing import Any

from dragoman_training.data.tokenizer import TokenizerPair
from dragoman_training.models.base import TranslationModel
from dragoman_training.train.checkpoint import Checkpoint, weights_of
from support.tokenizers import PAIR


def checkpoint_of(
    model: TranslationModel[Any, Any], tokenizers: TokenizerPair = PAIR, **more: Any
) -> Checkpoint:
    """A checkpoint of a model from English to Portuguese; ``more`` goes into its config."""
    sizes = {
        "source_vocabulary": model.source_vocabulary,
        "target_vocabulary": model.target_vocabulary,
    }
    config = {
        "model": {**asdict(model.settings), **sizes},
        "source_language": "en",
        "target_language": "pt",
        **more,
    }
    return Checkpoint(config, weights_of(model), tokenizers)
