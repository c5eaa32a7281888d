"""What a Marian model's configuration says, as settings of our Transformer.

A key that is left out has Marian's default. What our Transformer can't be is refused here, with the
key that says so.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman_export.errors import ExportError
from dragoman_export.marian.yaml_text import shown
from dragoman_training.models.settings import TransformerSettings

DEFAULT_MAX_LENGTH = 256
"""Most tokens of a sentence that a bundle takes, unless told otherwise. Bergamot splits sentences
of more than 128."""

_FIXED: Mapping[str, tuple[str, ...]] = {
    "type": ("transformer",),
    "transformer-ffn-depth": ("2",),
    "transformer-decoder-ffn-depth": ("0", "2"),
    "transformer-no-projection": ("false",),
    "transformer-rnn-projection": ("false",),
    "transformer-pool": ("false",),
    "transformer-train-positions": ("false",),
    "transformer-train-position-embeddings": ("false",),
    "transformer-no-bias": ("false",),
    "transformer-no-affine": ("false",),
    "transformer-postprocess-emb": ("d", ""),
    "layer-normalization": ("false",),
    "embedding-normalization": ("false",),
    "lemma-dim-emb": ("0",),
    "right-left": ("false",),
    "ulr": ("false",),
}
"""Values that a key may have. The first is taken if a file leaves the key out."""
_EMPTY = ("transformer-tied-layers", "input-types")
"""Keys whose lists must be empty."""
_ACTIVATIONS = ("relu", "swish")
_NORMS = {("", "dan", ""): "post", ("n", "da", "n"): "pre"}
"""Norm of our Transformer by the operations before a sublayer, after it, and after all layers:
d is dropout, a adds what came in, n is a norm."""
_PRE_NORM_SINCE = (1, 11)
"""Version of Marian from which on a norm before self-attention is also that of keys and values."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """A model of Marian, as far as its configuration says what it is."""

    settings: TransformerSettings
    """Settings of our Transformer that computes the same."""
    source_vocabulary: int
    """Tokens of the source vocabulary."""
    target_vocabulary: int
    """Tokens of the target vocabulary."""
    source_table: str
    """Name of the source's table of embeddings."""
    target_table: str
    """Name of the target's table of embeddings."""
    is_output_tied: bool
    """Whether the target's table is also the matrix of the output."""
    version: str
    """Version of Marian that wrote the model."""


def read_architecture(config: Mapping[str, Any], max_length: int | None) -> Architecture:
    """Read a configuration. Raises ``ExportError`` for what our Transformer can't be."""
    for key, allowed in _FIXED.items():
        value = _text(config, key, allowed[0])
        if value not in allowed:
            choices = " or ".join(repr(each) for each in allowed)
            raise ExportError(f"{key} is {shown(value)}: it must be {choices}")
    for key in _EMPTY:
        if config.get(key):
            raise ExportError(f"{key} is {shown(config[key])}: it must be empty")
    _check_factors(config)
    vocabularies = _vocabularies(config)
    everything, target, both = (
        _truth(config, key)
        for key in ("tied-embeddings-all", "tied-embeddings", "tied-embeddings-src")
    )
    shared = everything or both
    tied = "all" if everything or (both and target) else "target" if target else "none"
    if shared and vocabularies[0] != vocabularies[1]:
        raise ExportError(
            f"dim-vocabs is {list(vocabularies)}, but one table is to serve both vocabularies"
        )
    return Architecture(
        settings=_settings(config, tied, max_length or DEFAULT_MAX_LENGTH),
        source_vocabulary=vocabularies[0],
        target_vocabulary=vocabularies[1],
        source_table="Wemb" if shared else "encoder_Wemb",
        target_table="Wemb" if shared else "decoder_Wemb",
        is_output_tied=tied != "none",
        version=_text(config, "version", "unknown").strip(),
    )


def _settings(config: Mapping[str, Any], tied: str, max_length: int) -> TransformerSettings:
    feed_forward = _whole(config, "transformer-dim-ffn")
    own = _whole(config, "transformer-decoder-dim-ffn", "0", least=0)
    if own not in (0, feed_forward):
        raise ExportError(
            f"transformer-decoder-dim-ffn is {own} and transformer-dim-ffn {feed_forward}: they "
            "must be the same"
        )
    activation = _text(config, "transformer-ffn-activation", "swish")
    if activation not in _ACTIVATIONS:
        # By gelu, versions of Marian mean two different functions.
        raise ExportError(
            f"transformer-ffn-activation is {shown(activation)}: it must be one of "
            f"{', '.join(_ACTIVATIONS)}"
        )
    try:
        return TransformerSettings(
            width=_whole(config, "dim-emb"),
            heads=_whole(config, "transformer-heads"),
            feed_forward=feed_forward,
            encoder_layers=_whole(config, "enc-depth"),
            decoder_layers=_whole(config, "dec-depth"),
            dropout=0.0,
            activation=activation,  # type: ignore[arg-type]
            norm=_norm(config),  # type: ignore[arg-type]
            norm_epsilon=1e-6,
            positions="tensor2tensor",
            max_length=max_length,
            tied_embeddings=tied,  # type: ignore[arg-type]
            output_bias=True,  # Marian's own, and what bans the unknown token
            decoder=_decoder(config),  # type: ignore[arg-type]
            decoder_start="zero",
        )
    except ValueError as error:
        raise ExportError(f"the model's configuration: {error}") from None


def _decoder(config: Mapping[str, Any]) -> str:
    """Return what a decoder layer looks back with."""
    kind = _text(config, "transformer-decoder-autoreg", "self-attention")
    if kind == "self-attention":
        return "attention"
    if kind != "rnn":
        raise ExportError(
            f"transformer-decoder-autoreg is {shown(kind)}: it must be 'self-attention' or 'rnn'"
        )
    cell = _text(config, "dec-cell", "gru")
    if cell != "ssru":
        raise ExportError(f"dec-cell is {shown(cell)}: it must be 'ssru'")
    return "ssru"


def _norm(config: Mapping[str, Any]) -> str:
    """Return where the norms are."""
    keys = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")
    defaults = ("", "dan", "")
    operations = tuple(_text(config, *each) for each in zip(keys, defaults, strict=True))
    if operations not in _NORMS:
        told = ", ".join(f"{k} is {shown(v)}" for k, v in zip(keys, operations, strict=True))
        raise ExportError(f"{told}: they must be '', 'dan' and '', or 'n', 'da' and 'n'")
    norm = _NORMS[operations]
    version = re.match(r"v?(\d+)\.(\d+)", _text(config, "version", ""))
    if norm == "pre" and (not version or (int(version[1]), int(version[2])) < _PRE_NORM_SINCE):
        raise ExportError(
            "transformer-preprocess is 'n', and version "
            f"{_text(config, 'version', '').split(' ')[0] or 'unknown'}: Marian before "
            f"{'.'.join(map(str, _PRE_NORM_SINCE))} leaves keys and values without that norm"
        )
    return norm


def _check_factors(config: Mapping[str, Any]) -> None:
    """Raise ``ExportError`` for a vocabulary of lemmas with factors."""
    names = config.get("vocabs", [])
    for name in names if isinstance(names, list) else [names]:
        if str(name).endswith(".fsv"):
            raise ExportError(f"vocabs has {shown(name)}: factored vocabularies can't be imported")


def _vocabularies(config: Mapping[str, Any]) -> tuple[int, int]:
    sizes = config.get("dim-vocabs")
    if not isinstance(sizes, Sequence) or isinstance(sizes, str) or len(sizes) != 2:
        raise ExportError(f"dim-vocabs is {shown(sizes)}: it must be the sizes of two vocabularies")
    source, target = (_whole({"dim-vocabs": size}, "dim-vocabs", least=4) for size in sizes)
    return source, target


def _text(config: Mapping[str, Any], key: str, default: str) -> str:
    value = config.get(key, default)
    if not isinstance(value, str):
        raise ExportError(f"{key} is {shown(value)}: it must be one value")
    return value


def _truth(config: Mapping[str, Any], key: str) -> bool:
    value = _text(config, key, "false")
    if value not in ("true", "false"):
        raise ExportError(f"{key} is {shown(value)}: it must be true or false")
    return value == "true"


def _whole(config: Mapping[str, Any], key: str, default: str = "", least: int = 1) -> int:
    value = _text(config, key, default)
    # Twelve digits are more than anything real has, and int() is slow with thousands.
    if not re.fullmatch(r"\d{1,12}", value, re.ASCII) or int(value) < least:
        raise ExportError(f"{key} is {shown(value)}: it must be a whole number, at least {least}")
    return int(value)
