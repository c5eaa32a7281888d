"""What encoder and decoder layers have in common: embeddings, feed-forward networks and norms."""

from collections.abc import Callable

from dragoman_export.graphs.builder import MICROSOFT, GraphBuilder
from dragoman_export.graphs.caches import CacheWriter
from dragoman_export.graphs.precision import Precision
from dragoman_export.graphs.weights import (
    EmbeddingWeights,
    FeedForwardWeights,
    ModelWeights,
    NormWeights,
)
from dragoman_server.bundle.manifest import Dimensions

Sublayer = Callable[[str], str]
"""Writes attention or a feed-forward network: takes and returns the name of a value."""


class LayerWriter:
    """Writes the nodes of one model's layers, in one precision."""

    def __init__(
        self,
        weights: ModelWeights,
        dimensions: Dimensions,
        precision: Precision,
        caches: CacheWriter,
    ) -> None:
        self._weights = weights
        self._dimensions = dimensions
        self._precision = precision
        self._caches = caches
        self._element = precision.element.__name__

    def _embed(
        self,
        g: GraphBuilder,
        ids: str,
        positions: str,
        weights: EmbeddingWeights,
        factors: str = "",
    ) -> str:
        """Return the embeddings of tokens, times their factors if any, plus their positions."""
        table = g.constant(
            f"{weights.name}.positions", weights.positions.astype(self._precision.element)
        )
        vectors = self._precision.lookup(g, ids, weights)
        if factors:
            vectors = g.add("Mul", vectors, factors)
        return g.add("Add", vectors, g.add("Gather", table, positions, axis=0))

    def _feed_forward(self, g: GraphBuilder, weights: FeedForwardWeights) -> Sublayer:
        """Return a feed-forward network to write."""

        def network(x: str) -> str:
            wide = self._precision.linear(g, x, weights.widen)
            if self._weights.activation == "relu":
                return self._precision.linear(g, wide, weights.narrow, rectified=True)
            return self._precision.linear(g, self._activate(g, wide), weights.narrow)

        return network

    def _activate(self, g: GraphBuilder, x: str) -> str:
        if self._weights.activation == "gelu":
            return g.add("Gelu", x)
        return g.add("QuickGelu", x, domain=MICROSOFT, alpha=1.0)

    def _stack(
        self,
        g: GraphBuilder,
        x: str,
        sublayers: list[tuple[NormWeights, Sublayer]],
        final_norm: NormWeights | None,
    ) -> str:
        """Write sublayers with their residuals and norms, and return what comes out."""
        if not self._weights.norm_first:
            for norm, sublayer in sublayers:
                x, _ = self._add_and_norm(g, sublayer(x), x, norm)
            return x
        assert final_norm is not None
        norms = [norm for norm, _ in sublayers] + [final_norm]
        residual = x
        x = self._norm(g, residual, norms[0])
        for (_, sublayer), norm in zip(sublayers, norms[1:], strict=True):
            x, residual = self._add_and_norm(g, sublayer(x), residual, norm)
        return x

    def _add_and_norm(
        self, g: GraphBuilder, x: str, residual: str, norm: NormWeights
    ) -> tuple[str, str]:
        """Return LayerNorm(x + residual), and the sum itself.

        SkipLayerNormalization would do both at once, but on the CPU it is several times slower.
        """
        total = g.add("Add", x, residual)
        return self._norm(g, total, norm), total

    def _norm(self, g: GraphBuilder, x: str, norm: NormWeights) -> str:
        element = self._precision.element
        gamma = g.constant(f"{norm.name}.gamma", norm.gamma.astype(element))
        beta = g.constant(f"{norm.name}.beta", norm.beta.astype(element))
        return g.add("LayerNormalization", x, gamma, beta, axis=-1, epsilon=norm.epsilon)

    def _to_float32(self, g: GraphBuilder, x: str) -> str:
        """Return the same numbers as float32, whatever the precision is."""
        return x if self._element == "float32" else g.add("Cast", x, to=1)

    def _from_float32(self, g: GraphBuilder, x: str) -> str:
        """Return float32 numbers in the precision of the graph."""
        return x if self._element == "float32" else g.add("Cast", x, to=10)
