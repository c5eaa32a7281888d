"""From a checkpoint of ours to a Hugging Face directory, for transformers and what builds on it.

Ids are renumbered as each family has them. In Marian's the end is first and padding last. Padding
is what decoding begins with there, as a vector of zeros, and CTranslate2 takes that for granted.
Our begin token has a vector of its own, and always stands at position 0: so it is added to that
position of the decoder. The tables of positions are stored with the weights, where transformers
and CTranslate2 find them.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from dragoman_export.errors import ExportError
from dragoman_export.hf import weights as names
from dragoman_export.hf.architecture import CLASSES, M2M100, MARIAN
from dragoman_export.hf.vocabularies import (
    CONFIG,
    SOURCE_MODEL,
    TARGET_MODEL,
    TARGET_VOCABULARY,
    VOCABULARY,
)
from dragoman_training.data.tokenizer import BEGIN, END, PAD, UNKNOWN, Tokenizer, TokenizerPair
from dragoman_training.files import staged_directory
from dragoman_training.models.positions import LearnedPositions
from dragoman_training.models.settings import TransformerSettings
from dragoman_training.models.transformer import Embedding, Transformer
from dragoman_training.train.checkpoint import Checkpoint

_NAMES = {END: "</s>", UNKNOWN: "<unk>", BEGIN: "<s>", PAD: "<pad>"}
_FIRST = {MARIAN: (END, UNKNOWN, BEGIN), M2M100: (BEGIN, PAD, END, UNKNOWN)}
"""Special tokens in the order of their new ids, by family; Marian's padding comes last."""


def write_directory(checkpoint: Checkpoint, path: Path) -> str:
    """Write a checkpoint as a directory of Hugging Face, and return the name of its class.

    It is written aside and then given its name. Raises ``ExportError`` if no class fits the model.
    """
    path = path.resolve()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ExportError(f"{path}: exists, and is not an empty directory")
    model = checkpoint.build_model()
    if not isinstance(model, Transformer):
        raise ExportError(f"a model of kind {model.settings.kind!r} fits no class of transformers")
    if checkpoint.tokenizers.manifest:
        raise ExportError("the model has a vocabulary from elsewhere: only ours can be exported")
    model.eval()
    family = _family(model.settings, checkpoint.tokenizers)
    sizes = model.source_vocabulary, model.target_vocabulary
    with staged_directory(path) as staging:
        save_file(_weights(model, family), staging / "model.safetensors", {"format": "pt"})
        _write(staging / "config.json", _config(model, family))
        _write(staging / "generation_config.json", _generation(model, family))
        _write(staging / CONFIG, _tokenizer_config(checkpoint, model))
        tokenizers = checkpoint.tokenizers
        (staging / SOURCE_MODEL).write_bytes(tokenizers.source.model)
        (staging / TARGET_MODEL).write_bytes(tokenizers.target.model)
        _write(staging / VOCABULARY, _vocabulary(tokenizers.source, old_ids(family, sizes[0])))
        if not tokenizers.joint:
            pieces = _vocabulary(tokenizers.target, old_ids(family, sizes[1]))
            _write(staging / TARGET_VOCABULARY, pieces)
    return CLASSES[family]


def _family(settings: TransformerSettings, tokenizers: TokenizerPair) -> str:
    if settings.norm_epsilon != 1e-5:
        raise ExportError(
            f"norm_epsilon is {settings.norm_epsilon}, and in classes of transformers it is 1e-05"
        )
    if settings.decoder != "attention":
        raise ExportError(
            f"decoder is {settings.decoder!r}, and no class of transformers has such a decoder"
        )
    if settings.norm == "post":
        if not tokenizers.joint and tokenizers.source.size != tokenizers.target.size:
            raise ExportError(
                f"vocabularies of {tokenizers.source.size} and {tokenizers.target.size} entries: "
                "MarianMT has one id of padding for both, so their sizes must be the same"
            )
        return MARIAN
    for is_wrong, reason in (
        (
            settings.positions != "m2m100",
            f"positions is {settings.positions!r}, and its are fixed (in a recipe, 'm2m100')",
        ),
        (settings.output_bias, "output_bias is true, and M2M-100 has none"),
        (
            settings.decoder_start != "token",
            f"decoder_start is {settings.decoder_start!r}, and M2M-100 begins with a token",
        ),
        (
            settings.tied_embeddings != "all",
            f"tied_embeddings is {settings.tied_embeddings!r}, and M2M-100 has one matrix",
        ),
    ):
        if is_wrong:
            raise ExportError(
                f"norm is 'pre', which MarianMT is not; of M2M-100 it can't be one: {reason}"
            )
    return M2M100


def old_ids(family: str, vocabulary: int) -> list[int]:
    """Return our id of each of their ids."""
    others = [i for i in range(vocabulary) if i not in _NAMES]
    return [*_FIRST[family], *others, *([PAD] if family == MARIAN else [])]


def _weights(model: Transformer, family: str) -> dict[str, Tensor]:
    settings = model.settings
    ours = {name: p.detach().float() for name, p in model.named_parameters()}
    theirs = {
        each: part
        for name, several in names.paired_names(settings)
        for each, part in zip(several, ours[name].chunk(len(several)), strict=True)
    }
    source = _renumbered(model.source_embedding.table.weight, family)
    target = _renumbered(model.target_embedding.table.weight, family)
    if family == MARIAN:
        for side, embedding in (
            ("source", model.source_embedding),
            ("target", model.target_embedding),
        ):
            theirs[names.positions_of(side)] = _positions(embedding)
        if settings.decoder_start == "token":
            begin = target[_FIRST[family].index(BEGIN)] * model.target_embedding.scale
            theirs[names.positions_of("target")][0] += begin
        for table in (source, target):
            table[-1] = 0.0  # padding, which decoding begins with
        bias = torch.zeros(model.target_vocabulary)
        if settings.output_bias:
            bias = _renumbered(ours["projection.bias"], family)
            bias[-1] = 0.0
        theirs[names.BIAS] = bias[None]
    if settings.tied_embeddings == "all":
        theirs[names.SHARED] = target
    else:
        theirs[names.table_of("source")] = source
        theirs[names.table_of("target")] = target
    if settings.tied_embeddings == "none":
        theirs[names.PROJECTION] = _renumbered(model.projection.weight, family)
    return {name: tensor.contiguous().clone() for name, tensor in theirs.items()}


def _renumbered(rows: Tensor, family: str) -> Tensor:
    return rows.detach().float()[old_ids(family, len(rows))]


def _positions(embedding: Embedding) -> Tensor:
    positions = embedding.positions
    table = positions.weight if isinstance(positions, LearnedPositions) else positions.table_LD
    return table.detach().float().clone()


def _config(model: Transformer, family: str) -> dict[str, Any]:
    settings, size = model.settings, model.source_vocabulary
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", getattr(settings, f"{side}_layers")),
            ("attention_heads", settings.heads),
            ("ffn_dim", settings.feed_forward),
            ("layerdrop", 0.0),
        )
    }
    marian = {
        "decoder_vocab_size": model.target_vocabulary,
        "share_encoder_decoder_embeddings": settings.tied_embeddings == "all",
    }
    return {
        "architectures": [CLASSES[family]],
        "model_type": family,
        "d_model": settings.width,
        **sides,
        "activation_function": settings.activation,
        "dropout": settings.dropout,
        "attention_dropout": settings.attention_dropout,
        "activation_dropout": settings.activation_dropout,
        "max_position_embeddings": settings.max_length,
        "scale_embedding": settings.scale_embeddings,
        "tie_word_embeddings": settings.tied_embeddings != "none",
        "vocab_size": size,
        **(marian if family == MARIAN else {}),
        **_tokens(model, family),
        "is_encoder_decoder": True,
        "dtype": "float32",
    }


def _tokens(model: Transformer, family: str) -> dict[str, Any]:
    ids = old_ids(family, model.target_vocabulary)
    return {
        "pad_token_id": ids.index(PAD),
        "eos_token_id": ids.index(END),
        "bos_token_id": ids.index(BEGIN),
        "decoder_start_token_id": ids.index(PAD if family == MARIAN else BEGIN),
        "forced_eos_token_id": ids.index(END),
    }


def _generation(model: Transformer, family: str) -> dict[str, Any]:
    """Return settings with which ``generate`` searches as Dragoman does; see docs/bridges.md."""
    tokens = _tokens(model, family)
    return {
        **tokens,
        "bad_words_ids": [[tokens["pad_token_id"]]],
        "renormalize_logits": True,
        "early_stopping": "never",
        "max_length": model.settings.max_length,
    }


def _tokenizer_config(checkpoint: Checkpoint, model: Transformer) -> dict[str, Any]:
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": checkpoint.config.get("source_language") or None,
        "target_lang": checkpoint.config.get("target_language") or None,
        "bos_token": _NAMES[BEGIN],
        "eos_token": _NAMES[END],
        "unk_token": _NAMES[UNKNOWN],
        "pad_token": _NAMES[PAD],
        "separate_vocabs": not checkpoint.tokenizers.joint,
        "model_max_length": model.settings.max_length,
    }


def _vocabulary(tokenizer: Tokenizer, ids: list[int]) -> dict[str, int]:
    """Return their id of each piece, with special tokens by the names that they have there."""
    pieces = (_NAMES.get(old, piece) for old, piece in zip(ids, tokenizer.pieces(ids), strict=True))
    return {piece: new for new, piece in enumerate(pieces)}


def _write(path: Path, table: dict[str, Any]) -> None:
    path.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
