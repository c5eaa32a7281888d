"""A bundle's graphs on onnxruntime: encode, step and move over caches that stay in place.

Python never touches a float tensor of the model. Caches are allocated once; a call binds them as
input and output at the same address, sends integers in and takes small arrays out. Which
device they are on is the only difference between CPU and GPU.
"""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
from dragoman_server.runtime.checks.bounds import check_range
from dragoman_server.runtime.limits import PROVIDERS
from dragoman_server.runtime.output_columns import RowShortlists
from dragoman_server.runtime.results import EncodeResult, ResultMemory, StepResult
from dragoman_server.runtime.sessions import open_sessions


@dataclass(frozen=True, kw_only=True)
class GraphSettings:
    """How a bundle's graphs are run."""

    rows: int = 64
    """Rows that can be decoded at once. Memory for all of them is reserved at the start."""
    touch_memory: bool = False
    """Whether to take that memory at the start too, instead of where it is used."""
    device: str = "cpu"
    """Device that the graphs run on: ``cpu`` or ``cuda``."""
    threads: int = 1
    """Threads of each session of onnxruntime."""
    spin: bool = False
    """Whether threads wait for their part of a product by spinning. They begin sooner then, and
    take a core each while they wait."""
    prepacked: Path | None = None
    """Directory with the graphs and weights as this CPU wants them, shared between processes."""

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
        self._sessions = open_sessions(
            bundle, settings.device, settings.threads, settings.spin, settings.prepacked
        )
        self._shortlist = bundle.shortlist
        self._allocate()

    def _allocate(self) -> None:
        manifest, sessions = self.manifest, self._sessions
        rows, device = self.settings.rows, self.settings.device
        touched = self.settings.touch_memory
        vocabulary = manifest.dimensions.target_vocabulary
        try:
            self._caches = Caches(manifest, rows, device, touched=touched)
            self._log_probs = Buffer((rows, vocabulary), np.float32, device, touched=touched)
        except (MemoryError, OSError):
            mib = rows * manifest.cache_bytes_per_row / 2**20
            raise BundleError(
                f"{manifest.name}: there is no memory for a lane of {rows:,} rows, whose caches "
                f"take {mib:,.0f} MiB: serve with fewer --rows"
            ) from None
        self._results = ResultMemory(manifest, rows)
        self._inputs = StepInputs(manifest, rows)
        self._steps: dict[int, BoundStep] = {}
        """Steps among all tokens, by their number of rows."""
        self._last: tuple[ort.InferenceSession, BoundStep] | None = None
        """The newest step, which may go on as it is bound."""
        self._shortlisted_steps: dict[tuple[int, bool], BoundStep] = {}
        """Steps among the tokens of shortlists, by their number of rows and whether they are
        trials."""
        self.shortlists: RowShortlists | None = None
        """Shortlists of the rows, where the bundle has a shortlist."""
        if sessions.output_weights is not None and self._shortlist is not None:
            max_tokens = self._shortlist.max_tokens
            self.shortlists = RowShortlists(sessions.output_weights, rows, max_tokens)
        cross = cross_caches(manifest.dimensions.decoder_layers)
        self._encoding = self._caches.bound(sessions.encoder, rows, cross)
        self._moving = self._caches.bound(sessions.move, rows)
        self._run_options = ort.RunOptions()
        # The default; where it is unset, onnxruntime finds out by an exception at every call.
        self._run_options.add_run_config_entry("gpu_graph_id", "0")
        self.seconds = 0.0
        """Time spent in all graphs so far."""

    def replica(self) -> "Graphs":
        """Return graphs with the same sessions, so the same weights, and caches of their own."""
        replica = copy.copy(self)
        replica._allocate()
        return replica

    def interrupt(self, interrupted: bool = True) -> None:
        """Make the call that is running fail soon, and every later one until this is undone."""
        self._run_options.terminate = interrupted

    @property
    def buffer_bytes(self) -> int:
        """Memory of the caches and of the results, in bytes."""
        of_shortlists = 0 if self.shortlists is None else self.shortlists.bytes
        return self._caches.bytes + self._log_probs.bytes + self._results.bytes + of_shortlists

    def encode(
        self, source_ids: Ints, source_lengths: Ints, sentences: Ints, rows: Ints
    ) -> EncodeResult:
        """Encode sentences into the cross caches of rows; a sentence may fill several rows.

        ``sentences`` has the number of the sentence that goes into each of ``rows``.
        """
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
        """Feed the newest token of each of the first n rows, and rate what may come next.

        ``given_ids`` are tokens whose log-probability is wanted, one for each row.
        """
        n = len(token_ids)
        longest = self._inputs.fill(token_ids, past_lengths, source_lengths, candidates)
        self._inputs.fill_given(token_ids if given_ids is None else given_ids, n)
        step = self._step(n)
        if self.settings.device != "cpu":
            self._inputs.bind(step.binding, n)  # what is bound is copied to the device then
        step.adjust(adjustments, n, self.manifest.dimensions.target_vocabulary)
        return self._run_step(self._sessions.decoder, step, n, candidates, longest)

    def step_shortlisted(
        self,
        token_ids: Ints,
        past_lengths: Ints,
        source_lengths: Ints,
        *,
        candidates: int,
        is_trial: bool = False,
    ) -> StepResult:
        """Do the same as ``step``, but each row chooses among the tokens of its shortlist.

        The log-probability that is given in the result is that of the end token. A trial leaves
        the states of cells as they are: ``step`` is to follow, with the same tokens.
        """
        n = len(token_ids)
        longest = self._inputs.fill(token_ids, past_lengths, source_lengths, candidates)
        step = self._shortlisted_step(n, is_trial=is_trial)
        return self._run_step(self._sessions.listed, step, n, candidates, longest)

    def step_on(self, token_ids: Ints) -> StepResult:
        """Do the last step again, with the token that each of its rows chose in it.

        All else has to be as it was: which rows, sources and shortlists there are, and that there
        are no adjustments. On the CPU only, where what is bound is read in place.
        """
        assert self._last is not None
        assert self.settings.device == "cpu"
        session, step = self._last
        assert step.result is not None
        self._inputs.go_on(token_ids)
        step.result.seconds = self._run(session, step.binding)
        return step.result

    def _run_step(
        self,
        session: ort.InferenceSession,
        step: BoundStep,
        rows: int,
        candidates: int,
        longest_source: int,
    ) -> StepResult:
        result = self._result(step, rows, candidates, longest_source)
        result.seconds = self._run(session, step.binding)
        self._last = session, step
        return result

    def _step(self, rows: int) -> BoundStep:
        """Return the step of so many rows, bound to all memory that stays where it is."""
        if rows not in self._steps:
            binding = self._caches.bound(self._sessions.decoder, rows)
            shape = (rows, self.manifest.dimensions.target_vocabulary)
            self._log_probs.bind_output(binding, "log_probs", shape)
            self._inputs.bind(binding, rows)
            self._steps[rows] = BoundStep(binding)
        return self._steps[rows]

    def _shortlisted_step(self, rows: int, *, is_trial: bool) -> BoundStep:
        """Do the same as ``_step``, for the step among the tokens of shortlists."""
        assert self.shortlists is not None
        lists = self.shortlists
        key = rows, is_trial and self._caches.has_states
        if key not in self._shortlisted_steps:
            bound = self._caches.bound_for_trial if key[1] else self._caches.bound
            binding = bound(self._sessions.listed, rows)
            self._inputs.bind(binding, rows, without={"given_ids"})
            for name, memory in (
                ("list_ids", lists.ids),
                ("list_columns", lists.columns),
                ("list_offsets", lists.offsets),
            ):
                bind_memory(binding, name, memory[:rows])
            self._shortlisted_steps[key] = BoundStep(binding)
        step = self._shortlisted_steps[key]
        if step.shortlists_version != lists.version:
            for name, memory in lists.inputs.items():
                bind_memory(step.binding, name, memory)
            step.shortlists_version = lists.version
        return step

    def _result(
        self, step: BoundStep, rows: int, candidates: int, longest_source: int
    ) -> StepResult:
        """Return where the step will put its result, bound again if shape or memory changed."""
        if step.result is None or step.result_key != (
            candidates,
            longest_source,
            self._results.version,
        ):
            step.result = self._results.bind_step(step.binding, rows, candidates, longest_source)
            step.result_key = (candidates, longest_source, self._results.version)
        return step.result

    def _run(self, session: ort.InferenceSession, binding: ort.IOBinding) -> float:
        """Run a graph, and return the seconds that it took."""
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
        """Copy the caches of rows to other rows, as many positions of each as are in use."""
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
        """Return the log-probabilities of all tokens for the first rows, after the last step.

        On the CPU this is the graph's own memory, which the next step overwrites.
        """
        return self._log_probs.numpy()[:rows]

    def cache(self, name: str) -> npt.NDArray[np.floating]:
        """Return a copy of a whole cache on the host: for checking graphs, not for serving."""
        return self._caches[name].numpy().copy()
