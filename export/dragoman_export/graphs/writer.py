"""The graphs of a bundle, written from a model's weights.

The contract is ``dragoman_server.bundle.graph_io``: names, shapes and meaning of inputs, outputs.
No ``If`` or ``Loop``; caches are written in place and never concatenated.
"""

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from dragoman_export.errors import ExportError
from dragoman_export.graphs.builder import GraphBuilder, WeightFile
from dragoman_export.graphs.caches import CacheWriter
from dragoman_export.graphs.calibration import input_ranges
from dragoman_export.graphs.decoder import DecoderWriter
from dragoman_export.graphs.encoder import EncoderWriter
from dragoman_export.graphs.precision import Float, Int8, Precision, Quantization
from dragoman_export.graphs.weights import ModelWeights, weights_for_graphs
from dragoman_server.bundle.graph_io import DECODER, ENCODER, LISTED_DECODER, MOVE, OUTPUT_COLUMNS
from dragoman_server.bundle.manifest import SHORTLIST, WEIGHTS, Dimensions
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_training.data.tokenizer import OURS, Ends
from dragoman_training.models.transformer import Transformer


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
            dimensions,
            precision.element.__name__,
            weights.decoder_kind,
            max_source=max_source,
            max_target=max_target,
        )
        parts = (weights, dimensions, precision, self._caches)
        self._encoder = EncoderWriter(*parts)
        self._decoder = DecoderWriter(*parts, alignment_layer)

    def encoder(self) -> GraphBuilder:
        """Return the graph from source ids to the keys and values of all cross-attentions."""
        return self._built("encoder", self._encoder.write)

    def decoder(self) -> GraphBuilder:
        """Return the graph of one step: from each row's newest token to the best next tokens."""
        return self._built("decoder", self._decoder.write)

    def listed_decoder(self) -> GraphBuilder:
        """Return the same step, where each row chooses among the tokens of its shortlist."""
        return self._built("listed_decoder", self._decoder.write_listed)

    def columns(self) -> GraphBuilder:
        """Return the graph that gives the output weights of some target tokens away."""
        return self._built("columns", self._decoder.write_columns)

    def move(self) -> GraphBuilder:
        """Return the graph that copies the caches of rows to other rows."""
        return self._built("move", self._write_move)

    def _built(self, name: str, write: Callable[[GraphBuilder], None]) -> GraphBuilder:
        g = GraphBuilder(name, self._file)
        write(g)
        return g

    def _write_move(self, g: GraphBuilder) -> None:
        sources_m = g.input("sources", "int64", ["m"])
        destinations_m = g.input("destinations", "int64", ["m"])
        for length, names in (
            ("self_length", self._caches.self_names),
            ("cross_length", self._caches.cross_names),
        ):
            positions = g.input(length, "int64", [1])
            if not names:
                continue
            read = self._caches.places(g, sources_m, positions)
            write = self._caches.places(g, destinations_m, positions)
            for name in names:
                self._caches.add_input(g, name, "rows_")
                lines = g.add("GatherND", name, read)
                self._caches.scatter(g, name, "rows_", write, lines)
        if self._caches.state_names:
            rows_m1 = g.add("Unsqueeze", destinations_m, g.ints(1))
            for name in self._caches.state_names:
                self._caches.add_input(g, name, "rows_")
                lines = g.add("Gather", name, sources_m, axis=0)
                self._caches.scatter(g, name, "rows_", rows_m1, lines)


def write_graphs(
    model: Transformer,
    directory: Path,
    precision: str,
    alignment_layer: int,
    calibration: Sequence[Sequence[int]] = (),
    keep_float32: Sequence[str] = (),
    ends: Ends = OURS,
    shortlist: Shortlist | None = None,
    quantization: Quantization | None = None,
) -> Dimensions:
    """Write the graphs and their weights, and return the sizes of the model.

    ``calibration`` has sentences, as ids, to find the scales of int8 on, where ``quantization``
    does not know them.
    """
    architecture = model.settings
    dimensions = Dimensions(
        width=architecture.width,
        heads=architecture.heads,
        feed_forward=architecture.feed_forward,
        encoder_layers=architecture.encoder_layers,
        decoder_layers=architecture.decoder_layers,
        source_vocabulary=model.source_vocabulary,
        target_vocabulary=model.target_vocabulary,
    )
    file = WeightFile(WEIGHTS)
    weights = weights_for_graphs(model)
    names = [linear.name for linear in weights.linears()]
    for pattern in keep_float32:
        if not fnmatch.filter(names, pattern):
            raise ExportError(f"no product is named like {pattern!r}; there are {', '.join(names)}")
    way: Precision
    if precision == "int8":
        known = quantization or Quantization({}, {})
        if not known.highest:
            found = input_ranges(model, weights, calibration, ends)
            known = replace(known, highest=found.highest, lowest=found.lowest)
        way = Int8(known.highest, keep_float32, known.steps, known.lowest)
    else:
        way = Float(precision)
    writer = GraphWriter(
        weights,
        dimensions,
        way,
        file,
        max_source=architecture.max_length,
        max_target=architecture.max_length,
        alignment_layer=alignment_layer,
    )
    graphs = {ENCODER: writer.encoder(), DECODER: writer.decoder(), MOVE: writer.move()}
    if shortlist is not None:
        if not isinstance(way, Int8) or way.keeps(weights.projection):
            raise ExportError("a shortlist is for int8, and its projection must not stay float32")
        graphs |= {LISTED_DECODER: writer.listed_decoder(), OUTPUT_COLUMNS: writer.columns()}
        shortlist.save(directory / SHORTLIST)
    for name, graph in graphs.items():
        graph.save(directory / name)
    (directory / WEIGHTS).write_bytes(file.content)
    return dimensions
