"""What is said of a run: to the person who began it, and in its checkpoints."""

from dataclasses import asdict
from typing import Any

import torch

from dragoman_training.report.records import ValidationRecord
from dragoman_training.train.checkpoint import weights_of
from dragoman_training.train.trainer import Trainer


def facts(trainer: Trainer) -> dict[str, Any]:
    """Return what a person would like to know before the first step."""
    source_tokens, target_tokens = trainer.data.train.tokens
    provenance = trainer.data.provenance
    dropped = {
        **provenance["report"],
        "too_long_to_validate": provenance.get("valid_too_long", 0),
    }
    return {
        "parameters": sum(w.numel() for w in weights_of(trainer.model).values()),
        "vocabulary": trainer.data.tokenizers.target.size,
        "pairs": len(trainer.data.train),
        "examples": len(trainer.examples),
        "joined": trainer.examples.joined,
        "corpora": provenance["corpora"],
        "source_tokens": source_tokens,
        "target_tokens": target_tokens,
        "dropped": {k: count for k, count in dropped.items() if k != "kept" and count},
        "device": str(trainer.world.device),
        "precision": trainer.precision.name,
        "precision_reason": trainer.precision.reason,
        "threads": torch.get_num_threads() if trainer.world.device.type == "cpu" else 0,
        "processes": trainer.world.size,
    }


def config(trainer: Trainer, quality: ValidationRecord | None) -> dict[str, Any]:
    """Return what a checkpoint says about itself."""
    recipe = trainer.recipe.to_dict()
    tokenizers = trainer.data.tokenizers
    vocabularies = {
        "source_vocabulary": tokenizers.source.size,
        "target_vocabulary": tokenizers.target.size,
    }
    return {
        "model": {**recipe["model"], **vocabularies},
        "source_language": trainer.recipe.data.source_language,
        "target_language": trainer.recipe.data.target_language,
        "quality": None if quality is None else asdict(quality),
        "recipe": recipe,
        "data": trainer.data.provenance,
        "progress": {
            "step": trainer.progress.step,
            "target_tokens": trainer.progress.target_tokens,
            "seconds": round(trainer.progress.seconds, 1),
        },
        "torch": torch.__version__,
        "precision": trainer.precision.name,
    }
