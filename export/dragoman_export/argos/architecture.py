"""What the variables of a CTranslate2 model say it is, as settings of our Transformer.

Variables that a file leaves out have the values that CTranslate2 gives them. What our Transformer
can't be is refused here, with the variable that says so.
"""

import math
import re
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman_export.argos.model_file import ModelFile
from dragoman_export.errors import ExportError
from dragoman_export.hf.architecture import DEFAULT_MAX_LENGTH
from dragoman_training.models.positions import WAVES, tensor2tensor_sinusoids
from dragoman_training.models.settings import TransformerSettings

SPECIFICATION = "TransformerSpec"
REVISIONS = (3, 7)
"""First and last revision of the specification that is read."""
SIDES = {"source": "encoder", "target": "decoder"}
_ACTIVATIONS = {0: "relu", 2: "swish", 3: "gelu"}
_OTHER_ACTIVATIONS = {1: "GELU by tanh", 4: "GELU by sigmoid", 5: "tanh", 6: "sigmoid"}
_FOREIGN = {
    "relative_position_keys": "relative positions",
    "relative_position_values": "relative positions",
    "relative_asymmetric_position_keys": "relative positions",
    "relative_attention_bias": "relative positions",
    "rotary_dim": "rotary positions",
    "linear_0_noact": "gated linear units",
    "num_heads_kv": "multi-query attention",
    "memory_kv": "attention merged with that over the source",
    "head_dim": "heads of a width of their own",
    "sliding_window": "attention within a window",
    "q_norm": "norms of queries and keys",
    "k_norm": "norms of queries and keys",
    "v_norm": "norms of values",
    "layernorm_embedding": "a norm of the embeddings",
    "input_layer_norm": "norms on both sides of a sublayer",
    "shared_layer_norm": "sublayers side by side",
    "project_in": "embeddings of another width",
    "project_out": "embeddings of another width",
    "embeddings_1": "features beside the tokens",
    "scale_outputs": "scaled outputs",
    "final_logit_softcapping": "capped logits",
    "layer_scalar": "scaled layers",
    "weight_zero": "weights of 4 bits",
}
"""Parts of names of variables that only models have which our Transformer can't be."""
_FLAGS = {"alibi": "ALiBi's positions", "multi_query_attention": "multi-query attention"}
"""Numbers that say the same where they are not 0."""
_KNOWN = {
    *("num_heads", "pre_norm", "activation", "embeddings_merge"),
    *("scale_embeddings", "multiply_by_sqrt_depth", "start_from_zero_embedding", "queries_scale"),
    *("alignment_layer", "alignment_heads"),  # alignments are made in our own way
    *("alibi_use_positive_positions", "scale_alibi"),  # of ALiBi, which is refused
    *("with_source_bos", "with_source_eos", "with_target_bos", "user_decoder_start_tokens"),
    *_FLAGS,
}
_MAX_WIDTH, _MAX_LAYERS = 1 << 14, 256
"""Most that a model may have. Memory is taken by these before all weights were looked at."""
_COMPUTED_POSITIONS = 2048
"""Positions of a model whose file has no table of them, and which takes any number."""
_SAME_WAVES = 1e-6
"""Largest difference of a table of positions from waves that it is taken for."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Architecture:
    """A CTranslate2 model, as far as its variables say what it is."""

    settings: TransformerSettings
    """Settings of our Transformer that computes the same."""
    source_vocabulary: int
    """Tokens that have a source embedding."""
    target_vocabulary: int
    """Tokens that have a target embedding."""
    positions: dict[str, Tensor]
    """Table of positions of each side, for settings that say ``learned``; else empty."""


def table_of(side: str, model: ModelFile) -> str:
    """Return the name of a side's table of tokens; the source's may be the first of several."""
    name = f"{SIDES[side]}/embeddings_0/weight"
    return name if name in model.weights else f"{SIDES[side]}/embeddings/weight"


def positions_of(side: str) -> str:
    """Return the name of a side's table of positions."""
    return f"{SIDES[side]}/position_encodings/encodings"


def read_architecture(model: ModelFile, max_length: int | None) -> Architecture:
    """Read what a model is. Raises ``ExportError`` for what our Transformer can't be."""
    if model.specification != SPECIFICATION:
        raise ExportError(
            f"model.bin holds a {model.specification!r}: it must be a {SPECIFICATION}, that is, an "
            "encoder and a decoder"
        )
    first, last = REVISIONS
    if not first <= model.revision <= last:
        raise ExportError(
            f"model.bin is of revision {model.revision}: revisions {first} to {last} are read"
        )
    _check_parts(model)
    sizes = {side: _matrix(model, table_of(side, model)) for side in SIDES}
    (source, width), (target, _) = sizes["source"], sizes["target"]
    if width > _MAX_WIDTH:
        raise ExportError(f"{table_of('source', model)} has a width of {width}")
    positions = _positions(model, width)
    longest = min(max_length or DEFAULT_MAX_LENGTH, *(len(t) for t in positions.values()))
    waves = _waves(positions, longest, width)
    return Architecture(
        settings=_settings(model, width, longest, waves),
        source_vocabulary=source,
        target_vocabulary=target,
        positions=positions if waves == "learned" else {},
    )


def _check_parts(model: ModelFile) -> None:
    """Raise ``ExportError`` for a variable that our Transformer has no like of."""
    for name in sorted({*model.weights, *model.numbers}):
        for part in name.split("/"):
            if part in _FOREIGN:
                raise ExportError(f"{name}: the model has {_FOREIGN[part]}, which is not supported")
    for name, value in sorted(model.numbers.items()):
        key = name.rpartition("/")[2]
        if key in _FLAGS and value:
            raise ExportError(f"{name}: the model has {_FLAGS[key]}, which is not supported")
        if key not in _KNOWN:
            raise ExportError(f"{name}: a setting that is not known")
    for name in sorted(model.weights):
        if name.endswith("/gamma") and f"{name[:-5]}beta" not in model.weights:
            raise ExportError(f"{name}: the model has RMS norms, which are not supported")


def _settings(model: ModelFile, width: int, max_length: int, positions: str) -> TransformerSettings:
    heads = _number(model, "num_heads", 8)
    inner, _ = _matrix(model, "encoder/layer_0/ffn/linear_0/weight")
    starts_from_zero = model.numbers.get("decoder/start_from_zero_embedding", 0)
    for side in SIDES.values():
        _check_queries(model, side, width // max(1, heads))
    try:
        return TransformerSettings(
            width=width,
            heads=heads,
            feed_forward=inner,
            encoder_layers=_layers(model, "encoder"),
            decoder_layers=_layers(model, "decoder"),
            dropout=0.0,
            activation=_activation(_number(model, "activation", 0)),  # type: ignore[arg-type]
            norm="pre" if _number(model, "pre_norm", 1) else "post",
            positions=positions,  # type: ignore[arg-type]
            max_length=max_length,
            tied_embeddings=_tied(model),  # type: ignore[arg-type]
            scale_embeddings=_is_scaled(model, width),
            output_bias=True,  # 0 where there is none
            decoder_start="zero" if starts_from_zero else "token",
        )
    except ValueError as error:
        raise ExportError(f"model.bin: {error}") from None


def _number(model: ModelFile, name: str, default: int) -> int:
    """Return a whole number that both sides must agree on; early revisions state it once."""
    found = [
        model.numbers.get(f"{side}/{name}", model.numbers.get(name, default))
        for side in SIDES.values()
    ]
    if found[0] != found[1]:
        raise ExportError(
            f"encoder/{name} is {found[0]} and decoder/{name} {found[1]}: they must be the same"
        )
    if type(found[0]) is not int:
        raise ExportError(f"encoder/{name} is {found[0]!r}, and not a whole number")
    return found[0]


def _matrix(model: ModelFile, name: str) -> tuple[int, int]:
    """Return the shape of a matrix that every model has."""
    if name not in model.weights:
        raise ExportError(f"no weight is named {name}")
    shape = tuple(model.weights[name].shape)
    if len(shape) != 2 or 0 in shape:
        raise ExportError(f"{name} is {list(shape)}, and not a matrix")
    return shape


def _activation(number: int) -> str:
    if number not in _ACTIVATIONS:
        name = _OTHER_ACTIVATIONS.get(number, "unknown")
        raise ExportError(
            f"encoder/activation is {number} ({name}): it must be one of "
            + ", ".join(f"{key} ({each})" for key, each in _ACTIVATIONS.items())
        )
    return _ACTIVATIONS[number]


def _layers(model: ModelFile, side: str) -> int:
    pattern = re.compile(rf"{side}/layer_(\d+)/")
    found = {int(match[1]) for name in model.weights if (match := pattern.match(name))}
    if found != {*range(len(found))} or len(found) > _MAX_LAYERS:
        shown = ", ".join(map(str, sorted(found)[:20]))
        raise ExportError(f"model.bin: the layers of the {side} are {shown or 'missing'}")
    return len(found)


def _tied(model: ModelFile) -> str:
    """Return which matrices are one. CTranslate2 makes them so wherever they are equal."""
    target = model.weights[table_of("target", model)]
    source = model.weights[table_of("source", model)]
    output = model.weights.get("decoder/projection/weight")
    if output is None or not _same(output, target):
        return "none"
    return "all" if _same(source, target) else "target"


def _same(one: Tensor, other: Tensor) -> bool:
    return one is other or (one.shape == other.shape and torch.equal(one, other))


def _is_scaled(model: ModelFile, width: int) -> bool:
    """Whether embeddings are multiplied by the square root of the width, on both sides."""
    found = []
    for side in SIDES.values():
        scale: int | float = 1
        for name in (f"{side}/embeddings/multiply_by_sqrt_depth", f"{side}/scale_embeddings"):
            scale = model.numbers.get(name, scale)
        if isinstance(scale, float):  # then it is the factor itself
            if scale != 1 and not math.isclose(scale, math.sqrt(width), rel_tol=1e-6):
                raise ExportError(f"{side}/scale_embeddings is {scale:g}: it must be 1 or √{width}")
            scale = int(scale != 1)
        found.append(bool(scale))
    if found[0] != found[1]:
        raise ExportError("encoder/scale_embeddings and decoder/scale_embeddings must be the same")
    return found[0]


def _check_queries(model: ModelFile, side: str, head_width: int) -> None:
    for name, value in model.numbers.items():
        usual = max(1, head_width) ** -0.5
        if (
            name.startswith(f"{side}/")
            and name.endswith("/queries_scale")
            and not math.isclose(value, usual, rel_tol=1e-6)
        ):
            raise ExportError(f"{name} is {value:g}: it must be 1 / √{head_width}")


def _positions(model: ModelFile, width: int) -> dict[str, Tensor]:
    """Return each side's table of positions, made here where a file leaves it to CTranslate2."""
    tables: dict[str, Tensor] = {}
    for side in SIDES:
        name = positions_of(side)
        if name in model.weights:
            rows, columns = _matrix(model, name)
            if columns != width or rows < 2:
                raise ExportError(f"{name} is {[rows, columns]}: its width must be {width}")
            tables[side] = model.weights[name]
        elif width >= 4 and width % 2 == 0:
            tables[side] = tensor2tensor_sinusoids(_COMPUTED_POSITIONS, width, first=1)
        else:
            raise ExportError(f"{table_of(side, model)} has a width of {width}: it must be even")
    return tables


def _waves(tables: dict[str, Tensor], length: int, width: int) -> str:
    """Return the name of the waves that both tables hold, or else ``learned``."""
    for name, make in WAVES.items():
        if width % 2 == 0 and width >= 4:
            expected = make(length, width)
            if all((t[:length] - expected).abs().max() <= _SAME_WAVES for t in tables.values()):
                return name
    return "learned"
