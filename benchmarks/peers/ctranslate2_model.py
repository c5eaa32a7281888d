"""Our Transformer as a CTranslate2 model: the same weights for both."""

from pathlib import Path

import numpy as np
from ctranslate2.specs import TransformerSpec, common_spec
from torch import Tensor, nn

from dragoman_server.bundle.shortlist import Shortlist
from dragoman_training.models.attention import MultiHeadAttention
from dragoman_training.models.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from dragoman_training.models.positions import SinusoidalPositions
from dragoman_training.models.transformer import Embedding, Transformer
from peers.ctranslate2_calls import tokens

_ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "swish": common_spec.Activation.SWISH,
}


def write_model(model: Transformer, directory: Path, compute_type: str) -> None:
    """Write the model in ``int8`` or ``float32``, by CTranslate2's own model specification."""
    settings = model.settings
    spec = TransformerSpec.from_config(
        (settings.encoder_layers, settings.decoder_layers),
        settings.heads,
        pre_norm=settings.norm == "pre",
        activation=_ACTIVATIONS[settings.activation],
    )
    _embedding(spec.encoder, model.source_embedding, spec.encoder.embeddings[0])
    _embedding(spec.decoder, model.target_embedding, spec.decoder.embeddings)
    if settings.norm == "pre":
        _copy(spec.encoder.layer_norm, model.encoder_norm)
        _copy(spec.decoder.layer_norm, model.decoder_norm)
    for layer_spec, encoder_layer in zip(spec.encoder.layer, model.encoder, strict=True):
        assert isinstance(encoder_layer, EncoderLayer)
        _self_attention(
            layer_spec.self_attention, encoder_layer.attention, encoder_layer.attention_residual
        )
        _feed_forward(
            layer_spec.ffn, encoder_layer.feed_forward, encoder_layer.feed_forward_residual
        )
    for layer_spec, layer in zip(spec.decoder.layer, model.decoder, strict=True):
        assert isinstance(layer, DecoderLayer)
        _self_attention(layer_spec.self_attention, layer.self_attention, layer.self_residual)
        cross = layer_spec.attention
        _copy(cross.layer_norm, layer.cross_residual.norm)
        _copy(cross.linear[0], layer.cross_attention.query)
        _copy(cross.linear[1], layer.cross_attention.key_value)
        _copy(cross.linear[2], layer.cross_attention.output)
        _feed_forward(layer_spec.ffn, layer.feed_forward, layer.feed_forward_residual)
    _copy(spec.decoder.projection, model.projection)
    for side, vocabulary in (
        ("source", model.source_vocabulary),
        ("target", model.target_vocabulary),
    ):
        getattr(spec, f"register_{side}_vocabulary")(tokens(vocabulary))
    spec.config.bos_token, spec.config.eos_token = "<s>", "</s>"
    spec.config.unk_token, spec.config.decoder_start_token = "<unk>", "<s>"
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.validate()
    spec.optimize(quantization=None if compute_type == "float32" else compute_type)
    directory.mkdir()
    spec.save(str(directory))


def write_map(shortlist: Shortlist, model: Transformer, directory: Path) -> None:
    """Write a shortlist beside the model as its vocabulary map, which ``use_vmap`` uses.

    A line is a source token, a tab, and its target tokens. Those of the empty source token are for
    every sentence. CTranslate2 adds the unknown and the begin token to every list.
    """
    sources, targets = tokens(model.source_vocabulary), tokens(model.target_vocabulary)
    lists = [("", shortlist.always), *zip(sources, shortlist.likely, strict=True)]
    with (directory / "vmap.txt").open("w", encoding="utf-8") as file:
        for source, likely in lists:
            names = " ".join(targets[token] for token in likely if token >= 0)
            file.write(f"{source}\t{names}\n")


def _array(tensor: Tensor) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    return tensor.detach().numpy().astype(np.float32)


def _copy(spec: common_spec.LinearSpec, module: nn.Module) -> None:
    """Copy a linear layer or a norm."""
    if isinstance(module, nn.LayerNorm):
        spec.gamma, spec.beta = _array(module.weight), _array(module.bias)
    elif isinstance(module, nn.Linear):
        spec.weight = _array(module.weight)
        if module.bias is not None:
            spec.bias = _array(module.bias)


def _embedding(
    side: common_spec.LinearSpec, ours: Embedding, table: common_spec.EmbeddingsSpec
) -> None:
    table.weight = _array(ours.table.weight)
    side.scale_embeddings = ours.scale != 1.0
    positions = ours.positions
    waves = positions.table_LD if isinstance(positions, SinusoidalPositions) else positions.weight
    side.position_encodings.encodings = _array(waves)


def _self_attention(
    spec: common_spec.LinearSpec, ours: MultiHeadAttention, residual: Residual
) -> None:
    _copy(spec.layer_norm, residual.norm)
    spec.linear[0].weight = np.concatenate(
        [_array(ours.query.weight), _array(ours.key_value.weight)]
    )
    spec.linear[0].bias = np.concatenate([_array(ours.query.bias), _array(ours.key_value.bias)])
    _copy(spec.linear[1], ours.output)


def _feed_forward(spec: common_spec.LinearSpec, ours: FeedForward, residual: Residual) -> None:
    _copy(spec.layer_norm, residual.norm)
    _copy(spec.linear_0, ours.widen)
    _copy(spec.linear_1, ours.narrow)
