"""A bundle's graphs on onnxruntime: encode, step and move over caches that stay in place.

Python never touches a float tensor of the model. Caches are allocated and touched once; a call
binds them as input and output at the same address, sends integers in and takes small arrays out.
Which device they are on is the only difference between CPU and GPU.
"""

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from dragoman_server.bundle import Bundle
from dragoman_server.errors import BundleError
from dragoman_server.graph_names import (
    DECODER,
    ENCODER,
    MOVE,
    cross_caches,
    self_caches,
    updated,
)

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}

CANDIDATES = 64
"""Best tokens of a row that there is memory for from the start."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


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


@dataclass(frozen=True)
class Adjustments:
    """Changes of single logits: repetition penalties and bans."""

    places: Ints
    """row x vocabulary + token; one that is named twice must be adjusted alike."""
    factors: Floats
    offsets: Floats

    def by_row(self, rows: int, vocabulary: int) -> tuple[Ints, Floats, Floats]:
        """As the graph wants them: as many for every row, each of shape [rows, A].

        A row that has fewer repeats its first, and one without any leaves token 0 as it is.
        """
        if not self.places.size:
            nothing = np.zeros((rows, 0), np.float32)
            return np.zeros((rows, 0), np.int64), nothing, nothing
        order = np.argsort(self.places, kind="stable")
        row, token = np.divmod(self.places[order], vocabulary)
        counts = np.bincount(row, minlength=rows)
        first = np.cumsum(counts) - counts
        column = np.arange(len(row)) - first[row]
        shape = (rows, int(counts.max(initial=0)))
        filled = []
        for values, default in (
            (token, 0),
            (self.factors[order], 1.0),
            (self.offsets[order], 0.0),
        ):
            lines = np.full(shape, default, values.dtype)
            has = counts > 0
            lines[has] = values[first[has], None]
            lines[row, column] = values
            filled.append(lines)
        return filled[0], filled[1], filled[2]


NO_ADJUSTMENTS = Adjustments(
    np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.float32)
)


@dataclass(frozen=True)
class StepResult:
    """What one step of n rows gives; log-probabilities of all tokens stay on the device.

    The arrays are the graphs' own memory, which the next step overwrites.
    """

    top_log_probs: Floats
    top_ids: Ints
    given_log_probs: Floats
    row_sums: Floats
    alignment: Floats
    seconds: float
    """In the graph."""


@dataclass(frozen=True)
class EncodeResult:
    sentence_sums: Floats
    """Of each sentence: not finite where something in it is not a number."""
    seconds: float


class Graphs:
    """The three graphs of a bundle and their caches."""

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
        options = _session_options(settings)
        self._encoder, self._decoder, self._move = (
            _open(bundle, name, settings.device, options) for name in (ENCODER, DECODER, MOVE)
        )
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
            }.items()
        }
        """On the host: what a step gives."""
        self._bindings: dict[int, ort.IOBinding] = {}
        """Of steps, by their number of rows: the caches stay bound."""
        self._bound: dict[tuple[int, str], tuple[int, ...]] = {}
        """Shapes of the results that are bound, by number of rows and name."""
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
        return device + sum(memory.nbytes for memory in self._results.values())

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
        binding = self._encoder.io_binding()
        binding.bind_output("sentence_sums", "cpu")
        self._bind(binding, "source_ids", source_ids)
        self._bind(binding, "source_lengths", source_lengths.astype(np.int32))
        self._bind(binding, "sentences", sentences)
        self._bind(binding, "rows", rows)
        self._bind_caches(binding, self._cross_names, self.settings.rows)
        seconds = self._run(self._encoder, binding)
        return EncodeResult(binding.get_outputs()[0].numpy(), seconds)

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
        n = len(token_ids)
        if n > self.settings.rows:
            raise ValueError(f"{n} rows, but there are {self.settings.rows}")
        given = token_ids if given_ids is None else given_ids
        limits, vocabulary = self.manifest, self.manifest.dimensions.target_vocabulary
        _check("token_ids", token_ids, n, 0, vocabulary - 1)
        _check("given_ids", given, n, 0, vocabulary - 1)
        _check("past_lengths", past_lengths, n, 0, limits.max_target_tokens - 1)
        _check("source_lengths", source_lengths, n, 1, limits.max_source_tokens)
        if adjustments.places.size:
            _check("places", adjustments.places, len(adjustments.factors), 0, n * vocabulary - 1)
        places, factors, offsets = adjustments.by_row(n, vocabulary)
        binding = self._step_binding(n)
        for name, values in (
            ("token_ids", token_ids),
            ("past_lengths", past_lengths.astype(np.int32)),
            ("source_ends", (source_lengths - 1).astype(np.int32)),
            ("adjust_places", places),
            ("adjust_factors", factors),
            ("adjust_offsets", offsets),
            ("given_ids", given),
        ):
            self._bind(binding, name, values)
        # Sizes that kernels read on the host, whatever the device.
        for name, value, kind in (
            ("longest", int(past_lengths.max()) + 1, np.int32),
            ("longest_source", int(source_lengths.max()), np.int32),
            ("candidates", candidates, np.int64),
        ):
            binding.bind_cpu_input(name, np.array([value], kind))
        results = {
            "top_log_probs": self._bind_result(binding, "top_log_probs", (n, candidates)),
            "top_ids": self._bind_result(binding, "top_ids", (n, candidates)),
            "given_log_probs": self._bind_result(binding, "given_log_probs", (n,)),
            "row_sums": self._bind_result(binding, "row_sums", (n,)),
            "alignment": self._bind_result(binding, "alignment", (n, int(source_lengths.max()))),
        }
        seconds = self._run(self._decoder, binding)
        return StepResult(**results, seconds=seconds)

    def _bind_result(
        self, binding: ort.IOBinding, name: str, shape: tuple[int, ...]
    ) -> npt.NDArray[Any]:
        if math.prod(shape) > self._results[name].size:
            self._results[name] = np.zeros(math.prod(shape), self._results[name].dtype)
            self._bound.clear()
        memory = self._results[name]
        if self._bound.get((shape[0], name)) != shape:  # rarely: a binding is of so many rows
            binding.bind_output(name, "cpu", 0, memory.dtype.type, shape, memory.ctypes.data)
            self._bound[shape[0], name] = shape
        return memory[: math.prod(shape)].reshape(shape)

    def _run(self, session: ort.InferenceSession, binding: ort.IOBinding) -> float:
        """Returns the seconds that it took."""
        began = time.perf_counter()
        session.run_with_iobinding(binding, self._run_options)
        seconds = time.perf_counter() - began
        self.seconds += seconds
        return seconds

    def _step_binding(self, rows: int) -> ort.IOBinding:
        """With the caches of the first rows bound."""
        if rows not in self._bindings:
            binding = self._decoder.io_binding()
            self._bind_caches(binding, self._self_names + self._cross_names, rows)
            shape = (rows, self.manifest.dimensions.target_vocabulary)
            self._bind_output(binding, "log_probs", self._log_probs, np.float32, shape)
            self._bindings[rows] = binding
        return self._bindings[rows]

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
        binding = self._move.io_binding()
        self._bind(binding, "sources", source_rows)
        self._bind(binding, "destinations", destination_rows)
        self._bind(binding, "self_length", np.array([self_length]))
        self._bind(binding, "cross_length", np.array([cross_length]))
        self._bind_caches(binding, self._self_names + self._cross_names, self.settings.rows)
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

    def _bind_caches(self, binding: ort.IOBinding, names: list[str], rows: int) -> None:
        for name in names:
            shape = (rows, *self._line[name])
            cache = self._caches[name]
            binding.bind_input(name, self.settings.device, 0, self._element, shape, cache.pointer)
            self._bind_output(binding, updated(name), cache, self._element, shape)

    def _bind_output(
        self,
        binding: ort.IOBinding,
        name: str,
        memory: "_Buffer",
        kind: type[np.generic],
        shape: tuple[int, ...],
    ) -> None:
        binding.bind_output(name, self.settings.device, 0, kind, shape, memory.pointer)


def _check_caches(
    graph: Path, session: ort.InferenceSession, lines: dict[str, tuple[int, ...]]
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


def _check(name: str, values: Ints, count: int, least: int, most: int) -> None:
    """The graphs themselves would wrap around, cut off, or read another row."""
    if len(values) != count or count == 0:
        raise ValueError(f"{len(values)} {name}, not {max(1, count)}")
    if values.min() < least or values.max() > most:
        raise ValueError(f"{name} must be from {least} to {most}")


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


def _session_options(settings: GraphSettings) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = settings.threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    # The level decides which kernels compute what, and with it the last bits of every score.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(settings.spin)))
    options.enable_mem_pattern = False  # shapes change from step to step
    options.log_severity_level = 3
    return options


def _open(
    bundle: Bundle, name: str, device: str, options: ort.SessionOptions
) -> ort.InferenceSession:
    provider = PROVIDERS[device]
    if provider not in ort.get_available_providers():
        raise BundleError(f"device {device}: this onnxruntime has no {provider}")
    try:
        session = ort.InferenceSession(
            bundle.path / name,
            options,
            providers=[provider],
            enable_fallback=0,
            # Fused, the two take several times as long on the CPU.
            disabled_optimizers=["SkipLayerNormFusion"] if device == "cpu" else None,
        )
    except Exception as error:  # onnxruntime has no common class for them
        reason = str(error).splitlines()[0]
        raise BundleError(f"{bundle.path / name}: onnxruntime can't load it ({reason})") from None
    if session.get_providers()[0] != provider:
        raise BundleError(f"device {device}: onnxruntime fell back to {session.get_providers()[0]}")
    return session
