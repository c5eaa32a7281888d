"""How matrix products and lookups are written for each precision.

Everything else in the graphs is the same; what differs is behind two calls, ``linear`` and
``lookup``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol

import numpy as np

from dragoman_export.graphs.builder import MICROSOFT, Array, GraphBuilder
from dragoman_export.graphs.weights import EmbeddingWeights, LinearWeights

_LARGEST = 63
"""Largest of the whole numbers that a weight may become: 7 bits with the sign."""


class Precision(Protocol):
    """A way to compute with weights."""

    name: str
    """Name of the precision, as in a manifest."""
    element: Any
    """Type of activations and caches."""
    flat: bool
    """Whether products take tokens as a list [N, D] and not as a grid [B, L, D]."""

    def linear(
        self, g: GraphBuilder, x: str, weights: LinearWeights, *, rectified: bool = False
    ) -> str:
        """Return x Wᵀ + b, or max(x, 0) Wᵀ + b if ``rectified``."""

    def lookup(self, g: GraphBuilder, ids: str, weights: EmbeddingWeights) -> str:
        """Return the embeddings of a list of ids, multiplied by the embedding's scale."""


class Float:
    """float32 or float16 throughout. A tied table is stored once: Gemm reads it transposed."""

    flat = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.element = np.dtype(name).type

    def linear(
        self, g: GraphBuilder, x: str, weights: LinearWeights, *, rectified: bool = False
    ) -> str:
        x_ND = g.add("Relu", x) if rectified else x
        inputs = [x_ND, self._constant(g, f"{weights.name}.matrix", weights.matrix)]
        if weights.bias is not None:
            inputs.append(self._constant(g, f"{weights.name}.bias", weights.bias))
        return g.add("Gemm", *inputs, transB=1)

    def lookup(self, g: GraphBuilder, ids: str, weights: EmbeddingWeights) -> str:
        table = self._constant(g, f"{weights.name}.table", weights.table)
        vectors = g.add("Gather", table, ids, axis=0)
        return g.add("Mul", vectors, g.scalar(f"{weights.name}.scale", weights.scale, self.element))

    def _constant(self, g: GraphBuilder, name: str, value: Array) -> str:
        return g.constant(name, value.astype(self.element))


class StoredInt8(NamedTuple):
    """Weights of a product, as values of a graph."""

    matrix: str
    """Value with the weights, a column for each output."""
    scales: str
    """Value with the quantization scale of each output."""
    bias: str
    """Value with the bias of each output; empty if there is none."""


class Int8:
    """int8 products, with a scale per output for weights and one per product for activations.

    The scales of activations are found on text at export, so nothing is measured at run time and
    no row feels its neighbours. What is larger than the text ever was is clipped. Activations are
    unsigned and weights signed, which is what CPUs multiply fastest; weights have 7 bits, because
    with 8 the sum of two products overflows on CPUs without VNNI.
    """

    name = "int8"
    element = np.float32
    flat = False

    def __init__(
        self,
        highest: Mapping[str, float],
        keep: Sequence[str] = (),
        steps: Mapping[str, Array] | None = None,
        lowest: Mapping[str, float] | None = None,
    ) -> None:
        self._highest = highest
        """Largest input of each product, by the product's name."""
        self._lowest = lowest or {}
        """Smallest input of products, by the product's name; of others it is that far below 0."""
        self._keep = keep
        """Products that stay float32 because int8 would lose quality, as patterns of names."""
        self._steps = steps or {}
        """Known steps of weights, by the name of the product or embedding: see
        ``quantize_rows``."""

    def linear(
        self, g: GraphBuilder, x: str, weights: LinearWeights, *, rectified: bool = False
    ) -> str:
        if self.keeps(weights):
            return self._linear_float32(g, x, weights, rectified)
        return self.product(g, x, weights.name, self.stored(g, weights), rectified=rectified)

    def keeps(self, weights: LinearWeights) -> bool:
        """Tell whether weights stay float32."""
        return any(fnmatchcase(weights.name, pattern) for pattern in self._keep)

    def stored(self, g: GraphBuilder, weights: LinearWeights) -> StoredInt8:
        """Add weights to a graph, quantized."""
        if weights.is_by_token:
            rows = self.stored_rows(g, weights)
            # onnxruntime does this once, when it loads the graph.
            return rows._replace(matrix=g.add("Transpose", rows.matrix, perm=[1, 0]))
        matrix, scales = quantize_rows(weights.matrix, self._steps.get(weights.name))
        return self._stored(g, weights, g.constant(f"{weights.name}.matrix_s8", matrix.T), scales)

    def stored_rows(self, g: GraphBuilder, weights: LinearWeights) -> StoredInt8:
        """Do the same, with a row for each output in place of a column.

        An embedding that the product is tied to has the same rows, so they are stored once.
        """
        rows, scales = quantize_rows(weights.matrix, self._steps.get(weights.name))
        return self._stored(g, weights, g.constant(f"{weights.name}.rows_s8", rows), scales)

    @staticmethod
    def _stored(g: GraphBuilder, weights: LinearWeights, matrix: str, scales: Array) -> StoredInt8:
        return StoredInt8(
            matrix,
            g.constant(f"{weights.name}.steps", scales),
            "" if weights.bias is None else g.constant(f"{weights.name}.bias", weights.bias),
        )

    def product(
        self, g: GraphBuilder, x: str, name: str, weights: StoredInt8, *, rectified: bool = False
    ) -> str:
        """Return the product of x with the weights of this name, or with some of their columns."""
        place, scale = self._zero_and_scale(name, rectified=rectified)
        zero = g.scalar(f"zero_at_{place}", place, np.uint8)
        x_scale = g.scalar(f"{name}.step", scale, np.float32)
        inputs = [
            g.add("QuantizeLinear", x, x_scale, zero),
            weights.matrix,
            x_scale,
            weights.scales,
            zero,
            "",  # weights lie evenly around 0
        ]
        if weights.bias:
            inputs.append(weights.bias)
        return g.add("MatMulIntegerToFloat", *inputs, domain=MICROSOFT)

    def _zero_and_scale(self, name: str, *, rectified: bool) -> tuple[int, float]:
        """Return which whole number the input 0 becomes, and how far two of them are apart."""
        highest = max(self._highest[name], 1e-6)
        if rectified:
            return 0, highest / 255  # what is below zero counts as zero
        if name not in self._lowest:
            return 128, highest / 127
        # Of swish and gelu hardly anything is below zero: half of the numbers would be wasted.
        scale = (highest - self._lowest[name]) / 255
        return round(-self._lowest[name] / scale), scale

    def _linear_float32(
        self, g: GraphBuilder, x: str, weights: LinearWeights, rectified: bool
    ) -> str:
        """Return a product in float32, with MatMul, which takes a grid too."""
        x = g.add("Relu", x) if rectified else x
        product = g.add("MatMul", x, g.constant(f"{weights.name}.matrix_t", weights.matrix.T))
        if weights.bias is None:
            return product
        return g.add("Add", product, g.constant(f"{weights.name}.bias", weights.bias))

    def lookup(self, g: GraphBuilder, ids: str, weights: EmbeddingWeights) -> str:
        table, scales = quantize_rows(weights.table, self._steps.get(weights.name))
        # By rows: to look up columns would take a fifth of an encoder's time.
        rows = g.add("Gather", g.constant(f"{weights.name}.rows_s8", table), ids, axis=0)
        rows = g.add("Cast", rows, to=1)
        scaled = g.constant(
            f"{weights.name}.table_steps", (scales * weights.scale)[:, None].astype(np.float32)
        )
        return g.add("Mul", rows, g.add("Gather", scaled, ids, axis=0))


@dataclass(frozen=True, eq=False)
class Quantization:
    """How a model was quantized already, where it comes from."""

    highest: Mapping[str, float]
    """Largest input of each product, by the product's name; empty if it is to be found on text."""
    steps: Mapping[str, Array]
    """Known steps of weights, by the name of the product or embedding: see ``quantize_rows``."""
    lowest: Mapping[str, float] = field(default_factory=dict)
    """Smallest input of products, by the product's name; of others it is that far below 0."""


def quantize_rows(matrix: Array, steps: Array | None = None) -> tuple[Array, Array]:
    """Quantize [out, in] to signed 7 bits. Returns the integers, and a scale for each row.

    ``steps`` are known to make the values of each row whole, but where they are 0. A row whose
    whole numbers fit into 7 bits keeps its step, and loses nothing.
    """
    largest = np.abs(matrix).max(axis=1)
    scale = (np.maximum(largest, 1e-12) / _LARGEST).astype(np.float32)
    if steps is not None:
        fits = (steps > 0) & (largest < (_LARGEST + 0.5) * steps)
        scale = np.where(fits, steps, scale).astype(np.float32)
    return np.rint(matrix / scale[:, None]).astype(np.int8), scale
