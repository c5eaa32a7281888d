"""A bundle's graphs on onnxruntime: encode, step and move over caches that stay in place.

Python never touches a float tensor of the model. Caches are allocated and touched once; a call
binds them as input and output at the same address, sends integers in and takes small arrays out.
Which device they are on is the only difference between CPU and GPU.
"""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from dragoman_server.bundle.graph_io import cross_caches
from dragoman_server.bundle.reading import RunnableBundle
from dragoman_server.errors import BundleError
from dragoman_server.runtime.adjustments import NO_ADJUSTMENTS, Adjustments
from dragoman_server.runtime.arrays import Floats, Ints
from dragoman_server.runtime.bindings import BoundStep, StepInputs, bind_memory, bind_values
from dragoman_server.runtime.buffers import Buffer, Caches
from dragoman_server.runtime.checks import check_range
from dragoman_server.runtime.limits import PROVIDERS
from dragoman_server.runtime.output_columns import RowShortlists
from dragoman_server.runtime.results import EncodeResult, ResultMemory, StepResult
from dragoman_server.runtime.sessions import open_sessions


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


class Graphs:
    """The graphs of a bundle and their caches."""

    def __init__(self, bundle: RunnableBundle, settings: GraphSettings) -> None:
        manifest = bundle.manifest
        self.settings = settings
        self.manifest = manifest
        if settings.device == "cuda" and manifest.precision != "float16":
            # Attention has no other kernel there, and products would go back to the CPU.
            raise BundleError(
                f"{bundle.path}: precision {manifest.precision}, but device cuda needs float16"
            )
        self._sessions = open_sessions(bundle, settings.device, settings.threads, settings.spin)
        self._allocate()

    def _allocate(self) -> None:
        manifest, sessions = self.manifest, self._sessions
        rows, device = self.settings.rows, self.settings.device
        vocabulary = manifest.dimensions.target_vocabulary
        self._caches = Caches(manifest, rows, device)
        self._log_probs = Buffer((rows, vocabulary), np.float32, device)
        self._results = ResultMemory(manifest, rows)
        self._inputs = StepInputs(manifest, rows)
        self._steps: dict[int, BoundStep] = {}
        """By their number of rows."""
        self._listed_steps: dict[int, BoundStep] = {}
        self.shortlists: RowShortlists | None = None
        """Of the rows, where the bundle has a shortlist."""
        if sessions.output_weights is not None:
            self.shortlists = RowShortlists(sessions.output_weights, rows)
        cross = cross_caches(manifest.dimensions.decoder_layers)
        self._encoding = self._caches.bound(sessions.encoder, rows, cross)
        self._moving = self._caches.bound(sessions.move, rows)
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
        lists = 0 if self.shortlists is None else self.shortlists.bytes
        return self._caches.bytes + self._log_probs.bytes + self._results.bytes + lists

    def encode(
        self, source_ids: Ints, source_lengths: Ints, sentences: Ints, rows: Ints
    ) -> EncodeResult:
        """Read sentences into the cross caches of rows; a sentence may fill several rows."""
        count, longest = source_ids.shape
        if longest > self.manifest.max_source_tokens:
            raise ValueError(f"{longest} source positions exceed the model's limit")
        check_range("source_lengths", source_lengths, count, 1, longest)
        check_range("sentences", sentences, len(rows), 0, count - 1)
        check_range("rows", rows, len(rows), 0, self.settings.rows - 1)
        binding = self._encoding
        sums = self._results.bind(binding, "sentence_sums", (count,))
        bind_values(binding, "source_ids", source_ids)
        bind_values(binding, "source_lengths", source_lengths.astype(np.int32))
        bind_values(binding, "sentences", sentences)
        bind_values(binding, "rows", rows)
        return EncodeResult(sums, self._run(self._sessions.encoder, binding))

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
        longest = self._inputs.fill(token_ids, past_lengths, source_lengths, candidates)
        self._inputs.fill_given(token_ids if given_ids is None else given_ids, n)
        step = self._step(n)
        if self.settings.device != "cpu":
            self._inputs.bind(step.binding, n)  # what is bound is copied to the device then
        step.adjust(adjustments, n, self.manifest.dimensions.target_vocabulary)
        result = self._result(step, n, candidates, longest)
        result.seconds = self._run(self._sessions.decoder, step.binding)
        return result

    def step_shortlisted(
        self, token_ids: Ints, past_lengths: Ints, source_lengths: Ints, *, candidates: int
    ) -> StepResult:
        """The same, where every row chooses among the tokens of its list.

        What is given in the result is the end token.
        """
        n = len(token_ids)
        longest = self._inputs.fill(token_ids, past_lengths, source_lengths, candidates)
        step = self._listed_step(n)
        result = self._result(step, n, candidates, longest)
        result.seconds = self._run(self._sessions.listed, step.binding)
        return result

    def _step(self, rows: int) -> BoundStep:
        """With all bound that stays where it is."""
        if rows not in self._steps:
            binding = self._caches.bound(self._sessions.decoder, rows)
            shape = (rows, self.manifest.dimensions.target_vocabulary)
            self._log_probs.bind_output(binding, "log_probs", shape)
            self._inputs.bind(binding, rows)
            self._steps[rows] = BoundStep(binding)
        return self._steps[rows]

    def _listed_step(self, rows: int) -> BoundStep:
        assert self.shortlists is not None
        lists = self.shortlists
        if rows not in self._listed_steps:
            binding = self._caches.bound(self._sessions.listed, rows)
            self._inputs.bind(binding, rows, without={"given_ids"})
            for name, memory in (
                ("list_ids", lists.ids),
                ("list_columns", lists.columns),
                ("list_offsets", lists.offsets),
            ):
                bind_memory(binding, name, memory[:rows])
            self._listed_steps[rows] = BoundStep(binding)
        step = self._listed_steps[rows]
        if step.shortlists_version != lists.version:
            for name, memory in lists.inputs.items():
                bind_memory(step.binding, name, memory)
            step.shortlists_version = lists.version
        return step

    def _result(
        self, step: BoundStep, rows: int, candidates: int, longest_source: int
    ) -> StepResult:
        """Where the step will put its result; bound again where its shape or memory changed."""
        if step.result is None or step.result_key != (
            candidates,
            longest_source,
            self._results.version,
        ):
            step.result = self._results.bind_step(step.binding, rows, candidates, longest_source)
            step.result_key = (candidates, longest_source, self._results.version)
        return step.result

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
            check_range(name, rows, len(source_rows), 0, self.settings.rows - 1)
        if len({*destinations} - {*sources}) < len(destinations):
            raise ValueError("a destination is also a source, or twice a destination")
        binding = self._moving
        bind_values(binding, "sources", source_rows)
        bind_values(binding, "destinations", destination_rows)
        bind_values(binding, "self_length", np.array([self_length]))
        bind_values(binding, "cross_length", np.array([cross_length]))
        self._run(self._sessions.move, binding)

    def log_probs(self, rows: int) -> Floats:
        """Of every token, for the first rows, as the last step left them.

        On the CPU this is the graph's own memory, which the next step overwrites.
        """
        return self._log_probs.numpy()[:rows]

    def cache(self, name: str) -> npt.NDArray[np.floating]:
        """A whole cache, as a copy on the host: for checking graphs, not for serving."""
        return self._caches[name].numpy().copy()
