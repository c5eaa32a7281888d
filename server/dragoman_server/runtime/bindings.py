"""What a decoder step is bound to, so that only what changes is bound again."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from dragoman_server.bundle.manifest import Manifest
from dragoman_server.runtime.adjustments import NO_ADJUSTMENTS, Adjustments
from dragoman_server.runtime.arrays import Ints
from dragoman_server.runtime.checks.bounds import check_range
from dragoman_server.runtime.results import StepResult

_BY_ROW: dict[str, type[np.generic]] = {
    "token_ids": np.int64,
    "past_lengths": np.int32,
    "source_ends": np.int32,
    "given_ids": np.int64,
}
"""Inputs with a number for each row."""
_SIZES: dict[str, type[np.generic]] = {
    "longest": np.int32,
    "longest_source": np.int32,
    "candidates": np.int64,
}
"""Sizes that kernels read on the host, whatever the device."""


def bind_values(binding: ort.IOBinding, name: str, values: npt.NDArray[np.generic]) -> None:
    """Bind an input that the host computed; onnxruntime copies it where the graph needs it."""
    binding.bind_cpu_input(name, np.ascontiguousarray(values))


def bind_memory(binding: ort.IOBinding, name: str, memory: npt.NDArray[Any]) -> None:
    """Bind memory of the host as an input: what is written there later counts."""
    binding.bind_input(name, "cpu", 0, memory.dtype.type, memory.shape, memory.ctypes.data)


class StepInputs:
    """Host memory of what a step is given: bound once, and filled anew for each step."""

    def __init__(self, manifest: Manifest, rows: int) -> None:
        self._manifest = manifest
        self._rows = rows
        self._memory: dict[str, npt.NDArray[Any]] = {
            **{name: np.zeros(rows, kind) for name, kind in _BY_ROW.items()},
            **{name: np.zeros(1, kind) for name, kind in _SIZES.items()},
        }

    def fill(
        self, token_ids: Ints, past_lengths: Ints, source_lengths: Ints, candidates: int
    ) -> int:
        """Check what a step is given, and put it where it is bound.

        Returns the length of the longest source, in tokens.
        """
        n, limits = len(token_ids), self._manifest
        if n > self._rows:
            raise ValueError(f"{n} rows, but there are {self._rows}")
        check_range("token_ids", token_ids, n, 0, limits.dimensions.target_vocabulary - 1)
        past = check_range("past_lengths", past_lengths, n, 0, limits.max_target_tokens - 1)
        source = check_range("source_lengths", source_lengths, n, 1, limits.max_source_tokens)
        memory = self._memory
        memory["token_ids"][:n] = token_ids
        memory["past_lengths"][:n] = past_lengths
        np.subtract(source_lengths, 1, out=memory["source_ends"][:n], casting="same_kind")
        memory["longest"][0] = past + 1
        memory["longest_source"][0] = source
        memory["candidates"][0] = candidates
        return source

    def go_on(self, token_ids: Ints) -> None:
        """Put in the next tokens of the same rows, which graphs chose: each has a past token more.

        Nothing but the longest past is checked, as nothing else can be wrong.
        """
        n, memory = len(token_ids), self._memory
        longest = memory["longest"]
        if longest[0] >= self._manifest.max_target_tokens:
            raise ValueError(f"a row has {longest[0]} tokens, which are all that it may have")
        memory["token_ids"][:n] = token_ids
        memory["past_lengths"][:n] += 1
        longest += 1

    def fill_given(self, given_ids: Ints, rows: int) -> None:
        """Check the tokens whose log-probability is wanted, and put them where they are bound."""
        vocabulary = self._manifest.dimensions.target_vocabulary
        check_range("given_ids", given_ids, rows, 0, vocabulary - 1)
        self._memory["given_ids"][:rows] = given_ids

    def bind(self, binding: ort.IOBinding, rows: int, without: Collection[str] = ()) -> None:
        """Bind the first rows of all inputs but those that a graph does not have."""
        for name, memory in self._memory.items():
            if name not in without:
                bind_memory(binding, name, memory[:rows] if name in _BY_ROW else memory)


@dataclass
class BoundStep:
    """A step of so many rows, and what it is bound to."""

    binding: ort.IOBinding
    """Binding of the decoder's session to memory."""
    is_adjusted: bool = True
    """Whether the step may be bound to adjustments; False once it is known to be bound to none."""
    result: StepResult | None = None
    """Arrays that the step's outputs are bound to."""
    result_key: tuple[int, int, int] = (0, 0, 0)
    """What the result is for: candidates, the longest source, and the version of its memory."""
    shortlists_version: int = 0
    """Version of the shortlists that the step is bound to."""

    def adjust(self, adjustments: Adjustments, rows: int, vocabulary: int) -> None:
        """Bind changes of logits, unless the step is bound to none and there are none."""
        if adjustments is NO_ADJUSTMENTS and not self.is_adjusted:
            return
        if adjustments.places.size:
            last = rows * vocabulary - 1
            check_range("places", adjustments.places, len(adjustments.factors), 0, last)
        places, factors, offsets = adjustments.by_row(rows, vocabulary)
        bind_values(self.binding, "adjust_places", places)
        bind_values(self.binding, "adjust_factors", factors)
        bind_values(self.binding, "adjust_offsets", offsets)
        self.is_adjusted = adjustments is not NO_ADJUSTMENTS
