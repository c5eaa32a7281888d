"""From settings to a model: the one place that knows which models there are."""

from typing import Any

from dragoman_training.models.base import AnyModel
from dragoman_training.models.recurrent.model import RecurrentModel
from dragoman_training.models.settings import ModelSettings, RecurrentSettings, TransformerSettings
from dragoman_training.models.transformer import Transformer


def build_model(
    settings: ModelSettings, *, source_vocabulary: int, target_vocabulary: int
) -> AnyModel:
    """A model with fresh weights."""
    sizes = {"source_vocabulary": source_vocabulary, "target_vocabulary": target_vocabulary}
    if isinstance(settings, RecurrentSettings):
        return RecurrentModel(settings, **sizes)
    return Transformer(settings, **sizes)


def settings_from_dict(table: dict[str, Any]) -> ModelSettings:
    """The settings that a checkpoint holds; those of the first versions are all of Transformers."""
    kind = table.get("kind", "transformer")
    if kind == "recurrent":
        return RecurrentSettings(**table)
    return TransformerSettings(**table)
