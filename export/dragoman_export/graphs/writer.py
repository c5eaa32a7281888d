"""The graphs of a bundle, written from a model's weights.

The contract is ``dragoman_server.bundle.graph_io``: names, shapes and meaning of inputs, outputs.
No ``If`` or ``Loop``; caches are written in place and never concatenated.
"""

from dragoman_export.graphs.builder import GraphBuilder, WeightFile
from dragoman_export.graphs.caches import CacheWriter
from dragoman_export.graphs.decoder import DecoderWriter
from dragoman_export.graphs.encoder import EncoderWriter
from dragoman_export.graphs.precision import Precision
from dragoman_export.graphs.weights import ModelWeights
from dragoman_server.bundle.manifest import Dimensions


class GraphWriter:
    """Writes the graphs of one model in one precision; they share a file of weights."""

    def __init__(
        self,
        weights: ModelWeights,
        dimensions: Dimensions,
        precision: Precision,
        file: WeightFile,
        *,
        max_source: int,
        max_target: int,
        alignment_layer: int,
    ) -> None:
        self._file = file
        self._caches = CacheWriter(
            dimensions, precision.element.__name__, max_source=max_source, max_target=max_target
        )
        parts = (weights, dimensions, precision, self._caches)
        self._encoder = EncoderWriter(*parts)
        self._decoder = DecoderWriter(*parts, alignment_layer)

    def encoder(self) -> GraphBuilder:
        """Source ids to the cross-attention's keys and values of every decoder layer."""
        g = GraphBuilder("encoder", self._file)
        self._encoder.write(g)
        return g

    def decoder(self) -> GraphBuilder:
        """One step: the newest token of each row to the best next tokens."""
        g = GraphBuilder("decoder", self._file)
        self._decoder.write(g)
        return g

    def listed_decoder(self) -> GraphBuilder:
        """The same step, where each row chooses among the tokens of its list."""
        g = GraphBuilder("listed_decoder", self._file)
        self._decoder.write_listed(g)
        return g

    def columns(self) -> GraphBuilder:
        """What the output weights of some target tokens are."""
        g = GraphBuilder("columns", self._file)
        self._decoder.write_columns(g)
        return g

    def move(self) -> GraphBuilder:
        """Copy the beginnings of cache lines from rows to rows."""
        g = GraphBuilder("move", self._file)
        sources_m = g.input("sources", "int64", ["m"])
        destinations_m = g.input("destinations", "int64", ["m"])
        for length, names in (
            ("self_length", self._caches.self_names),
            ("cross_length", self._caches.cross_names),
        ):
            positions = g.input(length, "int64", [1])
            read = self._caches.places(g, sources_m, positions)
            write = self._caches.places(g, destinations_m, positions)
            for name in names:
                self._caches.add_input(g, name, "rows_")
                lines = g.add("GatherND", name, read)
                self._caches.scatter(g, name, "rows_", write, lines)
        return g
