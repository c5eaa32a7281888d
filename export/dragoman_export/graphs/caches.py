"""The caches of a bundle's graphs: inputs that are written in place and leave as outputs."""

import numpy as np

from dragoman_export.graphs.builder import GraphBuilder
from dragoman_server.bundle.graph_io import (
    cell_states,
    cross_caches,
    row_caches,
    self_caches,
    updated,
)
from dragoman_server.bundle.manifest import Dimensions


class CacheWriter:
    """Writes the nodes that read and write caches: those of attention, [rows, H, capacity, K], and
    the states of cells, [rows, 1, D]."""

    def __init__(
        self,
        dimensions: Dimensions,
        element: str,
        decoder: str,
        *,
        max_source: int,
        max_target: int,
    ) -> None:
        layers, self._heads = dimensions.decoder_layers, dimensions.heads
        self._caches = row_caches(
            decoder=decoder,
            layers=layers,
            heads=dimensions.heads,
            head_width=dimensions.head_width,
            max_source=max_source,
            max_target=max_target,
            element=element,
        )
        self.names = list(self._caches)
        self.self_names = [name for name in self_caches(layers) if name in self._caches]
        self.state_names = [name for name in cell_states(layers) if name in self._caches]
        self.cross_names = cross_caches(layers)

    def add_input(self, g: GraphBuilder, name: str, rows: str) -> None:
        """Add a cache as an input of a graph."""
        cache = self._caches[name]
        g.input(name, cache.element, [rows, *cache.shape])

    def add_output(self, g: GraphBuilder, value: str, name: str, rows: str) -> None:
        """Let a value leave the graph as a cache after the call."""
        cache = self._caches[name]
        g.output(value, updated(name), cache.element, [rows, *cache.shape])

    def scatter(self, g: GraphBuilder, name: str, rows: str, places: str, lines: str) -> None:
        """Write lines to places of a cache that is an input, and let it leave the graph."""
        self.add_output(g, g.add("ScatterND", name, places, lines), name, rows)

    def places(self, g: GraphBuilder, rows_m: str, count_1: str) -> str:
        """Return (row, head, position) of all vectors of rows, as a value [m, H, positions, 3]."""
        heads = g.constant("heads", np.arange(self._heads, dtype=np.int64))
        axes = (
            g.add("Unsqueeze", rows_m, g.ints(1, 2)),
            g.add("Unsqueeze", heads, g.ints(0, 2)),
            g.add("Unsqueeze", count_up(g, count_1), g.ints(0, 1)),
        )
        shape = g.add("Concat", g.add("Shape", rows_m), g.ints(self._heads), count_1, axis=0)
        parts = [g.add("Unsqueeze", g.add("Expand", a, shape), g.ints(3)) for a in axes]
        return g.add("Concat", *parts, axis=3)


def count_up(g: GraphBuilder, count_1: str) -> str:
    """Return the numbers from 0 up to a count, which is not one of them."""
    zero, one = (g.scalar(name, value, np.int64) for name, value in (("from_0", 0), ("by_1", 1)))
    return g.add("Range", zero, g.add("Squeeze", count_1, g.ints(0)), one)
