"""How matrix products and lookups are written for each precision.

Everything else in the graphs is the same; what differs is behind two calls, ``linear`` and
``lookup``.
"""

from typing import Any, Protocol

import numpy as np

from dragoman_export.builder import Array, GraphBuilder
from dragoman_export.weights import EmbeddingWeights, LinearWeights


class Precision(Protocol):
    """A way to compute with weights."""

    name: str
    element: Any
    """The type of activations and caches."""

    def linear(self, g: GraphBuilder, x_ND: str, weights: LinearWeights) -> str:
        """x Wᵀ + b for tokens in a list."""

    def lookup(self, g: GraphBuilder, ids: str, weights: EmbeddingWeights) -> str:
        """Embeddings of ids, in a list of any length, multiplied by the embedding's scale."""


class Float:
    """float32 or float16 throughout. A tied table is stored once: Gemm reads it transposed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.element = np.dtype(name).type

    def linear(self, g: GraphBuilder, x_ND: str, weights: LinearWeights) -> str:
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


class RowScaledInt8:
    """int8 products in which every row of activations has a scale of its own.

    So no row feels its neighbours. Activations and weights are unsigned around 128, because signed
    weights saturate on CPUs without VNNI; weights have a scale per output.
    """

    name = "int8"
    element = np.float32

    def linear(self, g: GraphBuilder, x_ND: str, weights: LinearWeights) -> str:
        matrix, scale = quantize_rows(weights.matrix)
        # Clamped away from 0, so that a row of zeros is not divided by zero.
        highest_N1 = g.add(
            "Max",
            g.add("ReduceMax", g.add("Abs", x_ND), g.ints(-1), keepdims=1),
            g.scalar("least_row_maximum", 1e-12, np.float32),
        )
        middle = g.scalar("middle_u8", 128, np.uint8)
        x_u8 = g.add(
            "QuantizeLinear",
            g.add("Div", x_ND, highest_N1),
            g.scalar("row_step", 1 / 127, np.float32),
            middle,
        )
        sums = g.add(
            "MatMulInteger",
            x_u8,
            g.constant(f"{weights.name}.matrix_u8", matrix.T),
            middle,
            g.constant("middle_u8_too", np.array(128, np.uint8)),
        )
        # The constant first: in another order onnxruntime fuses these into something else.
        y = g.add(
            "Mul",
            g.add("Cast", sums, to=1),
            g.constant(f"{weights.name}.steps", (scale / 127).astype(np.float32)),
        )
        y = g.add("Mul", y, highest_N1)
        if weights.bias is not None:
            y = g.add("Add", y, g.constant(f"{weights.name}.bias", weights.bias))
        return y

    def lookup(self, g: GraphBuilder, ids: str, weights: EmbeddingWeights) -> str:
        """From the table as the product wants it, so that a tied one is stored once."""
        table, scale = quantize_rows(weights.table)
        columns = g.add("Gather", g.constant(f"{weights.name}.table_u8", table.T), ids, axis=1)
        rows = g.add("Transpose", columns, perm=[1, 0])
        centred = g.add("Sub", g.add("Cast", rows, to=1), g.scalar("middle_f32", 128, np.float32))
        steps = g.constant(
            f"{weights.name}.table_steps", (scale * weights.scale)[:, None].astype(np.float32)
        )
        return g.add("Mul", centred, g.add("Gather", steps, ids, axis=0))


def quantize_rows(matrix: Array) -> tuple[Array, Array]:
    """Unsigned 8 bit around 128, with a step for each row of [out, in]."""
    step = np.maximum(np.abs(matrix).max(axis=1), 1e-12) / 127
    return (np.rint(matrix / step[:, None]) + 128).astype(np.uint8), step


PRECISIONS: dict[str, Precision] = {
    "float32": Float("float32"),
    "float16": Float("float16"),
    "int8": RowScaledInt8(),
}
