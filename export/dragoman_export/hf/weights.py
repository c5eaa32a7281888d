"""The names of weights, theirs and ours, and from one to the other.

Keys and values are two matrices there and one here; the rest is a matter of names.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from dragoman_export.hf.architecture import Architecture
from dragoman_export.importing.weights import TakenWeights
from dragoman_training.models.positions import WAVES
from dragoman_training.models.settings import TransformerSettings
from dragoman_training.models.transformer import Transformer

SHARED, PROJECTION, BIAS = "model.shared.weight", "lm_head.weight", "final_logits_bias"
SIDES = {"source": "encoder", "target": "decoder"}


def table_of(side: str) -> str:
    """Return their name of a side's table of tokens."""
    return f"model.{SIDES[side]}.embed_tokens.weight"


def positions_of(side: str) -> str:
    """Return their name of a side's table of positions."""
    return f"model.{SIDES[side]}.embed_positions.weight"


def paired_names(settings: TransformerSettings) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield our name of each weight of all layers, and their name of it, or of its two halves."""
    ff = {"widen": "fc1", "narrow": "fc2"}
    for part in ("weight", "bias"):
        for side, layers in (
            ("encoder", settings.encoder_layers),
            ("decoder", settings.decoder_layers),
        ):
            attentions = (
                {"attention": ("self_attn", "attention_residual")}
                if side == "encoder"
                else {
                    "self_attention": ("self_attn", "self_residual"),
                    "cross_attention": ("encoder_attn", "cross_residual"),
                }
            )
            for number in range(layers):
                ours, theirs = f"{side}.{number}.", f"model.{side}.layers.{number}."
                for attention, (name, residual) in attentions.items():
                    yield (f"{ours}{attention}.query.{part}", (f"{theirs}{name}.q_proj.{part}",))
                    key_value = (f"{theirs}{name}.k_proj.{part}", f"{theirs}{name}.v_proj.{part}")
                    yield f"{ours}{attention}.key_value.{part}", key_value
                    yield (f"{ours}{attention}.output.{part}", (f"{theirs}{name}.out_proj.{part}",))
                    norm = (f"{theirs}{name}_layer_norm.{part}",)
                    yield f"{ours}{residual}.norm.{part}", norm
                for half, name in ff.items():
                    yield f"{ours}feed_forward.{half}.{part}", (f"{theirs}{name}.{part}",)
                norm = (f"{theirs}final_layer_norm.{part}",)
                yield f"{ours}feed_forward_residual.norm.{part}", norm
            if settings.norm == "pre":
                yield f"{side}_norm.{part}", (f"model.{side}.layer_norm.{part}",)


def build_model(architecture: Architecture, weights: Mapping[str, Tensor]) -> Transformer:
    """Return our Transformer with their weights.

    Raises ``ExportError`` if a weight is missing, of another shape, or has no place in it.
    """
    taken = TakenWeights(weights)
    tables = {side: _positions(taken, architecture, side) for side in SIDES}
    settings = architecture.settings
    if any(table is not None for table in tables.values()):
        settings = replace(settings, positions="learned")
    _check_sizes(taken, architecture)
    model = Transformer(
        settings,
        source_vocabulary=architecture.source_vocabulary,
        target_vocabulary=architecture.target_vocabulary,
    )
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for ours, theirs in paired_names(settings):
            rows, *others = parameters[ours].shape
            shape = (rows // len(theirs), *others)
            parameters[ours].copy_(torch.cat([taken.one(shape, name) for name in theirs]))
        _embeddings(model, taken, architecture)
        for side, table in tables.items():
            name = f"{side}_embedding.positions.weight"
            if name in parameters:
                table = _waves(architecture) if table is None else table
                parameters[name].copy_(table[: settings.max_length])
    taken.check_all_used()
    return model.eval()


def _check_sizes(taken: TakenWeights, architecture: Architecture) -> None:
    """Compare the sizes that a configuration says with the weights, before memory is taken."""
    settings = architecture.settings
    tables = _tables(architecture)
    taken.one((architecture.source_vocabulary, settings.width), *tables["source"])
    taken.one((architecture.target_vocabulary, settings.width), *tables["target"])
    layers = {"encoder": settings.encoder_layers, "decoder": settings.decoder_layers}
    for side, count in layers.items():
        shape = (settings.feed_forward, settings.width)
        taken.one(shape, f"model.{side}.layers.{count - 1}.fc1.weight")


def _tables(architecture: Architecture) -> dict[str, tuple[str, ...]]:
    """Return the names that the embeddings of each side may have."""
    names: dict[str, tuple[str, ...]] = {side: (table_of(side),) for side in SIDES}
    if architecture.shared:
        names = dict.fromkeys(SIDES, (SHARED, *(table_of(side) for side in SIDES)))
    if architecture.settings.tied_embeddings != "none":
        names["target"] = (*names["target"], PROJECTION)
    return names


def _embeddings(model: Transformer, taken: TakenWeights, architecture: Architecture) -> None:
    width = model.settings.width
    tied = model.settings.tied_embeddings != "none"
    names = _tables(architecture)
    target = (model.target_vocabulary, width)
    model.source_embedding.table.weight.copy_(
        taken.one((model.source_vocabulary, width), *names["source"])
    )
    model.target_embedding.table.weight.copy_(taken.one(target, *names["target"]))
    if not tied:
        model.projection.weight.copy_(taken.one(target, PROJECTION))
    bias = taken.maybe(BIAS, (1, model.target_vocabulary))
    if bias is not None:
        model.projection.bias.copy_(bias[0])
    # Banned before probabilities are computed: they are those of a vocabulary without the token.
    model.projection.bias[list(architecture.banned)] = -torch.inf


def _waves(architecture: Architecture) -> Tensor:
    settings = architecture.settings
    return WAVES[settings.positions](architecture.positions, settings.width)


def _positions(taken: TakenWeights, architecture: Architecture, side: str) -> Tensor | None:
    """Return a table of positions, if the file has one that is not the waves it should be."""
    if architecture.settings.positions == "m2m100":
        # Always computed; some files have a table that nothing reads.
        taken.used.add(f"{positions_of(side)}s")
        return None
    shape = (architecture.positions, architecture.settings.width)
    table = taken.maybe(positions_of(side), shape)
    if table is None or torch.allclose(table, _waves(architecture), rtol=0, atol=2e-3):
        return None
    return table
