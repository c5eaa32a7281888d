"""A bundle's graphs on onnxruntime: encode, step and move over caches that stay in place.

Python never touches a float tensor of the model. Caches are allocated and touched once; a call
binds them as input and output at the same address, sends integers in and takes small arrays out.
Which device they are on is the only difference between CPU and GPU.
"""

import copy
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from dragoman_server.bundle.graph_io import (
    COLUMNS,
    DECODER,
    ENCODER,
    LISTED,
    MOVE,
    cross_caches,
    self_caches,
    updated,
)
from dragoman_server.bundle.reading import Bundle
from dragoman_server.errors import BundleError
from dragoman_server.runtime.adjustments import NO_ADJUSTMENTS, Adjustments
from dragoman_server.runtime.arrays import Floats, Ints
from dragoman_server.runtime.output_columns import Lists, OutputWeights
from dragoman_server.runtime.sessions import PROVIDERS, open_session

CANDIDATES = 64
"""Best tokens of a row that there is memory for from the start."""

_STEP_INPUTS: dict[str, type[np.generic]] = {
    "token_ids": np.int64,
    "past_lengths": np.int32,
    "source_ends": np.int32,
    "given_ids": np.int64,
}
"""A number for each row."""
_STEP_SIZES: dict[str, type[np.generic]] = {
    "longest": np.int32,
    "longest_source": np.int32,
    "candidates": np.int64,
}
"""Sizes that kernels read on the host, whatever the device."""


@dataclass(frozen=True, kw_only=True)
class GraphSettings:
    rows: int = 64
    """Memory for all of them is taken at the start."""
    device: str = "cpu"
    threads: int = 1
    """Of each session."""
    spin: bool = False
    """Threads wait for their part of a product by spinning: sooner there, at the cost of a core."""

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ValueError(f"rows is {self.rows}: it must be at least 1")
        if self.threads < 1:
            raise ValueError(f"threads is {self.threads}: it must be at least 1")
        if self.device not in PROVIDERS:
            raise ValueError(f"device is {self.device!r}: it must be one of cpu, cuda")


@dataclass
class StepResult:
    """What one step of n rows gives; log-probabilities of all tokens stay on the device.

    It is the graphs' own, and so is the memory of its arrays: the next step overwrites both.
    """

    top_log_probs: Floats
    top_ids: Ints
    given_log_probs: Floats
    row_sums: Floats
    alignment: Floats
    seconds: float = 0.0
    """In the graph."""

    @property
    def chosen(self) -> tuple[npt.NDArray[Any], ...]:
        """What depends on which tokens there are to choose from; a line for each row."""
        return self.top_log_probs, self.top_ids, self.given_log_probs


@dataclass(frozen=True)
class EncodeResult:
    sentence_sums: Floats
    """Of each sentence: not finite where something in it is not a number."""
    seconds: float


class Graphs:
    """The graphs of a bundle and their caches."""

    def __init__(self, bundle: Bundle, settings: GraphSettings) -> None:
        manifest = bundle.manifest
        self.settings = settings
        self.manifest = manifest
        if settings.device == "cuda" and manifest.precision != "float16":
            # Attention has no other kernel there, and products would go back to the CPU.
            raise BundleError(
                f"{bundle.path}: precision {manifest.precision}, but device cuda needs float16"
            )
        self._element = np.float16 if manifest.precision == "float16" else np.float32

        def opened(name: str) -> ort.InferenceSession:
            return open_session(
                bundle.path / name, settings.device, settings.threads, settings.spin
            )

        self._encoder, self._decoder, self._move = map(opened, (ENCODER, DECODER, MOVE))
        layers = manifest.dimensions.decoder_layers
        self._self_names, self._cross_names = self_caches(layers), cross_caches(layers)
        heads, width = manifest.dimensions.heads, manifest.dimensions.head_width
        self._line = {
            **dict.fromkeys(self._self_names, (heads, manifest.max_target_tokens, width)),
            **dict.fromkeys(self._cross_names, (heads, manifest.max_source_tokens, width)),
        }
        for graph, session, names in (
            (ENCODER, self._encoder, self._cross_names),
            (DECODER, self._decoder, self._self_names + self._cross_names),
            (MOVE, self._move, self._self_names + self._cross_names),
        ):
            _check_caches(bundle.path / graph, session, {name: self._line[name] for name in names})
        self._listed: ort.InferenceSession | None = None
        self._output_weights: OutputWeights | None = None
        if manifest.shortlist:
            self._listed = opened(LISTED)
            _check_caches(bundle.path / LISTED, self._listed, self._line)
            sizes = manifest.dimensions
            try:
                self._output_weights = OutputWeights.read(
                    opened(COLUMNS), sizes.target_vocabulary, sizes.width
                )
            except ValueError as error:
                raise BundleError(f"{bundle.path / COLUMNS}: {error}") from None
            has_biases = "column_biases" in {value.name for value in self._listed.get_inputs()}
            if has_biases != (self._output_weights.biases is not None):
                raise BundleError(f"{bundle.path / COLUMNS}: its biases are not as in {LISTED}")
        self._allocate()

    def _allocate(self) -> None:
        settings, manifest = self.settings, self.manifest
        self._caches = {
            name: _Buffer((settings.rows, *line), self._element, settings.device)
            for name, line in self._line.items()
        }
        scores = (settings.rows, manifest.dimensions.target_vocabulary)
        self._log_probs = _Buffer(scores, np.float32, settings.device)
        candidates = min(CANDIDATES, scores[1])
        self._results: dict[str, npt.NDArray[Any]] = {
            name: np.zeros(settings.rows * width, kind)
            for name, (width, kind) in {
                "top_log_probs": (candidates, np.float32),
                "top_ids": (candidates, np.int64),
                "given_log_probs": (1, np.float32),
                "row_sums": (1, np.float32),
                "alignment": (manifest.max_source_tokens, np.float32),
                "sentence_sums": (1, np.float32),
            }.items()
        }
        """On the host: what the graphs give."""
        self._inputs: dict[str, npt.NDArray[Any]] = {
            **{name: np.zeros(settings.rows, kind) for name, kind in _STEP_INPUTS.items()},
            **{name: np.zeros(1, kind) for name, kind in _STEP_SIZES.items()},
        }
        """On the host: what a step is given; bound once, and filled anew."""
        self._steps: dict[int, _Step] = {}
        """By their number of rows."""
        self._listed_steps: dict[int, _Step] = {}
        self.lists: Lists | None = None
        """Of the rows, where the bundle has a shortlist."""
        if self._output_weights is not None:
            self.lists = Lists(self._output_weights, settings.rows)
        caches = self._self_names + self._cross_names
        self._encoding = self._bound_to_caches(self._encoder, self._cross_names, settings.rows)
        self._moving = self._bound_to_caches(self._move, caches, settings.rows)
        self._run_options = ort.RunOptions()
        # The default; where it is unset, onnxruntime finds out by an exception at every call.
        self._run_options.add_run_config_entry("gpu_graph_id", "0")
        self.seconds = 0.0
        """Spent in all graphs so far."""

    def replica(self) -> "Graphs":
        """The same sessions, so the same weights, with caches of its own."""
        replica = copy.copy(self)
        replica._allocate()
        return replica

    def interrupt(self, interrupted: bool = True) -> None:
        """Make the call that is running fail soon, and every later one until this is undone."""
        self._run_options.terminate = interrupted

    @property
    def buffer_bytes(self) -> int:
        """Memory of the caches and of what a step gives."""
        device = sum(b.bytes for b in (*self._caches.values(), self._log_probs))
        host = sum(memory.nbytes for memory in self._results.values())
        return device + host + (0 if self.lists is None else self.lists.bytes)

    def encode(
        self, source_ids: Ints, source_lengths: Ints, sentences: Ints, rows: Ints
    ) -> EncodeResult:
        """Read sentences into the cross caches of rows; a sentence may fill several rows."""
        count, longest = source_ids.shape
        if longest > self.manifest.max_source_tokens:
            raise ValueError(f"{longest} source positions exceed the model's limit")
        _check("source_lengths", source_lengths, count, 1, longest)
        _check("sentences", sentences, len(rows), 0, count - 1)
        _check("rows", rows, len(rows), 0, self.settings.rows - 1)
        binding = self._encoding
        sums = self._bind_result(binding, "sentence_sums", (count,))
        self._bind(binding, "source_ids", source_ids)
        self._bind(binding, "source_lengths", source_lengths.astype(np.int32))
        self._bind(binding, "sentences", sentences)
        self._bind(binding, "rows", rows)
        return EncodeResult(sums, self._run(self._encoder, binding))

    def step(
        self,
        token_ids: Ints,
        past_lengths: Ints,
        source_lengths: Ints,
        *,
        candidates: int,
        given_ids: Ints | None = None,
        adjustments: Adjustments = NO_ADJUSTMENTS,
    ) -> StepResult:
        """One token for each of the first n rows."""
        n, vocabulary = len(token_ids), self.manifest.dimensions.target_vocabulary
        given = token_ids if given_ids is None else given_ids
        source = self._give(token_ids, past_lengths, source_lengths, candidates)
        _check("given_ids", given, n, 0, vocabulary - 1)
        if adjustments.places.size:
            _check("places", adjustments.places, len(adjustments.factors), 0, n * vocabulary - 1)
        self._inputs["given_ids"][:n] = given
        step = self._step(n)
        if self.settings.device != "cpu":
            self._bind_inputs(step.binding, n)  # what is bound is copied to the device then
        self._bind_adjustments(step, n, adjustments)
        result = self._bind_results(step, n, candidates, source)
        result.seconds = self._run(self._decoder, step.binding)
        return result

    def step_listed(
        self, token_ids: Ints, past_lengths: Ints, source_lengths: Ints, *, candidates: int
    ) -> StepResult:
        """The same, where every row chooses among the tokens of its list.

        What is given in the result is the end token.
        """
        assert self._listed is not None
        n = len(token_ids)
        source = self._give(token_ids, past_lengths, source_lengths, candidates)
        step = self._listed_step(n)
        result = self._bind_results(step, n, candidates, source)
        result.seconds = self._run(self._listed, step.binding)
        return result

    def _give(
        self, token_ids: Ints, past_lengths: Ints, source_lengths: Ints, candidates: int
    ) -> int:
        """Check what a step is given, and put it where it is bound. Returns the longest source."""
        n, limits = len(token_ids), self.manifest
        if n > self.settings.rows:
            raise ValueError(f"{n} rows, but there are {self.settings.rows}")
        _check("token_ids", token_ids, n, 0, limits.dimensions.target_vocabulary - 1)
        past = _check("past_lengths", past_lengths, n, 0, limits.max_target_tokens - 1)
        source = _check("source_lengths", source_lengths, n, 1, limits.max_source_tokens)
        inputs = self._inputs
        inputs["token_ids"][:n] = token_ids
        inputs["past_lengths"][:n] = past_lengths
        np.subtract(source_lengths, 1, out=inputs["source_ends"][:n], casting="same_kind")
        inputs["longest"][0] = past + 1
        inputs["longest_source"][0] = source
        inputs["candidates"][0] = candidates
        return source

    def _step(self, rows: int) -> "_Step":
        """With all bound that stays where it is."""
        if rows not in self._steps:
            caches = self._self_names + self._cross_names
            binding = self._bound_to_caches(self._decoder, caches, rows)
            shape = (rows, self.manifest.dimensions.target_vocabulary)
            self._bind_output(binding, "log_probs", self._log_probs, np.float32, shape)
            self._bind_inputs(binding, rows)
            self._steps[rows] = _Step(binding)
        return self._steps[rows]

    def _listed_step(self, rows: int) -> "_Step":
        assert self._listed is not None
        assert self.lists is not None
        lists = self.lists
        if rows not in self._listed_steps:
            caches = self._self_names + self._cross_names
            binding = self._bound_to_caches(self._listed, caches, rows)
            self._bind_inputs(binding, rows, without={"given_ids"})
            for name, memory in (
                ("list_ids", lists.ids),
                ("list_columns", lists.columns),
                ("list_offsets", lists.offsets),
            ):
                _bind_memory(binding, name, memory[:rows])
            self._listed_steps[rows] = _Step(binding)
        step = self._listed_steps[rows]
        if step.version != lists.version:
            for name, memory in lists.inputs.items():
                _bind_memory(step.binding, name, memory)
            step.version = lists.version
        return step

    def _bind_inputs(
        self, binding: ort.IOBinding, rows: int, without: Collection[str] = ()
    ) -> None:
        for name, memory in self._inputs.items():
            if name not in without:
                _bind_memory(binding, name, memory[:rows] if name in _STEP_INPUTS else memory)

    def _bind_adjustments(self, step: "_Step", rows: int, adjustments: Adjustments) -> None:
        if adjustments is NO_ADJUSTMENTS and not step.is_adjusted:
            return  # as before
        places, factors, offsets = adjustments.by_row(
            rows, self.manifest.dimensions.target_vocabulary
        )
        self._bind(step.binding, "adjust_places", places)
        self._bind(step.binding, "adjust_factors", factors)
        self._bind(step.binding, "adjust_offsets", offsets)
        step.is_adjusted = adjustments is not NO_ADJUSTMENTS

    def _bind_results(
        self, step: "_Step", rows: int, candidates: int, longest_source: int
    ) -> StepResult:
        sizes = (candidates, longest_source)
        if step.result is None or step.sizes != sizes:

            def bind(name: str, *shape: int) -> npt.NDArray[Any]:
                return self._bind_result(step.binding, name, (rows, *shape))

            step.result = StepResult(
                top_log_probs=bind("top_log_probs", candidates),
                top_ids=bind("top_ids", candidates),
                given_log_probs=bind("given_log_probs"),
                row_sums=bind("row_sums"),
                alignment=bind("alignment", longest_source),
            )
            step.sizes = sizes
        return step.result

    def _bind_result(
        self, binding: ort.IOBinding, name: str, shape: tuple[int, ...]
    ) -> npt.NDArray[Any]:
        size = math.prod(shape)
        if size > self._results[name].size:
            self._results[name] = np.zeros(size, self._results[name].dtype)
            for step in (*self._steps.values(), *self._listed_steps.values()):
                step.result = None  # they are bound to the memory before
        memory = self._results[name]
        binding.bind_output(name, "cpu", 0, memory.dtype.type, shape, memory.ctypes.data)
        return memory[:size].reshape(shape)

    def _run(self, session: ort.InferenceSession, binding: ort.IOBinding) -> float:
        """Returns the seconds that it took."""
        began = time.perf_counter()
        session.run_with_iobinding(binding, self._run_options)
        seconds = time.perf_counter() - began
        self.seconds += seconds
        return seconds

    def move(
        self,
        sources: Sequence[int],
        destinations: Sequence[int],
        self_length: int,
        cross_length: int,
    ) -> None:
        """Copy the beginnings of cache lines from rows to other rows."""
        source_rows, destination_rows = np.array(sources), np.array(destinations)
        for name, rows in (("sources", source_rows), ("destinations", destination_rows)):
            _check(name, rows, len(source_rows), 0, self.settings.rows - 1)
        if len({*destinations} - {*sources}) < len(destinations):
            raise ValueError("a destination is also a source, or twice a destination")
        binding = self._moving
        self._bind(binding, "sources", source_rows)
        self._bind(binding, "destinations", destination_rows)
        self._bind(binding, "self_length", np.array([self_length]))
        self._bind(binding, "cross_length", np.array([cross_length]))
        self._run(self._move, binding)

    def log_probs(self, rows: int) -> Floats:
        """Of every token, for the first rows, as the last step left them.

        On the CPU this is the graph's own memory, which the next step overwrites.
        """
        return self._log_probs.numpy()[:rows]

    def cache(self, name: str) -> npt.NDArray[np.floating]:
        """A whole cache, as a copy on the host: for checking graphs, not for serving."""
        return self._caches[name].numpy().copy()

    def _bind(self, binding: ort.IOBinding, name: str, values: npt.NDArray[np.generic]) -> None:
        """An input that the host computed; onnxruntime copies it where the graph needs it."""
        binding.bind_cpu_input(name, np.ascontiguousarray(values))

    def _bound_to_caches(
        self, session: ort.InferenceSession, names: list[str], rows: int
    ) -> ort.IOBinding:
        """Of the first rows."""
        binding = session.io_binding()
        for name in names:
            shape = (rows, *self._line[name])
            cache = self._caches[name]
            binding.bind_input(name, self.settings.device, 0, self._element, shape, cache.pointer)
            self._bind_output(binding, updated(name), cache, self._element, shape)
        return binding

    def _bind_output(
        self,
        binding: ort.IOBinding,
        name: str,
        memory: "_Buffer",
        kind: type[np.generic],
        shape: tuple[int, ...],
    ) -> None:
        binding.bind_output(name, self.settings.device, 0, kind, shape, memory.pointer)


def _bind_memory(binding: ort.IOBinding, name: str, memory: npt.NDArray[Any]) -> None:
    """Memory of the host as an input: what is written there later counts."""
    binding.bind_input(name, "cpu", 0, memory.dtype.type, memory.shape, memory.ctypes.data)


def _check_caches(
    graph: Path, session: ort.InferenceSession, lines: Mapping[str, tuple[int, ...]]
) -> None:
    """Memory is bound by its address: a graph that sees other shapes there would go astray."""
    found = {value.name: tuple(value.shape[1:]) for value in session.get_inputs()}
    found.update({value.name: tuple(value.shape[1:]) for value in session.get_outputs()})
    for name, line in lines.items():
        for place in (name, updated(name)):
            if found.get(place) != line:
                raise BundleError(
                    f"{graph}: {place} is {found.get(place)}, but the manifest says {line}"
                )


def _check(name: str, values: Ints, count: int, least: int, most: int) -> int:
    """The graphs themselves would wrap around, cut off, or read another row. Returns the largest.

    Called at every step, so by the functions that numpy's methods are made of.
    """
    if len(values) != count or count == 0:
        raise ValueError(f"{len(values)} {name}, not {max(1, count)}")
    largest = int(np.maximum.reduce(values))
    if largest > most or np.minimum.reduce(values) < least:
        raise ValueError(f"{name} must be from {least} to {most}")
    return largest


@dataclass
class _Step:
    """A step of so many rows: what is bound, so that only what changes is bound again."""

    binding: ort.IOBinding
    is_adjusted: bool = True
    """False where it is known to be bound to no adjustments."""
    sizes: tuple[int, int] = (0, 0)
    """Candidates and longest source that the result is for."""
    result: StepResult | None = None
    version: int = 0
    """Of the lists that it is bound to."""


class _Buffer:
    """Memory on the device, allocated and touched once."""

    def __init__(self, shape: tuple[int, ...], kind: type[np.generic], device: str) -> None:
        # numpy asks the system for huge pages, onnxruntime does not; the lines of a cache lie far
        # apart, so with small ones looking up their addresses takes as long as reading them.
        self._host = np.empty(shape, kind)
        self._host.fill(0)
        self.bytes = self._host.nbytes
        self._value: ort.OrtValue | None = None
        self.pointer: int = self._host.ctypes.data
        if device != "cpu":
            self._value = ort.OrtValue.ortvalue_from_numpy(self._host, device, 0)
            self._host = np.empty(0, kind)
            self.pointer = self._value.data_ptr()

    def numpy(self) -> npt.NDArray[Any]:
        return self._host if self._value is None else self._value.numpy()
