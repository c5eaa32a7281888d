"""What each node of a graph computes from, and what it gives, for a batch of made-up rows.

Which axis of a value has a line for each row is found out by two batches of different sizes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort

from dragoman_server.bundle.manifest import Manifest
from dragoman_server.runtime.sessions import open_session

Array = npt.NDArray[Any]

ROWS, POSITIONS, TOKENS, COLUMNS = "rows", "positions", "tokens", "columns"
"""What an axis can count: rows, source positions, the tokens of all rows one after the other, and
output weights of the tokens of shortlists."""
Axes = tuple[str, ...]
"""What each axis of a value counts; empty where its size is the same for every batch."""

_MADE_UP = {"filled": ROWS, "n": ROWS, "rows_": ROWS, "sentences_": ROWS, "positions": POSITIONS}
_OTHER_SIZES = {"adjusted": 2, "listed": 24}
_PAST = 23
"""Longest past of a row, in tokens."""
MIN_LENGTH, _MIN_VOCABULARY = 24, 40
"""Smallest limit of tokens, and smallest vocabulary, of graphs that can take made-up batches."""
_SIZES = ((13, 17, 37), (11, 19, 41))
"""Rows, positions and columns of the batches by which axes are known: in each pair, no other size
of a graph changes in the same way."""


@dataclass(frozen=True)
class Batch:
    """How large a batch is, and how long its rows are."""

    lengths: Array
    """Source length of each row."""
    columns: int
    """Output weights side by side."""

    @classmethod
    def of(cls, rows: int, positions: int, columns: int) -> "Batch":
        """Return a batch with rows of all lengths, of which the first is the longest."""
        lengths = np.random.default_rng(rows).integers(1, positions + 1, rows)
        lengths[0] = positions
        return cls(lengths, columns)

    @property
    def sizes(self) -> dict[str, int]:
        """Size of each kind of axis."""
        rows, positions = len(self.lengths), int(self.lengths.max())
        return {
            ROWS: rows,
            POSITIONS: positions,
            TOKENS: rows * positions,
            COLUMNS: self.columns,
        }

    def part(self, rows: Sequence[int]) -> dict[str, Array]:
        """Return which places of each kind of axis belong to some rows, as a batch of their own."""
        sizes = self.sizes
        positions = np.arange(self.lengths[rows].max())
        tokens = np.array(rows)[:, None] * sizes[POSITIONS] + positions
        # Every row needs a few of the columns, and brings them to a batch.
        columns = np.unique([np.arange(5) * (row + 1) % self.columns for row in rows])
        return {
            ROWS: np.array(rows),
            POSITIONS: positions,
            TOKENS: tokens.ravel(),
            COLUMNS: columns,
        }


def as_run(graph: Path) -> onnx.ModelProto:
    """Return a graph as onnxruntime runs it: with the nodes that its optimizers leave or make."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "optimized.onnx"
        open_session(graph, "cpu", 1, spin=False, optimized=path)
        model = onnx.load(path, load_external_data=False)
    onnx.load_external_data_for_model(model, str(graph.parent))
    return model


class NodeValues:
    """All values of a graph for one batch, and what their axes count."""

    def __init__(self, model: onnx.ModelProto, batch: Batch) -> None:
        self.batch = batch
        session = _telling_all(model)
        first, second = (
            (size, _run(session, made_up(model, size)))
            for size in (Batch.of(*sizes) for sizes in _SIZES)
        )
        self.axes = {name: _axes(name, first, second) for name in first[1]}
        """What the axes of each value count."""
        self.values = _run(session, made_up(model, batch))
        """Each value by its name."""

    def part(self, name: str, places: Mapping[str, Array]) -> Array:
        """Return the part of a value that some rows have, as if they were a batch."""
        return taken(self.values[name], self.axes[name], places)


def can_take_made_up(manifest: Manifest) -> bool:
    """Tell whether a bundle's graphs are large enough for batches that are made up here."""
    sizes = manifest.dimensions
    return (
        min(manifest.max_source_tokens, manifest.max_target_tokens) >= MIN_LENGTH
        and min(sizes.source_vocabulary, sizes.target_vocabulary) >= _MIN_VOCABULARY
    )


def taken(value: Array, axes: Axes, places: Mapping[str, Array]) -> Array:
    """Return these places of a value, along each axis that a batch decides the size of."""
    for axis, counted in enumerate(axes):
        if counted:
            value = np.take(value, places[counted], axis)
    return value


def made_up(model: onnx.ModelProto, batch: Batch) -> dict[str, Array]:
    """Return inputs of a graph for a batch: anything that the graph can take."""
    rng = np.random.default_rng(1)
    sizes = {**batch.sizes, **_OTHER_SIZES}
    fed: dict[str, Array] = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        dimensions = [d.dim_param or d.dim_value for d in tensor.shape.dim]
        shape = [d if isinstance(d, int) else sizes[_MADE_UP.get(d, d)] for d in dimensions]
        if np.issubdtype(kind, np.floating):
            made = np.abs(rng.normal(size=shape)) if value.name == "column_steps" else None
            fed[value.name] = (rng.normal(size=shape) if made is None else made).astype(kind)
        else:
            fed[value.name] = _integers(value.name, shape, batch, rng).astype(kind)
    return fed


def _integers(name: str, shape: list[int], batch: Batch, rng: np.random.Generator) -> Array:
    """Return integers that mean something to a graph, by the name of the input."""
    rows = len(batch.lengths)
    past = np.arange(rows) * 7 % (_PAST + 1)
    past[-1] = _PAST
    known: dict[str, Any] = {
        "source_lengths": batch.lengths,
        "source_ends": batch.lengths - 1,
        "longest_source": batch.lengths.max(),
        "past_lengths": past,
        "longest": _PAST + 1,
        "sentences": np.arange(rows),
        "rows": np.arange(rows),
        "candidates": 3,
    }
    if name in known:
        return np.broadcast_to(np.array(known[name]), shape)
    if name == "column_weights":
        return rng.integers(-63, 64, shape)
    if name == "list_columns":
        return np.array([np.resize(batch.part([row])[COLUMNS], shape[1]) for row in range(rows)])
    if name in ("source_ids", "token_ids", "given_ids", "adjust_places", "list_ids"):
        return rng.integers(4, _MIN_VOCABULARY, shape)
    raise ValueError(f"nobody has said what may be put into {name}")


def _telling_all(model: onnx.ModelProto) -> ort.InferenceSession:
    """Open a graph with every value of it as an output."""
    told = onnx.ModelProto()
    told.CopyFrom(model)
    known = {value.name for value in told.graph.output}
    for node in told.graph.node:
        names = [name for name in node.output if name and name not in known]
        told.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(
        told.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _run(session: ort.InferenceSession, fed: dict[str, Array]) -> dict[str, Array]:
    names = [value.name for value in session.get_outputs()]
    return {**fed, **dict(zip(names, session.run(names, fed), strict=True))}


def _axes(
    name: str, first: tuple[Batch, dict[str, Array]], second: tuple[Batch, dict[str, Array]]
) -> Axes:
    """Return what the axes of a value count, by its sizes in two batches."""
    (small, of_small), (large, of_large) = first, second
    counted = {(small.sizes[kind], large.sizes[kind]): kind for kind in small.sizes}
    axes = []
    for sizes in zip(of_small[name].shape, of_large[name].shape, strict=True):
        if sizes[0] == sizes[1]:
            axes.append("")
        elif sizes in counted:
            axes.append(counted[sizes])
        else:
            raise ValueError(f"{name}: nobody knows what the axis of {sizes[0]} counts")
    return tuple(axes)
