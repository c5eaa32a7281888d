"""What a ``config.json`` of MarianMT or M2M-100 says, as settings of our Transformer.

Keys that a file leaves out have the values that transformers gives them. What our Transformer can't
be is refused here, with the key that says so.
"""

from dataclasses import dataclass
from typing import Any

from dragoman_export.errors import ExportError
from dragoman_training.models.settings import TransformerSettings

MARIAN, M2M100 = "marian", "m2m_100"
CLASSES = {MARIAN: "MarianMTModel", M2M100: "M2M100ForConditionalGeneration"}
DEFAULT_MAX_LENGTH = 256
"""Most tokens of a sentence that a bundle takes, unless told otherwise: some 180 words, of which
hardly any sentence has as many. Memory for them is taken at the start, and OPUS-MT's 512 or
M2M-100's 1,024 would mostly lie empty."""

_SIZES = {
    "max_position_embeddings": 1024,
    "encoder_layers": 12,
    "encoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_layers": 12,
    "decoder_ffn_dim": 4096,
    "decoder_attention_heads": 16,
    "d_model": 1024,
    "tie_word_embeddings": True,
}
_DEFAULTS: dict[str, dict[str, Any]] = {
    MARIAN: {
        **_SIZES,
        "vocab_size": 58101,
        "activation_function": "gelu",
        "scale_embedding": False,
        "pad_token_id": 58100,
        "eos_token_id": 0,
        "decoder_start_token_id": 58100,
        "share_encoder_decoder_embeddings": True,
    },
    M2M100: {
        **_SIZES,
        "vocab_size": 128112,
        "activation_function": "relu",
        "scale_embedding": True,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "share_encoder_decoder_embeddings": True,
    },
}
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
_TARGET = "decoder_vocab_size"
_FOREIGN = ("normalize_embedding", "add_final_layer_norm", "normalize_before")
"""Keys of older files, for what neither class of transformers does any more."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """A model of Hugging Face, as far as its configuration says what it is."""

    family: str
    """Family of the model: ``marian`` or ``m2m_100``."""
    settings: TransformerSettings
    """Settings of our Transformer that computes the same."""
    source_vocabulary: int
    """Tokens of the source vocabulary."""
    target_vocabulary: int
    """Tokens of the target vocabulary."""
    shared: bool
    """Whether the embeddings of both sides are one matrix."""
    positions: int
    """Positions that the original model has; ours may have fewer."""
    pad: int
    """Id of the padding token."""
    begin: int
    """Id of the token that decoding begins with."""
    end: int
    """Id of the token that ends a sentence."""
    banned: tuple[int, ...]
    """Tokens that no translation has."""


def read_architecture(
    config: dict[str, Any], generation: dict[str, Any], max_length: int | None
) -> Architecture:
    """Read a configuration. Raises ``ExportError`` for what our Transformer can't be."""
    family = config.get("model_type")
    if not isinstance(family, str) or family not in CLASSES:
        raise ExportError(f"model_type is {family!r}: it must be one of {', '.join(CLASSES)}")
    _check_class(config, family)
    facts = {**_DEFAULTS[family], **{k: v for k, v in config.items() if v is not None}}
    for key in _FOREIGN:
        if config.get(key):
            raise ExportError(f"{key} is true: not what {CLASSES[family]} computes")
    shared = facts["share_encoder_decoder_embeddings"]
    source = _whole(facts, "vocab_size")
    target = source if shared else _whole({"decoder_vocab_size": source, **facts}, _TARGET)
    pad, end = _token(facts, {}, "pad_token_id"), _token(facts, generation, "eos_token_id")
    if family == M2M100 and pad != 1:
        raise ExportError(f"pad_token_id is {pad}: M2M-100 counts positions from it, and must be 1")
    positions = _whole(facts, "max_position_embeddings")
    return Architecture(
        family=family,
        settings=_settings(facts, family, min(positions, max_length or DEFAULT_MAX_LENGTH), shared),
        source_vocabulary=source,
        target_vocabulary=target,
        shared=bool(shared),
        positions=positions,
        pad=pad,
        begin=_token(facts, generation, "decoder_start_token_id"),
        end=end,
        banned=_banned(config, generation, pad, end, target),
    )


def _check_class(config: dict[str, Any], family: str) -> None:
    named = config.get("architectures") or [CLASSES[family]]
    if named != [CLASSES[family]]:
        raise ExportError(f"architectures is {named!r}: it must be {CLASSES[family]}")


def _settings(
    facts: dict[str, Any], family: str, max_length: int, shared: bool
) -> TransformerSettings:
    for part in ("attention_heads", "ffn_dim"):
        if facts[f"encoder_{part}"] != facts[f"decoder_{part}"]:
            raise ExportError(
                f"encoder_{part} is {facts[f'encoder_{part}']!r} and decoder_{part} "
                f"{facts[f'decoder_{part}']!r}: they must be the same"
            )
    activation = facts["activation_function"]
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ExportError(
            f"activation_function is {activation!r}: it must be one of {', '.join(ACTIVATIONS)}"
        )
    tied = "none" if not facts["tie_word_embeddings"] else "all" if shared else "target"
    try:
        return TransformerSettings(
            width=_whole(facts, "d_model"),
            heads=_whole(facts, "encoder_attention_heads"),
            feed_forward=_whole(facts, "encoder_ffn_dim"),
            encoder_layers=_whole(facts, "encoder_layers"),
            decoder_layers=_whole(facts, "decoder_layers"),
            dropout=0.0,
            activation=ACTIVATIONS[activation],  # type: ignore[arg-type]
            norm="pre" if family == M2M100 else "post",
            positions="m2m100" if family == M2M100 else "marian",
            max_length=max_length,
            tied_embeddings=tied,  # type: ignore[arg-type]
            scale_embeddings=bool(facts["scale_embedding"]),
            output_bias=True,  # Marian's own, and what bans tokens
        )
    except ValueError as error:
        raise ExportError(f"config.json: {error}") from None


def _whole(facts: dict[str, Any], key: str) -> int:
    value = facts[key]
    if type(value) is not int or value < 1:
        raise ExportError(f"{key} is {value!r}: it must be a whole number above 0")
    return value


def _token(facts: dict[str, Any], generation: dict[str, Any], key: str) -> int:
    """Return the id of a special token, by the settings of ``generate`` or else of the model."""
    value = generation.get(key, facts[key])
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if type(value) is not int or value < 0:
        raise ExportError(f"{key} is {value!r}: it must be the id of one token")
    return value


def _banned(
    config: dict[str, Any], generation: dict[str, Any], pad: int, end: int, vocabulary: int
) -> tuple[int, ...]:
    """Return the tokens that no translation has: padding, and what ``generate`` is told to ban."""
    words = generation.get("bad_words_ids", config.get("bad_words_ids")) or []
    if not isinstance(words, list) or not all(isinstance(w, list) and len(w) == 1 for w in words):
        raise ExportError("bad_words_ids has sequences of tokens: only single ones can be banned")
    for key in ("begin_suppress_tokens", "sequence_bias", "forced_decoder_ids"):
        if generation.get(key, config.get(key)):
            raise ExportError(f"{key} is set: bundles have no such rule")
    single = generation.get("suppress_tokens", config.get("suppress_tokens")) or []
    banned = [
        pad,
        *(word[0] for word in words),
        *(single if isinstance(single, list) else [single]),
    ]
    if end in banned or not all(type(t) is int and 0 <= t < vocabulary for t in banned):
        raise ExportError(f"tokens {sorted(banned, key=str)} can't all be banned")
    return tuple(sorted({*banned}))
