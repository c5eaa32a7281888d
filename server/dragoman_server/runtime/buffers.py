"""Memory that graphs are bound to by its address: taken once, and never moved."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from dragoman_server.bundle.graph_io import cell_states, updated
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.runtime.memory import zeros


class Buffer:
    """Memory on the device, taken once."""

    def __init__(
        self,
        shape: tuple[int, ...],
        kind: type[np.generic],
        device: str,
        *,
        touched: bool,
    ) -> None:
        """``touched``: see ``zeros``; a GPU's memory is always taken at once."""
        self._host = zeros(shape, kind, touched=touched)
        self.kind = kind
        self.device = device
        self.bytes = self._host.nbytes
        self._value: ort.OrtValue | None = None
        self.pointer: int = self._host.ctypes.data
        if device != "cpu":
            self._value = ort.OrtValue.ortvalue_from_numpy(self._host, device, 0)
            self._host = np.empty(0, kind)
            self.pointer = self._value.data_ptr()

    def numpy(self) -> npt.NDArray[Any]:
        """Return the buffer's content: on the CPU the memory itself, else a copy."""
        return self._host if self._value is None else self._value.numpy()

    def bind_input(self, binding: ort.IOBinding, name: str, shape: tuple[int, ...]) -> None:
        """Give a graph the beginning of the memory to read."""
        binding.bind_input(name, self.device, 0, self.kind, shape, self.pointer)

    def bind_output(self, binding: ort.IOBinding, name: str, shape: tuple[int, ...]) -> None:
        """Give a graph the beginning of the memory to write to."""
        binding.bind_output(name, self.device, 0, self.kind, shape, self.pointer)


class Caches:
    """Keys, values and states of all rows, each as input and output of a graph at one address."""

    def __init__(self, manifest: Manifest, rows: int, device: str, *, touched: bool) -> None:
        self._caches = manifest.row_caches
        self._buffers = {
            name: Buffer(
                (rows, *cache.shape), np.dtype(cache.element).type, device, touched=touched
            )
            for name, cache in self._caches.items()
        }
        states = cell_states(manifest.dimensions.decoder_layers)
        self._states = [name for name in states if name in self._caches]
        self._discarded: Buffer | None = None
        """Where the states of a trial go. It does for all layers: each reads what it wrote before
        the next one writes."""
        if self._states and manifest.shortlist:
            state = self._caches[self._states[0]]
            self._discarded = Buffer((rows, *state.shape), np.float32, device, touched=touched)

    @property
    def bytes(self) -> int:
        """Memory of all caches, in bytes."""
        discarded = 0 if self._discarded is None else self._discarded.bytes
        return sum(buffer.bytes for buffer in self._buffers.values()) + discarded

    @property
    def has_states(self) -> bool:
        """Whether there are cells with states among the caches."""
        return bool(self._states)

    def bound(
        self, session: ort.InferenceSession, rows: int, names: Sequence[str] | None = None
    ) -> ort.IOBinding:
        """Return a binding of a session to the first rows of these caches, or of all."""
        binding = session.io_binding()
        for name in self._buffers if names is None else names:
            shape = (rows, *self._caches[name].shape)
            self._buffers[name].bind_input(binding, name, shape)
            self._buffers[name].bind_output(binding, updated(name), shape)
        return binding

    def bound_for_trial(self, session: ort.InferenceSession, rows: int) -> ort.IOBinding:
        """Return a binding of a session that leaves the states of cells as they are.

        Keys and values are written, because a step that is done twice writes the same ones.
        """
        binding = self.bound(session, rows)
        if self._discarded is not None:
            for name in self._states:
                shape = (rows, *self._caches[name].shape)
                self._discarded.bind_output(binding, updated(name), shape)
        return binding

    def __getitem__(self, name: str) -> Buffer:
        """Return the memory of one cache."""
        return self._buffers[name]
