"""Memory that graphs are bound to by its address: taken once, and never moved."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from dragoman_server.bundle.graph_io import cross_caches, self_caches, updated
from dragoman_server.bundle.manifest import Manifest


class Buffer:
    """Memory on the device, allocated and touched once."""

    def __init__(self, shape: tuple[int, ...], kind: type[np.generic], device: str) -> None:
        # numpy asks the system for huge pages, onnxruntime does not; the lines of a cache lie far
        # apart, so with small ones looking up their addresses takes as long as reading them.
        self._host = np.empty(shape, kind)
        self._host.fill(0)
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


def cache_shapes(manifest: Manifest) -> dict[str, tuple[int, ...]]:
    """Return the shape of one row of each cache, by the cache's name."""
    layers = manifest.dimensions.decoder_layers
    heads, width = manifest.dimensions.heads, manifest.dimensions.head_width
    return {
        **dict.fromkeys(self_caches(layers), (heads, manifest.max_target_tokens, width)),
        **dict.fromkeys(cross_caches(layers), (heads, manifest.max_source_tokens, width)),
    }


class Caches:
    """Keys and values of all rows, each cache as input and output of a graph at one address."""

    def __init__(self, manifest: Manifest, rows: int, device: str) -> None:
        element = np.float16 if manifest.precision == "float16" else np.float32
        self._shapes = cache_shapes(manifest)
        self._buffers = {
            name: Buffer((rows, *shape), element, device) for name, shape in self._shapes.items()
        }

    @property
    def bytes(self) -> int:
        """Memory of all caches, in bytes."""
        return sum(buffer.bytes for buffer in self._buffers.values())

    def bound(
        self, session: ort.InferenceSession, rows: int, names: Sequence[str] | None = None
    ) -> ort.IOBinding:
        """Return a binding of a session to the first rows of these caches, or of all."""
        binding = session.io_binding()
        for name in self._buffers if names is None else names:
            shape = (rows, *self._shapes[name])
            self._buffers[name].bind_input(binding, name, shape)
            self._buffers[name].bind_output(binding, updated(name), shape)
        return binding

    def __getitem__(self, name: str) -> Buffer:
        """Return the memory of one cache."""
        return self._buffers[name]
