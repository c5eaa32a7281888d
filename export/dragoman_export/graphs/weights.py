"""A checkpoint's weights as the graphs want them: by the parts of the model, as float32 arrays."""

from dataclasses import dataclass, replace

import numpy as np
from torch import nn

from dragoman_server.runtime.arrays import Floats
from dragoman_training.models.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from dragoman_training.models.positions import LearnedPositions
from dragoman_training.models.transformer import Embedding, Transformer


@dataclass(frozen=True, eq=False)
class LinearWeights:
    """y = x Wᵀ + b; the matrix is [out, in], as PyTorch has it."""

    name: str
    """Name of the product, as in a graph."""
    matrix: Floats
    """Weights, [out, in]."""
    bias: Floats | None
    """Bias of each output; None if there is none."""
    module: nn.Linear
    """Module of the model that computes the product, so that its input can be watched."""
    is_by_token: bool = False
    """Whether each output is a token's, so that the matrix may be an embedding's table too."""


@dataclass(frozen=True, eq=False)
class NormWeights:
    """Layer normalisation."""

    name: str
    """Name of the norm, as in a graph."""
    gamma: Floats
    """Factor of each element."""
    beta: Floats
    """Number added to each element."""
    epsilon: float
    """Number added to the variance."""


@dataclass(frozen=True, eq=False)
class FeedForwardWeights:
    """The two products of a feed-forward network."""

    widen: LinearWeights
    narrow: LinearWeights


@dataclass(frozen=True, eq=False)
class EncoderLayerWeights:
    """A layer of the encoder: self-attention and a feed-forward network."""

    query: LinearWeights
    key: LinearWeights
    value: LinearWeights
    attention_output: LinearWeights
    attention_norm: NormWeights
    feed_forward: FeedForwardWeights
    feed_forward_norm: NormWeights


@dataclass(frozen=True, eq=False)
class SelfAttentionWeights:
    """The two products of the decoder's self-attention."""

    query_key_value: LinearWeights
    """Queries, keys and values, as one product."""
    output: LinearWeights


@dataclass(frozen=True, eq=False)
class CellWeights:
    """The product of an SSRU."""

    forget_input: LinearWeights
    """What the forget gate is computed of, and then the input, as one product."""


@dataclass(frozen=True, eq=False)
class DecoderLayerWeights:
    """A layer of the decoder: self-attention or a cell, cross-attention and a feed-forward
    network."""

    look_back: SelfAttentionWeights | CellWeights
    """What the layer looks at the tokens so far with."""
    self_norm: NormWeights
    """Norm of what the layer looks back with."""
    query: LinearWeights
    """Queries of cross-attention."""
    key: LinearWeights
    """Keys of cross-attention, which the encoder's graph computes of the source."""
    value: LinearWeights
    """Values of cross-attention, which the encoder's graph computes of the source."""
    cross_output: LinearWeights
    cross_norm: NormWeights
    feed_forward: FeedForwardWeights
    feed_forward_norm: NormWeights


@dataclass(frozen=True, eq=False)
class EmbeddingWeights:
    """Vectors of tokens and of positions."""

    name: str
    """Name of the embedding, as in a graph."""
    table: Floats
    """Vector of each token."""
    positions: Floats
    """Vector of each position."""
    scale: float
    """Factor of the tokens' vectors."""
    zero_start: bool
    """Whether the token at position 0 counts as a vector of zeros, whichever it is."""


@dataclass(frozen=True, eq=False)
class ModelWeights:
    """All weights of a model."""

    source: EmbeddingWeights
    target: EmbeddingWeights
    encoder: list[EncoderLayerWeights]
    decoder: list[DecoderLayerWeights]
    encoder_norm: NormWeights | None
    """Norm after the last layer of the encoder; None if norms follow their sublayers."""
    decoder_norm: NormWeights | None
    """Norm after the last layer of the decoder; None if norms follow their sublayers."""
    projection: LinearWeights
    """Product that logits are computed by. If it is tied, its matrix is the target's table: the
    same array."""
    norm_first: bool
    """Whether a norm comes before its sublayer and not after it."""
    activation: str
    """Activation of the feed-forward networks: ``relu``, ``gelu`` or ``swish``."""
    heads: int
    """Attention heads of each layer."""
    decoder_kind: str
    """What a decoder layer looks back with: ``attention`` or ``ssru``."""

    def linears(self) -> list[LinearWeights]:
        """Return every product of the model."""
        parts: list[object] = [self.projection]
        layers: list[EncoderLayerWeights | DecoderLayerWeights] = [*self.encoder, *self.decoder]
        for layer in layers:
            for part in vars(layer).values():
                is_group = isinstance(part, FeedForwardWeights | SelfAttentionWeights | CellWeights)
                parts += vars(part).values() if is_group else [part]
        return [part for part in parts if isinstance(part, LinearWeights)]


def weights_for_graphs(model: Transformer) -> ModelWeights:
    """Return a model's weights by its parts; arrays that are tied stay one array."""
    settings = model.settings
    # Tied parameters must stay one array, so each is converted once.
    arrays = {id(p): p.detach().cpu().float().numpy() for p in model.parameters()}

    def linear(name: str, *modules: nn.Linear) -> LinearWeights:
        """Return one product for modules that share their input."""
        if len(modules) == 1:
            module = modules[0]
            bias = None if module.bias is None else arrays[id(module.bias)]
            return LinearWeights(name, arrays[id(module.weight)], bias, module)
        biases = [
            np.zeros(m.out_features, np.float32) if m.bias is None else arrays[id(m.bias)]
            for m in modules
        ]
        matrix = np.concatenate([arrays[id(m.weight)] for m in modules])
        return LinearWeights(name, matrix, np.concatenate(biases), modules[0])

    def half(name: str, module: nn.Linear, number: int) -> LinearWeights:
        """Return one of two products that the model computes as one."""
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

    def look_back(name: str, layer: DecoderLayer) -> SelfAttentionWeights | CellWeights:
        if layer.has_cell:
            cell = layer.ssru
            return CellWeights(linear(f"{name}.ssru", cell.forget, cell.input))
        own = layer.self_attention
        return SelfAttentionWeights(
            query_key_value=linear(f"{name}.self_qkv", own.query, own.key_value),
            output=linear(f"{name}.self_output", own.output),
        )

    def decoder_layer(name: str, layer: DecoderLayer) -> DecoderLayerWeights:
        cross = layer.cross_attention
        return DecoderLayerWeights(
            look_back=look_back(name, layer),
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
            module.zero_start,
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
        projection=replace(linear("projection", model.projection), is_by_token=True),
        norm_first=settings.norm == "pre",
        activation=settings.activation,
        heads=settings.heads,
        decoder_kind=settings.decoder,
    )
