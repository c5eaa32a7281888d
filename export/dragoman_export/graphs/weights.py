"""A checkpoint's weights as the graphs want them: by the parts of the model, as float32 arrays."""

from dataclasses import dataclass

import numpy as np
from torch import nn

from dragoman_server.runtime.arrays import Floats
from dragoman_training.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from dragoman_training.positions import LearnedPositions
from dragoman_training.transformer import Embedding, Transformer


@dataclass(frozen=True, eq=False)
class LinearWeights:
    """y = x Wᵀ + b; the matrix is [out, in], as PyTorch has it."""

    name: str
    matrix: Floats
    bias: Floats | None
    module: nn.Linear
    """Where the model computes it: sees the same input, for calibration."""


@dataclass(frozen=True, eq=False)
class NormWeights:
    name: str
    gamma: Floats
    beta: Floats
    epsilon: float


@dataclass(frozen=True, eq=False)
class FeedForwardWeights:
    widen: LinearWeights
    narrow: LinearWeights


@dataclass(frozen=True, eq=False)
class EncoderLayerWeights:
    query: LinearWeights
    key: LinearWeights
    value: LinearWeights
    attention_output: LinearWeights
    attention_norm: NormWeights
    feed_forward: FeedForwardWeights
    feed_forward_norm: NormWeights


@dataclass(frozen=True, eq=False)
class DecoderLayerWeights:
    query_key_value: LinearWeights
    self_output: LinearWeights
    self_norm: NormWeights
    query: LinearWeights
    key: LinearWeights
    value: LinearWeights
    """Of the source: computed by the encoder's graph."""
    cross_output: LinearWeights
    cross_norm: NormWeights
    feed_forward: FeedForwardWeights
    feed_forward_norm: NormWeights


@dataclass(frozen=True, eq=False)
class EmbeddingWeights:
    name: str
    table: Floats
    positions: Floats
    scale: float


@dataclass(frozen=True, eq=False)
class ModelWeights:
    source: EmbeddingWeights
    target: EmbeddingWeights
    encoder: list[EncoderLayerWeights]
    decoder: list[DecoderLayerWeights]
    encoder_norm: NormWeights | None
    decoder_norm: NormWeights | None
    projection: LinearWeights
    """Its matrix is the target table where the two are tied: the same array."""
    norm_first: bool
    activation: str
    heads: int

    def linears(self) -> list[LinearWeights]:
        """Every product of the model."""
        parts: list[object] = [self.projection]
        layers: list[EncoderLayerWeights | DecoderLayerWeights] = [*self.encoder, *self.decoder]
        for layer in layers:
            parts += [*vars(layer).values(), *vars(layer.feed_forward).values()]
        return [part for part in parts if isinstance(part, LinearWeights)]


def weights_for_graphs(model: Transformer) -> ModelWeights:
    settings = model.settings
    # Tied parameters must stay one array, so each is converted once.
    arrays = {id(p): p.detach().cpu().float().numpy() for p in model.parameters()}

    def linear(name: str, *modules: nn.Linear) -> LinearWeights:
        """One product for modules that share their input."""
        if len(modules) == 1:
            module = modules[0]
            bias = None if module.bias is None else arrays[id(module.bias)]
            return LinearWeights(name, arrays[id(module.weight)], bias, module)
        return LinearWeights(
            name,
            np.concatenate([arrays[id(m.weight)] for m in modules]),
            np.concatenate([arrays[id(m.bias)] for m in modules]),
            modules[0],
        )

    def half(name: str, module: nn.Linear, number: int) -> LinearWeights:
        """One of two products that the model computes as one."""
        matrix, bias = (np.split(arrays[id(p)], 2)[number] for p in (module.weight, module.bias))
        return LinearWeights(name, matrix, bias, module)

    def norm(name: str, module: nn.Module) -> NormWeights | None:
        if not isinstance(module, nn.LayerNorm):
            return None
        gamma, beta = arrays[id(module.weight)], arrays[id(module.bias)]
        return NormWeights(name, gamma, beta, module.eps)

    def residual(name: str, module: Residual) -> NormWeights:
        inner = module.norm
        return NormWeights(name, arrays[id(inner.weight)], arrays[id(inner.bias)], inner.eps)

    def feed_forward(name: str, module: FeedForward) -> FeedForwardWeights:
        return FeedForwardWeights(
            linear(f"{name}.widen", module.widen), linear(f"{name}.narrow", module.narrow)
        )

    def encoder_layer(name: str, layer: EncoderLayer) -> EncoderLayerWeights:
        attention = layer.attention
        return EncoderLayerWeights(
            query=linear(f"{name}.query", attention.query),
            key=half(f"{name}.key", attention.key_value, 0),
            value=half(f"{name}.value", attention.key_value, 1),
            attention_output=linear(f"{name}.attention_output", attention.output),
            attention_norm=residual(f"{name}.attention_norm", layer.attention_residual),
            feed_forward=feed_forward(f"{name}.feed_forward", layer.feed_forward),
            feed_forward_norm=residual(f"{name}.feed_forward_norm", layer.feed_forward_residual),
        )

    def decoder_layer(name: str, layer: DecoderLayer) -> DecoderLayerWeights:
        own, cross = layer.self_attention, layer.cross_attention
        return DecoderLayerWeights(
            query_key_value=linear(f"{name}.self_qkv", own.query, own.key_value),
            self_output=linear(f"{name}.self_output", own.output),
            self_norm=residual(f"{name}.self_norm", layer.self_residual),
            query=linear(f"{name}.cross_query", cross.query),
            key=half(f"{name}.cross_key", cross.key_value, 0),
            value=half(f"{name}.cross_value", cross.key_value, 1),
            cross_output=linear(f"{name}.cross_output", cross.output),
            cross_norm=residual(f"{name}.cross_norm", layer.cross_residual),
            feed_forward=feed_forward(f"{name}.feed_forward", layer.feed_forward),
            feed_forward_norm=residual(f"{name}.feed_forward_norm", layer.feed_forward_residual),
        )

    def embedding(name: str, module: Embedding) -> EmbeddingWeights:
        positions = module.positions
        table = positions.weight if isinstance(positions, LearnedPositions) else positions.table_LD
        return EmbeddingWeights(
            name,
            arrays[id(module.table.weight)],
            table.detach().cpu().float().numpy(),
            module.scale,
        )

    return ModelWeights(
        source=embedding("source", model.source_embedding),
        target=embedding("target", model.target_embedding),
        encoder=[
            encoder_layer(f"encoder.{n}", layer)
            for n, layer in enumerate(model.encoder)
            if isinstance(layer, EncoderLayer)
        ],
        decoder=[
            decoder_layer(f"decoder.{n}", layer)
            for n, layer in enumerate(model.decoder)
            if isinstance(layer, DecoderLayer)
        ],
        encoder_norm=norm("encoder_norm", model.encoder_norm),
        decoder_norm=norm("decoder_norm", model.decoder_norm),
        projection=linear("projection", model.projection),
        norm_first=settings.norm == "pre",
        activation=settings.activation,
        heads=settings.heads,
    )
