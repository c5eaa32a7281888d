"""The decoder's graphs: one step of decoding, among all tokens or among those of shortlists.

Shapes: n rows, H heads, S source positions, K width of a head, D width of the model, m tokens.
"""

import numpy as np

from dragoman_export.graphs.builder import MICROSOFT, GraphBuilder
from dragoman_export.graphs.caches import CacheWriter, count_up
from dragoman_export.graphs.layers import LayerWriter, Sublayer
from dragoman_export.graphs.precision import Int8, Precision, StoredInt8
from dragoman_export.graphs.selection import group_size, select, select_listed
from dragoman_export.graphs.weights import (
    CellWeights,
    DecoderLayerWeights,
    ModelWeights,
    NormWeights,
    SelfAttentionWeights,
)
from dragoman_server.bundle.manifest import Dimensions


class DecoderWriter(LayerWriter):
    """Writes decoder.onnx, listed.onnx and columns.onnx of one model in one precision."""

    def __init__(
        self,
        weights: ModelWeights,
        dimensions: Dimensions,
        precision: Precision,
        caches: CacheWriter,
        alignment_layer: int,
    ) -> None:
        super().__init__(weights, dimensions, precision, caches)
        self._alignment_layer = alignment_layer

    def write(self, g: GraphBuilder) -> None:
        """Write a step: from the newest token of each row to the best next tokens."""
        adjust = (
            g.input("adjust_places", "int64", ["n", "adjusted"]),
            g.input("adjust_factors", "float32", ["n", "adjusted"]),
            g.input("adjust_offsets", "float32", ["n", "adjusted"]),
        )
        given_n = g.input("given_ids", "int64", ["n"])
        candidates = g.input("candidates", "int64", [1])
        x = self._to_vectors(g)
        logits = self._to_list(g, self._precision.linear(g, x, self._weights.projection))
        logits = self._to_float32(g, logits)
        vocabulary = self._dimensions.target_vocabulary
        select(
            g,
            logits,
            adjust,
            given_n,
            candidates,
            vocabulary=vocabulary,
            # Made for the CPU; the float16 graphs of GPUs sort fast enough.
            group=group_size(vocabulary) if self._element == "float32" else 1,
        )

    def write_listed(self, g: GraphBuilder) -> None:
        """Write the same step, where each row chooses among the tokens of its shortlist."""
        assert isinstance(self._precision, Int8)
        weights = self._weights.projection
        columns = StoredInt8(
            g.input("column_weights", "int8", [self._dimensions.width, "columns"]),
            g.input("column_steps", "float32", ["columns"]),
            "" if weights.bias is None else g.input("column_biases", "float32", ["columns"]),
        )
        lists = (
            g.input("list_ids", "int64", ["n", "listed"]),
            g.input("list_columns", "int64", ["n", "listed"]),
            g.input("list_offsets", "float32", ["n", "listed"]),
        )
        candidates = g.input("candidates", "int64", [1])
        x = self._to_vectors(g)
        logits = self._to_list(g, self._precision.product(g, x, weights.name, columns))
        select_listed(g, logits, lists, candidates)

    def write_columns(self, g: GraphBuilder) -> None:
        """Write the graph that gives the output weights of some target tokens away."""
        assert isinstance(self._precision, Int8)
        ids_m = g.input("ids", "int64", ["m"])
        stored = self._precision.stored_rows(g, self._weights.projection)
        columns = g.add("Transpose", g.add("Gather", stored.matrix, ids_m, axis=0), perm=[1, 0])
        g.output(columns, "weights", "int8", [self._dimensions.width, "m"])
        g.output(g.add("Gather", stored.scales, ids_m, axis=0), "steps", "float32", ["m"])
        if stored.bias:
            g.output(g.add("Gather", stored.bias, ids_m, axis=0), "biases", "float32", ["m"])

    def _to_vectors(self, g: GraphBuilder) -> str:
        """Write all layers: from the newest tokens to the vectors that logits are computed of."""
        ids_n = g.input("token_ids", "int64", ["n"])
        past_n = g.input("past_lengths", "int32", ["n"])
        longest = g.input("longest", "int32", [1])
        source_ends_n = g.input("source_ends", "int32", ["n"])
        longest_source = g.input("longest_source", "int32", [1])
        for name in self._caches.names:
            self._caches.add_input(g, name, "n")
        begun_n11 = self._begun(g, past_n)
        x = self._embed(
            g, ids_n, g.add("Cast", past_n, to=7), self._weights.target, self._counts(g, begun_n11)
        )
        x_n1D = g.add("Unsqueeze", x, g.ints(1))
        none = g.add("Slice", x_n1D, g.ints(0), g.ints(0), g.ints(1))
        x = x if self._precision.flat else x_n1D
        alignments: list[str] = []
        sublayers: list[tuple[NormWeights, Sublayer]] = []
        for layer, weights in enumerate(self._weights.decoder):
            look_back = (
                self._cell(g, layer, weights.look_back, begun_n11)
                if isinstance(weights.look_back, CellWeights)
                else self._self_attention(g, layer, weights.look_back, past_n, longest)
            )
            sublayers += [
                (weights.self_norm, look_back),
                (
                    weights.cross_norm,
                    self._cross_attention(
                        g, layer, weights, none, source_ends_n, longest_source, alignments
                    ),
                ),
                (weights.feed_forward_norm, self._feed_forward(g, weights.feed_forward)),
            ]
        x = self._stack(g, x, sublayers, self._weights.decoder_norm)
        summed = self._to_float32(g, x)
        sums = g.add("ReduceSum", self._to_list(g, summed), g.ints(-1), keepdims=0)
        g.output(sums, "row_sums", "float32", ["n"])
        g.output(alignments[0], "alignment", "float32", ["n", "source_positions"])
        return x

    def _begun(self, g: GraphBuilder, past_n: str) -> str:
        """Return whether each row has a past, [n, 1, 1]; empty where that makes no difference."""
        if not self._caches.state_names and not self._weights.target.zero_start:
            return ""
        none = g.scalar("none", 0, np.int32)
        return g.add("Unsqueeze", g.add("Greater", past_n, none), g.ints(1, 2))

    def _counts(self, g: GraphBuilder, begun_n11: str) -> str:
        """Return by what the vectors of tokens are multiplied, [n, 1]; empty for nothing."""
        if not self._weights.target.zero_start:
            return ""
        begun_n1 = g.add("Squeeze", begun_n11, g.ints(2))
        return self._from_float32(g, g.add("Cast", begun_n1, to=1))

    def _self_attention(
        self, g: GraphBuilder, layer: int, weights: SelfAttentionWeights, past_n: str, longest: str
    ) -> Sublayer:
        """Return attention to a row's own past, to write."""

        def attention(x: str) -> str:
            packed = self._to_grid(g, self._precision.linear(g, x, weights.query_key_value))
            attended = self._attend(g, "self", layer, (packed, "", ""), past_n, longest)
            return self._precision.linear(g, attended[0], weights.output)

        return attention

    def _cell(self, g: GraphBuilder, layer: int, weights: CellWeights, begun_n11: str) -> Sublayer:
        """Return an SSRU, to write: its state c becomes f c + (1 - f) z, or z + f (c - z)."""

        def cell(x: str) -> str:
            product = self._to_grid(g, self._precision.linear(g, x, weights.forget_input))
            forget, z = g.add(
                "Split", self._to_float32(g, product), outputs=2, axis=-1, num_outputs=2
            )
            # At a row's first step its state is what an earlier sentence left there. That may not
            # even be a number, so it is not multiplied by 0.
            name = f"cell_state_{layer}"
            c = g.add("Where", begun_n11, name, g.scalar("zero", 0, np.float32))
            state = g.add("Add", z, g.add("Mul", g.add("Sigmoid", forget), g.add("Sub", c, z)))
            h = self._from_float32(g, g.add("Relu", state))
            self._caches.add_output(g, state, name, "n")
            return self._from_grid(g, h)

        return cell

    def _cross_attention(
        self,
        g: GraphBuilder,
        layer: int,
        layer_weights: DecoderLayerWeights,
        none: str,
        source_ends_n: str,
        longest_source: str,
        alignments: list[str],
    ) -> Sublayer:
        """Return attention to the source, to write.

        It is the same op as self-attention, with no new keys, and the source's keys as the past's.
        """

        def attention(x: str) -> str:
            q = self._to_grid(g, self._precision.linear(g, x, layer_weights.query))
            aligned = layer == self._alignment_layer
            attended, *weights_nH1S = self._attend(
                g,
                "cross",
                layer,
                (q, none, none),
                source_ends_n,
                longest_source,
                want_weights=aligned and self._element == "float32",
            )
            if aligned:
                weights = weights_nH1S or [
                    self._attention_weights(g, layer, q, source_ends_n, longest_source)
                ]
                alignments.append(self._mean_of_heads(g, weights[0]))
            return self._precision.linear(g, attended, layer_weights.cross_output)

        return attention

    def _attention_weights(
        self, g: GraphBuilder, layer: int, q: str, source_ends_n: str, longest_source: str
    ) -> str:
        """Return softmax(q Kᵀ), which on CUDA the attention op does not give away."""
        heads, width = self._dimensions.heads, self._dimensions.head_width
        q_nH1K = g.add("Reshape", q, g.ints(-1, heads, 1, width))
        longest = g.add("Cast", longest_source, to=7)
        key_nHSK = g.add("Slice", f"cross_key_{layer}", g.ints(0), longest, g.ints(2))
        key_nHKS = g.add("Transpose", key_nHSK, perm=[0, 1, 3, 2])
        products = g.add("Cast", g.add("MatMul", q_nH1K, key_nHKS), to=1)
        scores = g.add("Mul", products, g.scalar("by_head_width", width**-0.5, np.float32))
        ends_n111 = g.add("Unsqueeze", g.add("Cast", source_ends_n, to=7), g.ints(1, 2, 3))
        real = g.add("LessOrEqual", count_up(g, longest), ends_n111)
        lowest = g.scalar("lowest", -1e30, np.float32)
        return g.add("Softmax", g.add("Where", real, scores, lowest), axis=-1)

    def _mean_of_heads(self, g: GraphBuilder, weights_nH1S: str) -> str:
        """Return the mean of all heads, [n, S], added up in their order.

        ReduceMean adds in another order for one row than for several: that depends on the CPU.
        """
        heads = self._dimensions.heads
        if heads > 1:
            parts = g.add("Split", weights_nH1S, outputs=heads, axis=1, num_outputs=heads)
            share = g.scalar("share_of_a_head", 1 / heads, np.float32)
            weights_nH1S = g.add("Mul", g.add("Sum", *parts), share)
        return g.add("Squeeze", weights_nH1S, g.ints(1, 2))

    def _attend(
        self,
        g: GraphBuilder,
        kind: str,
        layer: int,
        query_key_value: tuple[str, str, str],
        ends_n: str,
        longest: str,
        *,
        want_weights: bool = False,
    ) -> list[str]:
        """Write attention over ragged caches, in place. Returns the result, and perhaps weights."""
        caches = [f"{kind}_key_{layer}", f"{kind}_value_{layer}"]
        outputs = g.add(
            "GroupQueryAttention",
            *query_key_value,
            *caches,
            ends_n,
            longest,
            outputs=4 if want_weights else 3,
            domain=MICROSOFT,
            num_heads=self._dimensions.heads,
            kv_num_heads=self._dimensions.heads,
            **({"qk_output": 2} if want_weights else {}),
        )
        for cache, present in zip(caches, outputs[1:3], strict=True):
            self._caches.add_output(g, present, cache, "n")
        return [self._from_grid(g, outputs[0]), *outputs[3:]]

    def _to_grid(self, g: GraphBuilder, x: str) -> str:
        """Return rows as sentences of one token, [n, 1, D], as attention wants them."""
        return g.add("Unsqueeze", x, g.ints(1)) if self._precision.flat else x

    def _from_grid(self, g: GraphBuilder, x: str) -> str:
        """Return rows, [n, 1, D], as products want them."""
        return g.add("Squeeze", x, g.ints(1)) if self._precision.flat else x

    def _to_list(self, g: GraphBuilder, x: str) -> str:
        """Return rows as a list of vectors, [n, D]."""
        return x if self._precision.flat else g.add("Squeeze", x, g.ints(1))
