"""Proof by op: each node of a graph, run alone, gives a row the same bits in every batch.

Batch invariance of a whole model follows from that of its nodes; where it is broken, this says by
which. The nodes are those that onnxruntime runs, after its optimizers, and they are given what they
are given in the graph. ``docs/decisions/014-ops-and-batches.md`` has the list with reasons.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

from dragoman_export.proofs.node_values import ROWS, TOKENS, Array, Batch, NodeValues, as_run, taken
from dragoman_server.runtime.sessions import open_session

_MOVES = "it puts numbers elsewhere, or rounds each to another type"
_EXACT = "each number by itself, rounded as IEEE 754 has it"
_SMOOTH = "each number by itself, with one approximation whatever its place"
_PACKED = "constant weights are packed, and packed ones are added up in one order for all rows"
_BY_ROW = "each row by itself, over a width that no batch changes"
REASONS = {
    **dict.fromkeys(("Cast", "Concat", "Expand", "Identity", "Range", "Reshape", "Shape"), _MOVES),
    **dict.fromkeys(("Gather", "GatherElements", "GatherND"), _MOVES),
    **dict.fromkeys(("ScatterElements", "ScatterND", "Slice", "Split", "Squeeze"), _MOVES),
    **dict.fromkeys(("Transpose", "Unsqueeze", "Where"), _MOVES),
    **dict.fromkeys(("Add", "Div", "Mod", "Mul", "Relu", "Sqrt", "Sub", "Sum"), _EXACT),
    **dict.fromkeys(("Greater", "Less", "LessOrEqual", "Min", "QuantizeLinear"), _EXACT),
    **dict.fromkeys(("Erf", "Gelu", "QuickGelu", "Sigmoid"), _SMOOTH),
    **dict.fromkeys(("FusedGemm", "Gemm", "MatMul"), _PACKED),
    **dict.fromkeys(("LayerNormalization", "LogSoftmax", "Softmax"), _BY_ROW),
    "GroupQueryAttention": "each row and head by itself, over the row's own length",
    "MatMulIntegerToFloat": "sums of integers are exact, and each is scaled by itself",
    "MultiHeadAttention": "each sentence and head by itself; positions after its end weigh 0",
    "ReduceMax": "nothing is rounded",
    "ReduceSum": "over a whole row; and of the sums only whether they are finite is used",
    "TopK": "nothing is rounded, and of equal numbers the first comes first",
}
"""Why each op that the graphs may have gives a row the same bits in every batch. An op that is not
here has not been looked at."""

_SIZES = (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 64)
"""Rows of the batches that a row is compared in."""
_TOTAL_LENGTH, _LENGTHS = 6, 5
"""Inputs of GroupQueryAttention: the largest length of a batch, and the length of each row - 1."""


@dataclass(frozen=True)
class Dependence:
    """A node that gives a row other bits in company than alone."""

    op: str
    """Kind of the node."""
    node: str
    """Name of the node."""
    output: str
    """Value that differs."""
    rows: int
    """Rows of the smallest batch in which a row differs."""
    threads: int
    """Threads that this batch was computed by."""

    def __str__(self) -> str:
        return (
            f"{self.op} ({self.node}) gives {self.output} other bits in a batch of {self.rows} on "
            f"{self.threads} thread(s)"
        )


def kinds(graph: Path) -> set[str]:
    """Return the kinds of ops in a graph, as onnxruntime runs it."""
    return {node.op_type for node in as_run(graph).graph.node}


def dependent_nodes(
    graph: Path, batch: Batch, threads: Sequence[int] = (1,)
) -> Iterator[Dependence]:
    """Yield the nodes of a graph that give a row other bits in company than alone.

    Of nodes that differ in their weights alone, one is tried.
    """
    model = as_run(graph)
    values = NodeValues(model, batch)
    weights = {each.name: each for each in model.graph.initializer}
    seen = set()
    for node in model.graph.node:
        given = [name for name in node.input if name and name not in weights]
        by_row = any(axis in (ROWS, TOKENS) for name in given for axis in values.axes[name])
        exact = all(_is_whole(values.values[name]) for name in given)
        kind = _kind(node, values, weights)
        if REASONS.get(node.op_type) == _MOVES or exact or not by_row or kind in seen:
            continue
        seen.add(kind)
        found = _Node(node, values, weights).dependence(threads)
        if found is not None:
            yield found


class _Node:
    """One node, as a graph of its own."""

    def __init__(
        self, node: onnx.NodeProto, values: NodeValues, weights: dict[str, onnx.TensorProto]
    ) -> None:
        self._node = node
        self._values = values
        self._given = sorted({name for name in node.input if name and name not in weights})
        self._made = [name for name in node.output if name]
        graph = helper.make_graph(
            [node],
            "node",
            [_input(name, values.values[name]) for name in self._given],
            [onnx.ValueInfoProto(name=name) for name in self._made],
            initializer=[weights[name] for name in {*node.input} & weights.keys()],
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        self._model = helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def dependence(self, threads: Sequence[int]) -> Dependence | None:
        """Return where a row first differs from what it is alone, on one thread; None if never."""
        batch = self._values.batch
        count = len(batch.lengths)
        sessions = {n: self._session(n) for n in {1, *threads}}
        alone = [self._run(sessions[1], [row]) for row in range(count)]
        for size in (1, *(size for size in _SIZES if size <= count)):
            for number in threads:
                for first in range(0, count - size + 1, max(size, count // 3)):
                    rows = list(range(first, first + size))
                    name = self._different(rows, self._run(sessions[number], rows), alone)
                    if name:
                        return Dependence(self._node.op_type, self._node.name, name, size, number)
        return None

    def _session(self, threads: int) -> ort.InferenceSession:
        return open_session(self._model.SerializeToString(), "cpu", threads, spin=False)

    def _run(self, session: ort.InferenceSession, rows: list[int]) -> dict[str, Array]:
        places = self._values.batch.part(rows)
        fed = {name: self._values.part(name, places) for name in self._given}
        if self._node.op_type == "GroupQueryAttention":
            lengths = fed[self._node.input[_LENGTHS]]
            fed[self._node.input[_TOTAL_LENGTH]] = np.array([lengths.max() + 1], lengths.dtype)
        return dict(zip(self._made, session.run(self._made, fed), strict=True))

    def _different(
        self, rows: list[int], together: dict[str, Array], alone: list[dict[str, Array]]
    ) -> str:
        """Return the name of a value that differs for one of the rows; empty if none does."""
        batch = self._values.batch
        whole = batch.part(rows)
        for row in rows:
            own = batch.part([row])
            places = {kind: np.searchsorted(whole[kind], own[kind]) for kind in own}
            for name in self._made:
                part = taken(together[name], self._values.axes[name], places)
                if part.tobytes() != alone[row][name].tobytes():
                    return name
        return ""


def _kind(
    node: onnx.NodeProto, values: NodeValues, weights: dict[str, onnx.TensorProto]
) -> tuple[object, ...]:
    """Return what nodes have in common that run the same kernel on the same sizes."""
    given: list[object] = []
    for name in node.input:
        if name in weights:
            given.append((weights[name].data_type, tuple(weights[name].dims)))
        elif name:
            value = values.values[name]
            given.append((value.dtype, value.shape, values.axes[name]))
        else:
            given.append(None)
    attributes = sorted(attribute.SerializeToString() for attribute in node.attribute)
    return (node.op_type, *given, *attributes)


def _input(name: str, value: Array) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(name, kind, [None] * value.ndim)


def _is_whole(value: Array) -> bool:
    """Tell whether a value has numbers that are computed with exactly."""
    return value.dtype in (np.int32, np.int64, np.bool_)
