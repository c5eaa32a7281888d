"""The weights of an int8 bundle, read back into a model: what peers are given of models/en-pt.

The repository has that model as int8 only. A product's matrix is stored as whole numbers with a
step for each row; their products are float32 weights that int8 represents exactly. Both sides then
start from the same float32 weights, and each quantises them in its own way.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from dragoman_export.graphs.weights import LinearWeights, NormWeights, weights_for_graphs
from dragoman_server.bundle.graph_io import DECODER, ENCODER
from dragoman_server.bundle.reading import Bundle
from dragoman_training.attention import MultiHeadAttention
from dragoman_training.layers import DecoderLayer, EncoderLayer, FeedForward
from dragoman_training.settings import TransformerSettings
from dragoman_training.transformer import Transformer

Array = npt.NDArray[np.generic]


def read_back(bundle: Bundle) -> Transformer:
    """A pre-norm model with one table for both sides, as ``models/en-pt`` is."""
    sizes = bundle.manifest.dimensions
    settings = TransformerSettings(
        width=sizes.width,
        heads=sizes.heads,
        feed_forward=sizes.feed_forward,
        encoder_layers=sizes.encoder_layers,
        decoder_layers=sizes.decoder_layers,
        max_length=bundle.manifest.max_source_tokens,
        norm="pre",
    )
    model = Transformer(
        settings,
        source_vocabulary=sizes.source_vocabulary,
        target_vocabulary=sizes.target_vocabulary,
    ).eval()
    with torch.no_grad():
        _fill(model, _Stored(bundle.path))
    return model


class _Stored:
    """What the graphs of a bundle hold, by name; remembers what was asked for."""

    def __init__(self, path: Path) -> None:
        self._arrays: dict[str, Array] = {}
        for name in (ENCODER, DECODER):
            for tensor in onnx.load(path / name).graph.initializer:
                self._arrays[tensor.name] = numpy_helper.to_array(tensor)
        self._used: set[str] = set()

    def __getitem__(self, name: str) -> Array:
        self._used.add(name)
        return self._arrays[name]

    def linear(self, weights: LinearWeights) -> tuple[Array, Array | None]:
        matrix = self[f"{weights.name}.matrix_s8"].T.astype(np.float32)
        steps = self[f"{weights.name}.steps"]
        bias = None if weights.bias is None else self[f"{weights.name}.bias"]
        return matrix * steps[:, None], bias

    def check_all_used(self) -> None:
        """A weight that nothing asked for would be missing from the model that peers get."""
        left = [
            name
            for name in self._arrays.keys() - self._used
            if name.endswith((".matrix_s8", ".steps", ".bias", ".gamma", ".beta"))
        ]
        if left:
            raise SystemExit(f"the bundle has weights that the model has no place for: {left}")


def _fill(model: Transformer, stored: _Stored) -> None:
    weights = weights_for_graphs(model)
    for layer, names in zip(model.encoder, weights.encoder, strict=True):
        assert isinstance(layer, EncoderLayer)
        _linear(layer.attention.query, stored, names.query)
        _linear(layer.attention.key_value, stored, names.key, names.value)
        _linear(layer.attention.output, stored, names.attention_output)
        _norm(layer.attention_residual.norm, stored, names.attention_norm)
        _feed_forward(
            layer.feed_forward, stored, names.feed_forward.widen, names.feed_forward.narrow
        )
        _norm(layer.feed_forward_residual.norm, stored, names.feed_forward_norm)
    for own, wanted in zip(model.decoder, weights.decoder, strict=True):
        assert isinstance(own, DecoderLayer)
        _query_key_value(own.self_attention, stored, wanted.query_key_value)
        _linear(own.self_attention.output, stored, wanted.self_output)
        _norm(own.self_residual.norm, stored, wanted.self_norm)
        _linear(own.cross_attention.query, stored, wanted.query)
        _linear(own.cross_attention.key_value, stored, wanted.key, wanted.value)
        _linear(own.cross_attention.output, stored, wanted.cross_output)
        _norm(own.cross_residual.norm, stored, wanted.cross_norm)
        _feed_forward(
            own.feed_forward, stored, wanted.feed_forward.widen, wanted.feed_forward.narrow
        )
        _norm(own.feed_forward_residual.norm, stored, wanted.feed_forward_norm)
    for module, norm in (
        (model.encoder_norm, weights.encoder_norm),
        (model.decoder_norm, weights.decoder_norm),
    ):
        assert norm is not None
        _norm(module, stored, norm)
    # The table of the embeddings too: it is the same matrix.
    _set(model.projection.weight, stored.linear(weights.projection)[0])
    stored.check_all_used()


def _set(parameter: nn.Parameter | torch.Tensor, value: Array | None) -> None:
    assert value is not None
    parameter.copy_(torch.from_numpy(np.array(value)))  # a copy: what is read from a file is fixed


def _linear(module: nn.Linear, stored: _Stored, *parts: LinearWeights) -> None:
    """One module from the products that the graphs compute of it."""
    pairs = [stored.linear(part) for part in parts]
    _set(module.weight, np.concatenate([matrix for matrix, _ in pairs]))
    _set(module.bias, np.concatenate([bias for _, bias in pairs if bias is not None]))


def _query_key_value(attention: MultiHeadAttention, stored: _Stored, one: LinearWeights) -> None:
    """Two modules from a product that computes both."""
    matrix, bias = stored.linear(one)
    assert bias is not None
    width = attention.query.out_features
    _set(attention.query.weight, matrix[:width])
    _set(attention.query.bias, bias[:width])
    _set(attention.key_value.weight, matrix[width:])
    _set(attention.key_value.bias, bias[width:])


def _feed_forward(
    module: FeedForward, stored: _Stored, widen: LinearWeights, narrow: LinearWeights
) -> None:
    _linear(module.widen, stored, widen)
    _linear(module.narrow, stored, narrow)


def _norm(module: nn.Module, stored: _Stored, names: NormWeights) -> None:
    assert isinstance(module, nn.LayerNorm)
    _set(module.weight, stored[f"{names.name}.gamma"])
    _set(module.bias, stored[f"{names.name}.beta"])
