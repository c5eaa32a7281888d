"""A small model made as large as a Transformer-base, so that it still says the same.

Speed depends on a model's size, and the lengths of translations on its training. To measure both
together without a large trained model, every vector of a small one is written twice, side by side:

    x' = (x, x)      W' = ½ (W W; W W)      b' = (b, b)

Means and variances stay what they are, so norms do too. There are twice as many heads, of the same
width. Decoder layers are added until there are as many as encoder layers, with outputs too small to
matter.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from dragoman_training.models.attention import MultiHeadAttention
from dragoman_training.models.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from dragoman_training.models.positions import LearnedPositions, SinusoidalPositions
from dragoman_training.models.transformer import Embedding, Transformer

_NEXT_TO_NOTHING = 1e-6


def widened(small: Transformer) -> Transformer:
    """Return a model twice as wide, with no fewer decoder than encoder layers.

    The small model is a pre-norm one.
    """
    settings = replace(
        small.settings,
        width=2 * small.settings.width,
        heads=2 * small.settings.heads,
        feed_forward=2 * small.settings.feed_forward,
        decoder_layers=max(small.settings.encoder_layers, small.settings.decoder_layers),
        positions="learned",  # waves of twice the width are not those of the width, twice
        tied_embeddings="none",
    )
    torch.manual_seed(1)
    model = Transformer(
        settings,
        source_vocabulary=small.source_vocabulary,
        target_vocabulary=small.target_vocabulary,
    ).eval()
    with torch.no_grad():
        _embedding(model.source_embedding, small.source_embedding)
        _embedding(model.target_embedding, small.target_embedding)
        for layer, theirs in zip(model.encoder, small.encoder, strict=True):
            assert isinstance(layer, EncoderLayer)
            assert isinstance(theirs, EncoderLayer)
            _attention(layer.attention, theirs.attention)
            _residual(layer.attention_residual, theirs.attention_residual)
            _feed_forward(layer.feed_forward, theirs.feed_forward)
            _residual(layer.feed_forward_residual, theirs.feed_forward_residual)
        for number, own in enumerate(model.decoder):
            assert isinstance(own, DecoderLayer)
            if number < len(small.decoder):
                _decoder_layer(own, small.decoder[number])
            else:
                _silence(own)
        _norm(model.encoder_norm, small.encoder_norm)
        _norm(model.decoder_norm, small.decoder_norm)
        model.projection.weight.copy_(_twice_each_row(small.projection.weight) / 2)
        if small.settings.output_bias:
            model.projection.bias.copy_(small.projection.bias)
    return model


def _decoder_layer(own: DecoderLayer, theirs: nn.Module) -> None:
    assert isinstance(theirs, DecoderLayer)
    _attention(own.self_attention, theirs.self_attention)
    _residual(own.self_residual, theirs.self_residual)
    _attention(own.cross_attention, theirs.cross_attention)
    _residual(own.cross_residual, theirs.cross_residual)
    _feed_forward(own.feed_forward, theirs.feed_forward)
    _residual(own.feed_forward_residual, theirs.feed_forward_residual)


def _silence(layer: DecoderLayer) -> None:
    outputs = (layer.self_attention.output, layer.cross_attention.output, layer.feed_forward.narrow)
    for output in outputs:
        output.weight.mul_(_NEXT_TO_NOTHING)


def _embedding(own: Embedding, theirs: Embedding) -> None:
    own.table.weight.copy_(_twice_each_row(theirs.table.weight) * theirs.scale / own.scale)
    positions = theirs.positions
    waves = positions.table_LD if isinstance(positions, SinusoidalPositions) else positions.weight
    assert isinstance(own.positions, LearnedPositions)
    own.positions.weight.copy_(_twice_each_row(waves))


def _attention(own: MultiHeadAttention, theirs: MultiHeadAttention) -> None:
    _linear(own.query, theirs.query)
    _linear(own.key_value, theirs.key_value, parts=2)
    _linear(own.output, theirs.output)


def _feed_forward(own: FeedForward, theirs: FeedForward) -> None:
    _linear(own.widen, theirs.widen)
    _linear(own.narrow, theirs.narrow)


def _residual(own: Residual, theirs: Residual) -> None:
    _norm(own.norm, theirs.norm)


def _norm(own: nn.Module, theirs: nn.Module) -> None:
    assert isinstance(own, nn.LayerNorm)
    assert isinstance(theirs, nn.LayerNorm)
    own.weight.copy_(torch.cat([theirs.weight] * 2))
    own.bias.copy_(torch.cat([theirs.bias] * 2))


def _linear(own: nn.Linear, theirs: nn.Linear, parts: int = 1) -> None:
    """Copy a layer. ``parts`` is how many results it computes together; each is doubled."""
    weight = torch.cat([part for part in theirs.weight.chunk(parts) for _ in range(2)])
    own.weight.copy_(_twice_each_row(weight) / 2)
    own.bias.copy_(torch.cat([part for part in theirs.bias.chunk(parts) for _ in range(2)]))


def _twice_each_row(matrix: Tensor) -> Tensor:
    return torch.cat([matrix, matrix], dim=1)
