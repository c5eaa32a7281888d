"""Our Transformer as one of transformers' own classes: the same weights for both.

A post-norm model becomes a MarianMT, and a pre-norm one an M2M-100, which is the same but for the
place of its norms. Tables of positions are copied, as both lay out sines and cosines in their own
order.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    GenerationConfig,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
)

from dragoman_training.data.tokenizer import BEGIN, END, PAD
from dragoman_training.models.attention import MultiHeadAttention
from dragoman_training.models.layers import DecoderLayer, EncoderLayer, FeedForward
from dragoman_training.models.positions import SinusoidalPositions
from dragoman_training.models.transformer import Embedding, Transformer


def build(model: Transformer) -> Any:
    """Return a model whose ``generate`` gives what our search gives."""
    settings = model.settings
    if settings.tied_embeddings != "all" or settings.output_bias:
        raise SystemExit(
            "transformers can be compared only with models that tie all embeddings "
            "and have no output bias"
        )
    common: dict[str, Any] = {
        "vocab_size": model.target_vocabulary,
        "d_model": settings.width,
        "encoder_layers": settings.encoder_layers,
        "decoder_layers": settings.decoder_layers,
        "encoder_attention_heads": settings.heads,
        "decoder_attention_heads": settings.heads,
        "encoder_ffn_dim": settings.feed_forward,
        "decoder_ffn_dim": settings.feed_forward,
        "activation_function": settings.activation,
        "max_position_embeddings": settings.max_length,
        "scale_embedding": settings.scale_embeddings,
        "pad_token_id": PAD,
        "bos_token_id": BEGIN,
        "eos_token_id": END,
        "decoder_start_token_id": BEGIN,
        "forced_eos_token_id": None,
    }
    theirs: Any
    if settings.norm == "pre":
        theirs = M2M100ForConditionalGeneration(M2M100Config(**common))
    else:
        theirs = MarianMTModel(MarianConfig(**common))
    with torch.no_grad():
        _fill(theirs.model, model)
    theirs.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
        pad_token_id=PAD, bos_token_id=BEGIN, eos_token_id=END, decoder_start_token_id=BEGIN
    )
    return theirs.eval()


def _fill(theirs: Any, model: Transformer) -> None:
    theirs.shared.weight.copy_(model.target_embedding.table.weight)
    for side, ours in (
        (theirs.encoder, model.source_embedding),
        (theirs.decoder, model.target_embedding),
    ):
        _positions(side.embed_positions, ours)
    for one, layer in zip(theirs.encoder.layers, model.encoder, strict=True):
        assert isinstance(layer, EncoderLayer)
        _attention(one.self_attn, layer.attention)
        _copy(one.self_attn_layer_norm, layer.attention_residual.norm)
        _feed_forward(one, layer.feed_forward)
        _copy(one.final_layer_norm, layer.feed_forward_residual.norm)
    for one, own in zip(theirs.decoder.layers, model.decoder, strict=True):
        assert isinstance(own, DecoderLayer)
        _attention(one.self_attn, own.self_attention)
        _copy(one.self_attn_layer_norm, own.self_residual.norm)
        _attention(one.encoder_attn, own.cross_attention)
        _copy(one.encoder_attn_layer_norm, own.cross_residual.norm)
        _feed_forward(one, own.feed_forward)
        _copy(one.final_layer_norm, own.feed_forward_residual.norm)
    if isinstance(model.encoder_norm, nn.LayerNorm):
        _copy(theirs.encoder.layer_norm, model.encoder_norm)
        _copy(theirs.decoder.layer_norm, model.decoder_norm)


def waves(ours: Embedding) -> Tensor:
    positions = ours.positions
    return positions.table_LD if isinstance(positions, SinusoidalPositions) else positions.weight


def _positions(theirs: Any, ours: Embedding) -> None:
    table = waves(ours)
    if hasattr(theirs, "weights"):  # M2M-100 counts from the padding's id on
        first = theirs.padding_idx + 1
        count = min(len(table), len(theirs.weights) - first)
        theirs.weights[first : first + count].copy_(table[:count])
    else:
        theirs.weight.copy_(table)


def _attention(theirs: Any, ours: MultiHeadAttention) -> None:
    _copy(theirs.q_proj, ours.query)
    _copy(theirs.out_proj, ours.output)
    for part, weight, bias in zip(
        (theirs.k_proj, theirs.v_proj),
        ours.key_value.weight.chunk(2),
        ours.key_value.bias.chunk(2),
        strict=True,
    ):
        part.weight.copy_(weight)
        part.bias.copy_(bias)


def _feed_forward(theirs: Any, ours: FeedForward) -> None:
    _copy(theirs.fc1, ours.widen)
    _copy(theirs.fc2, ours.narrow)


def _copy(theirs: Any, ours: nn.Module) -> None:
    """Copy a linear layer or a norm."""
    assert isinstance(ours, nn.Linear | nn.LayerNorm)
    theirs.weight.copy_(ours.weight)
    theirs.bias.copy_(ours.bias)
