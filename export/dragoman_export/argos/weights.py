"""The names of weights, CTranslate2's and ours, and from one to the other.

Queries, keys and values of self-attention are one matrix there and two here; the rest is a matter
of names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from dragoman_export.argos.architecture import (
    SIDES,
    Architecture,
    positions_of,
    table_of,
)
from dragoman_export.argos.model_file import ModelFile
from dragoman_export.importing.weights import TakenWeights
from dragoman_training.models.settings import TransformerSettings
from dragoman_training.models.transformer import Transformer

_PROJECTION = "decoder/projection"


def linear_names(settings: TransformerSettings) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield their name of each linear map of all layers, and ours of it, or of its parts."""
    for side, layers in (
        ("encoder", settings.encoder_layers),
        ("decoder", settings.decoder_layers),
    ):
        own = "attention" if side == "encoder" else "self_attention"
        for number in range(layers):
            ours, theirs = f"{side}.{number}.", f"{side}/layer_{number}/"
            fused = (f"{ours}{own}.query", f"{ours}{own}.key_value")
            yield f"{theirs}self_attention/linear_0", fused
            yield f"{theirs}self_attention/linear_1", (f"{ours}{own}.output",)
            if side == "decoder":
                for place, part in enumerate(("query", "key_value", "output")):
                    yield f"{theirs}attention/linear_{place}", (f"{ours}cross_attention.{part}",)
            yield f"{theirs}ffn/linear_0", (f"{ours}feed_forward.widen",)
            yield f"{theirs}ffn/linear_1", (f"{ours}feed_forward.narrow",)


def norm_names(settings: TransformerSettings) -> Iterator[tuple[str, str]]:
    """Yield their name and ours of each layer norm."""
    residuals = {
        "encoder": {"self_attention": "attention_residual"},
        "decoder": {"self_attention": "self_residual", "attention": "cross_residual"},
    }
    for side, layers in (
        ("encoder", settings.encoder_layers),
        ("decoder", settings.decoder_layers),
    ):
        for number in range(layers):
            for theirs, ours in (residuals[side] | {"ffn": "feed_forward_residual"}).items():
                yield f"{side}/layer_{number}/{theirs}/layer_norm", f"{side}.{number}.{ours}.norm"
        if settings.norm == "pre":
            yield f"{side}/layer_norm", f"{side}_norm"


def build_model(
    architecture: Architecture, model_file: ModelFile, norm_epsilon: float
) -> Transformer:
    """Return our Transformer with their weights.

    Raises ``ExportError`` if a weight is missing, of another shape, or has no place in it.
    """
    with torch.device("meta"):  # takes no memory: shapes are compared before anything does
        _fill(_model(architecture, norm_epsilon), architecture, model_file)
    model = _model(architecture, norm_epsilon)
    _fill(model, architecture, model_file)
    return model.eval()


def _model(architecture: Architecture, norm_epsilon: float) -> Transformer:
    return Transformer(
        replace(architecture.settings, norm_epsilon=norm_epsilon),
        source_vocabulary=architecture.source_vocabulary,
        target_vocabulary=architecture.target_vocabulary,
    )


def _fill(model: Transformer, architecture: Architecture, model_file: ModelFile) -> None:
    """Copy all weights to their places."""
    settings = model.settings
    taken = TakenWeights(model_file.weights)
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for theirs, ours in linear_names(settings):
            weights, biases = (
                [parameters[f"{name}.{part}"] for name in ours] for part in ("weight", "bias")
            )
            _copy_linear(taken, theirs, weights, biases)
        for theirs, name in norm_names(settings):
            for part, ending in (("weight", "gamma"), ("bias", "beta")):
                parameter = parameters[f"{name}.{part}"]
                parameter.copy_(taken.one(tuple(parameter.shape), f"{theirs}/{ending}"))
        _embeddings(model, taken, model_file)
        taken.used.update(positions_of(side) for side in SIDES)
        for side, table in architecture.positions.items():
            parameters[f"{side}_embedding.positions.weight"].copy_(table[: settings.max_length])
    taken.check_all_used()


def _copy_linear(
    taken: TakenWeights, name: str, weights: Sequence[Tensor], biases: Sequence[Tensor]
) -> None:
    """Copy a linear map to ours, or part of it to each of several; without a bias, that is 0."""
    rows = [len(weight) for weight in weights]
    shape = (sum(rows), weights[0].shape[1])
    for own, part in zip(weights, taken.one(shape, f"{name}/weight").split(rows), strict=True):
        own.copy_(part)
    bias = taken.maybe(f"{name}/bias", shape[:1])
    bias = torch.zeros(shape[0]) if bias is None else bias
    for own, part in zip(biases, bias.split(rows), strict=True):
        own.copy_(part)


def _embeddings(model: Transformer, taken: TakenWeights, model_file: ModelFile) -> None:
    for table, name in (
        (model.source_embedding.table.weight, table_of("source", model_file)),
        (model.target_embedding.table.weight, table_of("target", model_file)),
        (model.projection.weight, f"{_PROJECTION}/weight"),
    ):
        table.copy_(taken.one(tuple(table.shape), name))
    bias = taken.maybe(f"{_PROJECTION}/bias", tuple(model.projection.bias.shape))
    model.projection.bias.copy_(torch.zeros(()) if bias is None else bias)
