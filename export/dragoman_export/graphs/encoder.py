"""The encoder's graph: source ids to the cross-attention's keys and values of every decoder layer.

Shapes: B sentences, S positions, W rows to fill, H heads, K width of a head.
"""

import numpy as np

from dragoman_export.graphs.builder import MICROSOFT, GraphBuilder
from dragoman_export.graphs.caches import count_up
from dragoman_export.graphs.layers import LayerWriter, Sublayer
from dragoman_export.graphs.weights import EncoderLayerWeights, NormWeights


class EncoderWriter(LayerWriter):
    """Writes encoder.onnx of one model in one precision."""

    def write(self, g: GraphBuilder) -> None:
        """Write the whole graph."""
        ids_BS = g.input("source_ids", "int64", ["sentences_", "positions"])
        lengths_B = g.input("source_lengths", "int32", ["sentences_"])
        sentences_W = g.input("sentences", "int64", ["filled"])
        rows_W = g.input("rows", "int64", ["filled"])
        shape = g.add("Shape", ids_BS)
        positions = g.add("Gather", shape, g.ints(1), axis=0)
        position_S = count_up(g, positions)
        flat_ids = g.add("Reshape", ids_BS, g.ints(-1))
        flat_positions = g.add("Reshape", g.add("Expand", position_S, shape), g.ints(-1))
        x = self._embed(g, flat_ids, flat_positions, self._weights.source)
        grid = g.add("Concat", shape, g.ints(self._dimensions.width), axis=0)
        if not self._precision.flat:
            x = g.add("Reshape", x, grid)
        sublayers = self._sublayers(g, grid, lengths_B)
        x = self._stack(g, x, sublayers, self._weights.encoder_norm)
        self._sum_sentences(g, x, shape, position_S, lengths_B)
        # Where the keys and values of each row go: (row, head, position), for all heads and
        # the positions of this batch.
        places = self._caches.places(g, rows_W, positions)
        heads = g.add(
            "Concat", shape, g.ints(self._dimensions.heads, self._dimensions.head_width), axis=0
        )
        for layer, decoder in enumerate(self._weights.decoder):
            for cache, weights in (
                (f"cross_key_{layer}", decoder.key),
                (f"cross_value_{layer}", decoder.value),
            ):
                part_BSHK = g.add("Reshape", self._precision.linear(g, x, weights), heads)
                part_BHSK = g.add("Transpose", part_BSHK, perm=[0, 2, 1, 3])
                filled_WHSK = g.add("Gather", part_BHSK, sentences_W, axis=0)
                self._caches.add_input(g, cache, "rows_")
                self._caches.scatter(g, cache, "rows_", places, filled_WHSK)

    def _sublayers(
        self, g: GraphBuilder, grid: str, lengths_B: str
    ) -> list[tuple[NormWeights, Sublayer]]:
        """Return all sublayers of the encoder, each with its norm."""
        sublayers: list[tuple[NormWeights, Sublayer]] = []
        for layer in self._weights.encoder:
            feed_forward = self._feed_forward(g, layer.feed_forward)
            sublayers += [
                (layer.attention_norm, self._attention(g, layer, grid, lengths_B)),
                (layer.feed_forward_norm, feed_forward),
            ]
        return sublayers

    def _attention(
        self, g: GraphBuilder, weights: EncoderLayerWeights, grid: str, lengths_B: str
    ) -> Sublayer:
        """Return self-attention over the real tokens of each sentence, to write."""

        def attention(x: str) -> str:
            qkv = [
                self._precision.linear(g, x, part)
                for part in (weights.query, weights.key, weights.value)
            ]
            if self._precision.flat:
                qkv = [g.add("Reshape", part, grid) for part in qkv]
            attended = g.add(
                "MultiHeadAttention",
                *(*qkv, "", lengths_B),
                domain=MICROSOFT,
                num_heads=self._dimensions.heads,
            )
            if self._precision.flat:
                attended = g.add("Reshape", attended, g.ints(-1, self._dimensions.width))
            return self._precision.linear(g, attended, weights.attention_output)

        return attention

    def _sum_sentences(
        self, g: GraphBuilder, x: str, shape: str, position_S: str, lengths_B: str
    ) -> None:
        """Add up the vectors of each sentence's real tokens.

        The sum is not a number if any of them is not, which int8 products would hide.
        """
        sums = g.add("ReduceSum", self._to_float32(g, x), g.ints(-1), keepdims=0)
        lengths_B1 = g.add("Unsqueeze", g.add("Cast", lengths_B, to=7), g.ints(1))
        real_BS = g.add("Less", position_S, lengths_B1)
        zero = g.scalar("zero", 0, np.float32)
        sums_BS = g.add("Where", real_BS, g.add("Reshape", sums, shape), zero)
        sums_B = g.add("ReduceSum", sums_BS, g.ints(1), keepdims=0)
        g.output(sums_B, "sentence_sums", "float32", ["sentences_"])
