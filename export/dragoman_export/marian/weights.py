"""The names of a Marian model's weights, and from them to our Transformer.

Keys and values are two matrices there and one here, matrices are [in, out] there and [out, in]
here; the rest is a matter of names.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from dragoman_export.errors import ExportError
from dragoman_export.importing.weights import TakenWeights
from dragoman_export.marian.architecture import Architecture
from dragoman_export.marian.model_file import Floats
from dragoman_training.models.settings import TransformerSettings
from dragoman_training.models.transformer import Transformer

OUTPUT, OUTPUT_BIAS = "decoder_ff_logit_out_W", "decoder_ff_logit_out_b"
ACTIVATION_MULTIPLIER = "_QuantMultA"
"""How the name of the multiplier ends that makes the input of a product whole."""

Pairs = Iterator[tuple[str, tuple[str, ...]]]


def paired_names(settings: TransformerSettings) -> Pairs:
    """Yield our name of each weight of all layers, and their name of it, or of its two halves."""
    for number in range(settings.encoder_layers):
        ours, theirs = f"encoder.{number}", f"encoder_l{number + 1}"
        yield from _attention(f"{ours}.attention", f"{theirs}_self")
        yield from _norm(f"{ours}.attention_residual", f"{theirs}_self_Wo", settings)
        yield from _feed_forward(ours, theirs, settings)
    for number in range(settings.decoder_layers):
        ours, theirs = f"decoder.{number}", f"decoder_l{number + 1}"
        if settings.decoder == "ssru":
            yield from _linear(f"{ours}.ssru.forget", f"{theirs}_rnn", "f")
            yield f"{ours}.ssru.input.weight", (f"{theirs}_rnn_W",)
            norm = f"{theirs}_rnn" if settings.norm == "pre" else f"{theirs}_rnn_ffn"
        else:
            yield from _attention(f"{ours}.self_attention", f"{theirs}_self")
            norm = f"{theirs}_self_Wo"
        yield from _norm(f"{ours}.self_residual", norm, settings)
        yield from _attention(f"{ours}.cross_attention", f"{theirs}_context")
        yield from _norm(f"{ours}.cross_residual", f"{theirs}_context_Wo", settings)
        yield from _feed_forward(ours, theirs, settings)
    if settings.norm == "pre":
        for side in ("encoder", "decoder"):
            for our_part, their_part in (("weight", "scale"), ("bias", "bias")):
                yield f"{side}_norm.{our_part}", (f"{side}_top_ln_{their_part}",)


def _linear(ours: str, theirs: str, *letters: str) -> Pairs:
    for our_part, their_part in (("weight", "W"), ("bias", "b")):
        yield f"{ours}.{our_part}", tuple(f"{theirs}_{their_part}{each}" for each in letters)


def _attention(ours: str, theirs: str) -> Pairs:
    yield from _linear(f"{ours}.query", theirs, "q")
    yield from _linear(f"{ours}.key_value", theirs, "k", "v")
    yield from _linear(f"{ours}.output", theirs, "o")


def _feed_forward(ours: str, theirs: str, settings: TransformerSettings) -> Pairs:
    yield from _linear(f"{ours}.feed_forward.widen", f"{theirs}_ffn", "1")
    yield from _linear(f"{ours}.feed_forward.narrow", f"{theirs}_ffn", "2")
    yield from _norm(f"{ours}.feed_forward_residual", f"{theirs}_ffn_ffn", settings)


def _norm(ours: str, theirs: str, settings: TransformerSettings) -> Pairs:
    end = "_pre" if settings.norm == "pre" else ""
    for our_part, their_part in (("weight", "scale"), ("bias", "bias")):
        yield f"{ours}.norm.{our_part}", (f"{theirs}_ln_{their_part}{end}",)


def build_model(
    architecture: Architecture, weights: Mapping[str, Floats], *, unknown: int
) -> Transformer:
    """Return our Transformer with their weights, which never says the unknown token.

    Raises ``ExportError`` if a weight is missing, of another shape, or has no place in it.
    """
    settings = architecture.settings
    _check_size(architecture, weights)
    taken = TakenWeights(
        {
            name: torch.from_numpy(values)
            for name, values in weights.items()
            if not name.endswith(ACTIVATION_MULTIPLIER)
        }
    )
    model = Transformer(
        settings,
        source_vocabulary=architecture.source_vocabulary,
        target_vocabulary=architecture.target_vocabulary,
    )
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for ours, theirs in paired_names(settings):
            parameters[ours].copy_(_joined(taken, parameters[ours], theirs))
        _embeddings(model, taken, architecture)
        model.projection.bias[unknown] = -torch.inf
    taken.check_all_used()
    return model.eval()


def _joined(taken: TakenWeights, parameter: Tensor, names: tuple[str, ...]) -> Tensor:
    """Return weights as one of our parameters has them."""
    rows = parameter.shape[0] // len(names)
    if parameter.dim() == 1:
        return torch.cat([taken.one((1, rows), name)[0] for name in names])
    return torch.cat([taken.one((parameter.shape[1], rows), name).T for name in names])


def _embeddings(model: Transformer, taken: TakenWeights, architecture: Architecture) -> None:
    width = model.settings.width
    target = (model.target_vocabulary, width)
    model.source_embedding.table.weight.copy_(
        taken.one((model.source_vocabulary, width), architecture.source_table)
    )
    model.target_embedding.table.weight.copy_(taken.one(target, architecture.target_table))
    if not architecture.is_output_tied:
        model.projection.weight.copy_(taken.one(target[::-1], OUTPUT).T)
    bias = taken.maybe(OUTPUT_BIAS, (1, model.target_vocabulary))
    model.projection.bias.copy_(torch.zeros(()) if bias is None else bias[0])


def _check_size(architecture: Architecture, weights: Mapping[str, Floats]) -> None:
    """Raise ``ExportError`` for a configuration of a model larger than its file.

    It is checked before memory is taken, which a configuration alone could ask any amount of.
    """
    settings = architecture.settings
    width, wide = settings.width, settings.feed_forward
    each = 2 * width * wide + 4 * width * width
    needed = (settings.encoder_layers + settings.decoder_layers) * each
    needed += architecture.target_vocabulary * width
    if architecture.source_table != architecture.target_table:
        needed += architecture.source_vocabulary * width
    there = sum(values.size for values in weights.values())
    if needed > there:
        raise ExportError(
            f"the model's configuration takes at least {needed:,} weights, and its file has "
            f"{there:,}"
        )
