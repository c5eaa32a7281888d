"""The caches of a bundle's graphs: inputs that are written in place and leave as outputs."""

import numpy as np

from dragoman_export.graphs.builder import GraphBuilder
from dragoman_server.bundle.graph_io import cross_caches, self_caches, updated
from dragoman_server.bundle.manifest import Dimensions


class CacheWriter:
    """Writes the nodes that read and write caches, all of shape [rows, H, capacity, K]."""

    def __init__(
        self, dimensions: Dimensions, element: str, *, max_source: int, max_target: int
    ) -> None:
        self._heads, self._head_width = dimensions.heads, dimensions.head_width
        self._element = element
        self.self_names = self_caches(dimensions.decoder_layers)
        self.cross_names = cross_caches(dimensions.decoder_layers)
        self._capacity = {
            **dict.fromkeys(self.self_names, max_target),
            **dict.fromkeys(self.cross_names, max_source),
        }

    def add_input(self, g: GraphBuilder, name: str, rows: str) -> None:
        """Add a cache as an input of a graph."""
        g.input(name, self._element, self._shape(name, rows))

    def add_output(self, g: GraphBuilder, value: str, name: str, rows: str) -> None:
        """Let a value leave the graph as a cache after the call."""
        g.output(value, updated(name), self._element, self._shape(name, rows))

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

    def _shape(self, name: str, rows: str) -> list[int | str]:
        return [rows, self._heads, self._capacity[name], self._head_width]


def count_up(g: GraphBuilder, count_1: str) -> str:
    """Return the numbers from 0 up to a count, which is not one of them."""
    zero, one = (g.scalar(name, value, np.int64) for name, value in (("from_0", 0), ("by_1", 1)))
    return g.add("Range", zero, g.add("Squeeze", count_1, g.ints(0)), one)
