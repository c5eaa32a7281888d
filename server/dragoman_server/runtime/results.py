"""What the graphs give back: small arrays on the host, in memory that is used again and again."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from dragoman_server.bundle.manifest import Manifest
from dragoman_server.runtime.arrays import Floats, Ints
from dragoman_server.runtime.limits import MAX_CANDIDATES


@dataclass
class StepResult:
    """What one step of n rows gives; log-probabilities of all tokens stay on the device.

    It is the graphs' own, and so is the memory of its arrays: the next step overwrites both.
    """

    top_log_probs: Floats
    """Log-probabilities of each row's candidates, the best first: [n, k]."""
    top_ids: Ints
    """Tokens that are each row's candidates, the best first: [n, k]."""
    given_log_probs: Floats
    """Log-probability of the token that was given for each row: [n]."""
    row_sums: Floats
    """Sum of each row's last vector: not finite if anything in the row is not a number."""
    alignment: Floats
    """Weight of each source position in the cross-attention of each row: [n, S]."""
    seconds: float = 0.0
    """Time that the graph took."""

    @property
    def chosen(self) -> tuple[npt.NDArray[Any], ...]:
        """The arrays that depend on which tokens a row may choose from, with a line a row."""
        return self.top_log_probs, self.top_ids, self.given_log_probs


@dataclass(frozen=True)
class EncodeResult:
    """What encoding sentences gives, besides the caches that it fills."""

    sentence_sums: Floats
    """Sum of each sentence's vectors: not finite if anything in the sentence is not a number."""
    seconds: float
    """Time that the graph took."""


class ResultMemory:
    """Host memory that graphs write their results to; it grows where more is asked for."""

    def __init__(self, manifest: Manifest, rows: int) -> None:
        candidates = min(MAX_CANDIDATES, manifest.dimensions.target_vocabulary)
        self._memory: dict[str, npt.NDArray[Any]] = {
            name: np.zeros(rows * width, kind)
            for name, (width, kind) in {
                "top_log_probs": (candidates, np.float32),
                "top_ids": (candidates, np.int64),
                "given_log_probs": (1, np.float32),
                "row_sums": (1, np.float32),
                "alignment": (manifest.max_source_tokens, np.float32),
                "sentence_sums": (1, np.float32),
            }.items()
        }
        self.version = 1
        """Changes when memory moves: what is bound to it has to be bound again."""

    @property
    def bytes(self) -> int:
        """Memory of all results, in bytes."""
        return sum(memory.nbytes for memory in self._memory.values())

    def bind(self, binding: ort.IOBinding, name: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Bind an output, and return the array that it will be in."""
        size = math.prod(shape)
        if size > self._memory[name].size:
            self._memory[name] = np.zeros(size, self._memory[name].dtype)
            self.version += 1
        memory = self._memory[name]
        binding.bind_output(name, "cpu", 0, memory.dtype.type, shape, memory.ctypes.data)
        return memory[:size].reshape(shape)

    def bind_step(
        self, binding: ort.IOBinding, rows: int, candidates: int, longest_source: int
    ) -> StepResult:
        """Bind all outputs of a step that leave the device."""

        def bind(name: str, *shape: int) -> npt.NDArray[Any]:
            return self.bind(binding, name, (rows, *shape))

        return StepResult(
            top_log_probs=bind("top_log_probs", candidates),
            top_ids=bind("top_ids", candidates),
            given_log_probs=bind("given_log_probs"),
            row_sums=bind("row_sums"),
            alignment=bind("alignment", longest_source),
        )
