"""The graphs of a bundle, written from a model's weights.

The contract is ``dragoman_server.bundle.graph_io``: names, shapes and meaning of inputs, outputs.
No ``If`` or ``Loop``; caches are written in place and never concatenated.
"""

from collections.abc import Callable

import numpy as np

from dragoman_export.graphs.builder import MICROSOFT, GraphBuilder, WeightFile
from dragoman_export.graphs.precision import Int8, Precision, StoredInt8
from dragoman_export.graphs.selection import group_size, select, select_listed
from dragoman_export.graphs.weights import (
    DecoderLayerWeights,
    EmbeddingWeights,
    FeedForwardWeights,
    ModelWeights,
    NormWeights,
)
from dragoman_server.bundle.graph_io import cross_caches, self_caches, updated
from dragoman_server.bundle.manifest import Dimensions

Sublayer = Callable[[str], str]


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
        self._weights = weights
        self._dimensions = dimensions
        self._precision = precision
        self._file = file
        self._max_source = max_source
        self._max_target = max_target
        self._alignment_layer = alignment_layer
        self._element = precision.element.__name__

    def encoder(self) -> GraphBuilder:
        """Source ids to the cross-attention's keys and values of every decoder layer."""
        g = GraphBuilder("encoder", self._file)
        ids_BS = g.input("source_ids", "int64", ["sentences_", "positions"])
        lengths_B = g.input("source_lengths", "int32", ["sentences_"])
        sentences_W = g.input("sentences", "int64", ["filled"])
        rows_W = g.input("rows", "int64", ["filled"])
        shape = g.add("Shape", ids_BS)
        positions = g.add("Gather", shape, g.ints(1), axis=0)
        position_S = self._range(g, positions)
        flat_ids = g.add("Reshape", ids_BS, g.ints(-1))
        flat_positions = g.add("Reshape", g.add("Expand", position_S, shape), g.ints(-1))
        x = self._embed(g, flat_ids, flat_positions, self._weights.source)
        grid = g.add("Concat", shape, g.ints(self._dimensions.width), axis=0)
        if not self._precision.flat:
            x = g.add("Reshape", x, grid)
        x = self._layers(
            g, x, self._encoder_sublayers(g, grid, lengths_B), self._weights.encoder_norm
        )
        self._sum_sentences(g, x, shape, position_S, lengths_B)
        # Where the keys and values of each row go: (row, head, position), for all heads and
        # the positions of this batch.
        places = self._places(g, rows_W, positions)
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
                self._write(g, cache, "rows_", self._max_source, places, filled_WHSK)
        return g

    def decoder(self) -> GraphBuilder:
        """One step: the newest token of each row to the best next tokens."""
        g = GraphBuilder("decoder", self._file)
        adjust = (
            g.input("adjust_places", "int64", ["n", "adjusted"]),
            g.input("adjust_factors", "float32", ["n", "adjusted"]),
            g.input("adjust_offsets", "float32", ["n", "adjusted"]),
        )
        given_n = g.input("given_ids", "int64", ["n"])
        candidates = g.input("candidates", "int64", [1])
        x = self._decoder_layers(g)
        logits = self._to_list(g, self._precision.linear(g, x, self._weights.projection))
        if self._element != "float32":
            logits = g.add("Cast", logits, to=1)
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
        return g

    def listed_decoder(self) -> GraphBuilder:
        """The same step, where each row chooses among the tokens of its list."""
        assert isinstance(self._precision, Int8)
        g = GraphBuilder("listed_decoder", self._file)
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
        x = self._decoder_layers(g)
        logits = self._to_list(g, self._precision.product(g, x, weights.name, columns))
        select_listed(g, logits, lists, candidates)
        return g

    def columns(self) -> GraphBuilder:
        """What the output weights of some target tokens are."""
        assert isinstance(self._precision, Int8)
        g = GraphBuilder("columns", self._file)
        ids_m = g.input("ids", "int64", ["m"])
        stored = self._precision.stored(g, self._weights.projection)
        width = self._dimensions.width
        g.output(g.add("Gather", stored.matrix, ids_m, axis=1), "weights", "int8", [width, "m"])
        g.output(g.add("Gather", stored.steps, ids_m, axis=0), "steps", "float32", ["m"])
        if stored.bias:
            g.output(g.add("Gather", stored.bias, ids_m, axis=0), "biases", "float32", ["m"])
        return g

    def _decoder_layers(self, g: GraphBuilder) -> str:
        """From the newest tokens to the vectors that the output is computed of."""
        layers = self._dimensions.decoder_layers
        ids_n = g.input("token_ids", "int64", ["n"])
        past_n = g.input("past_lengths", "int32", ["n"])
        longest = g.input("longest", "int32", [1])
        source_ends_n = g.input("source_ends", "int32", ["n"])
        longest_source = g.input("longest_source", "int32", [1])
        for name in self_caches(layers):
            self._cache_input(g, name, "n", self._max_target)
        for name in cross_caches(layers):
            self._cache_input(g, name, "n", self._max_source)
        x = self._embed(g, ids_n, g.add("Cast", past_n, to=7), self._weights.target)
        x_n1D = g.add("Unsqueeze", x, g.ints(1))
        none = g.add("Slice", x_n1D, g.ints(0), g.ints(0), g.ints(1))
        x = x if self._precision.flat else x_n1D
        alignments: list[str] = []
        sublayers: list[tuple[NormWeights, Sublayer]] = []
        for layer, weights in enumerate(self._weights.decoder):
            sublayers += [
                (weights.self_norm, self._self_attention(g, layer, weights, past_n, longest)),
                (
                    weights.cross_norm,
                    self._cross_attention(
                        g, layer, weights, none, source_ends_n, longest_source, alignments
                    ),
                ),
                (weights.feed_forward_norm, self._feed_forward(g, weights.feed_forward)),
            ]
        x = self._layers(g, x, sublayers, self._weights.decoder_norm)
        summed = x if self._element == "float32" else g.add("Cast", x, to=1)
        sums = g.add("ReduceSum", self._to_list(g, summed), g.ints(-1), keepdims=0)
        g.output(sums, "row_sums", "float32", ["n"])
        g.output(alignments[0], "alignment", "float32", ["n", "source_positions"])
        return x

    def move(self) -> GraphBuilder:
        """Copy the beginnings of cache lines from rows to rows."""
        g = GraphBuilder("move", self._file)
        layers = self._dimensions.decoder_layers
        sources_m = g.input("sources", "int64", ["m"])
        destinations_m = g.input("destinations", "int64", ["m"])
        for length, names, capacity in (
            ("self_length", self_caches(layers), self._max_target),
            ("cross_length", cross_caches(layers), self._max_source),
        ):
            positions = g.input(length, "int64", [1])
            read = self._places(g, sources_m, positions)
            write = self._places(g, destinations_m, positions)
            for name in names:
                self._cache_input(g, name, "rows_", capacity)
                lines = g.add("GatherND", name, read)
                self._scatter(g, name, "rows_", capacity, write, lines)
        return g

    def _encoder_sublayers(
        self, g: GraphBuilder, grid: str, lengths_B: str
    ) -> list[tuple[NormWeights, Sublayer]]:
        sublayers: list[tuple[NormWeights, Sublayer]] = []
        for weights in self._weights.encoder:

            def attention(x: str, weights=weights) -> str:  # type: ignore[no-untyped-def]
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

            sublayers += [
                (weights.attention_norm, attention),
                (weights.feed_forward_norm, self._feed_forward(g, weights.feed_forward)),
            ]
        return sublayers

    def _self_attention(
        self, g: GraphBuilder, layer: int, weights: DecoderLayerWeights, past_n: str, longest: str
    ) -> Sublayer:
        def attention(x: str) -> str:
            packed = self._to_grid(g, self._precision.linear(g, x, weights.query_key_value))
            attended = self._attend(
                g, "self", layer, self._max_target, (packed, "", ""), past_n, longest
            )
            return self._precision.linear(g, attended[0], weights.self_output)

        return attention

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
        """The same op as self-attention: no new keys, and the source's as those of the past."""

        def attention(x: str) -> str:
            q = self._to_grid(g, self._precision.linear(g, x, layer_weights.query))
            aligned = layer == self._alignment_layer
            attended, *weights_nH1S = self._attend(
                g,
                "cross",
                layer,
                self._max_source,
                (q, none, none),
                source_ends_n,
                longest_source,
                want_weights=aligned and self._element == "float32",
            )
            if aligned:
                weights = weights_nH1S or [
                    self._attention_weights(g, layer, q, source_ends_n, longest_source)
                ]
                alignments.append(g.add("ReduceMean", weights[0], g.ints(1, 2), keepdims=0))
            return self._precision.linear(g, attended, layer_weights.cross_output)

        return attention

    def _attention_weights(
        self, g: GraphBuilder, layer: int, q: str, source_ends_n: str, longest_source: str
    ) -> str:
        """softmax(q Kᵀ) by itself: on CUDA the attention op does not give its weights away."""
        heads, width = self._dimensions.heads, self._dimensions.head_width
        q_nH1K = g.add("Reshape", q, g.ints(-1, heads, 1, width))
        longest = g.add("Cast", longest_source, to=7)
        key_nHSK = g.add("Slice", f"cross_key_{layer}", g.ints(0), longest, g.ints(2))
        key_nHKS = g.add("Transpose", key_nHSK, perm=[0, 1, 3, 2])
        products = g.add("Cast", g.add("MatMul", q_nH1K, key_nHKS), to=1)
        scores = g.add("Mul", products, g.scalar("by_head_width", width**-0.5, np.float32))
        ends_n111 = g.add("Unsqueeze", g.add("Cast", source_ends_n, to=7), g.ints(1, 2, 3))
        real = g.add("LessOrEqual", self._range(g, longest), ends_n111)
        lowest = g.scalar("lowest", -1e30, np.float32)
        return g.add("Softmax", g.add("Where", real, scores, lowest), axis=-1)

    def _attend(
        self,
        g: GraphBuilder,
        kind: str,
        layer: int,
        capacity: int,
        query_key_value: tuple[str, str, str],
        ends_n: str,
        longest: str,
        *,
        want_weights: bool = False,
    ) -> list[str]:
        """Attention over ragged caches, in place. The result as a list, and perhaps its weights."""
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
            g.output(present, updated(cache), self._element, self._cache_shape("n", capacity))
        attended = g.add("Squeeze", outputs[0], g.ints(1)) if self._precision.flat else outputs[0]
        return [attended, *outputs[3:]]

    def _to_grid(self, g: GraphBuilder, x: str) -> str:
        """Rows as sentences of one token, as attention wants them: [n, 1, D]."""
        return g.add("Unsqueeze", x, g.ints(1)) if self._precision.flat else x

    def _to_list(self, g: GraphBuilder, x: str) -> str:
        """[n, D]."""
        return x if self._precision.flat else g.add("Squeeze", x, g.ints(1))

    def _sum_sentences(
        self, g: GraphBuilder, x: str, shape: str, position_S: str, lengths_B: str
    ) -> None:
        """Of each sentence's real tokens: shows what int8 products would hide."""
        x = x if self._element == "float32" else g.add("Cast", x, to=1)
        sums = g.add("ReduceSum", x, g.ints(-1), keepdims=0)
        lengths_B1 = g.add("Unsqueeze", g.add("Cast", lengths_B, to=7), g.ints(1))
        real_BS = g.add("Less", position_S, lengths_B1)
        zero = g.scalar("zero", 0, np.float32)
        sums_BS = g.add("Where", real_BS, g.add("Reshape", sums, shape), zero)
        sums_B = g.add("ReduceSum", sums_BS, g.ints(1), keepdims=0)
        g.output(sums_B, "sentence_sums", "float32", ["sentences_"])

    def _feed_forward(self, g: GraphBuilder, weights: FeedForwardWeights) -> Sublayer:
        def network(x: str) -> str:
            wide = self._precision.linear(g, x, weights.widen)
            if self._weights.activation == "relu":
                return self._precision.linear(g, wide, weights.narrow, rectified=True)
            return self._precision.linear(g, self._activate(g, wide), weights.narrow)

        return network

    def _activate(self, g: GraphBuilder, x: str) -> str:
        if self._weights.activation == "gelu":
            return g.add("Gelu", x)
        return g.add("QuickGelu", x, domain=MICROSOFT, alpha=1.0)

    def _layers(
        self,
        g: GraphBuilder,
        x: str,
        sublayers: list[tuple[NormWeights, Sublayer]],
        final_norm: NormWeights | None,
    ) -> str:
        """Sublayers with their residuals and norms."""
        if not self._weights.norm_first:
            for norm, sublayer in sublayers:
                x, _ = self._add_and_norm(g, sublayer(x), x, norm)
            return x
        assert final_norm is not None
        norms = [norm for norm, _ in sublayers] + [final_norm]
        residual = x
        x = self._norm(g, residual, norms[0])
        for (_, sublayer), norm in zip(sublayers, norms[1:], strict=True):
            x, residual = self._add_and_norm(g, sublayer(x), residual, norm)
        return x

    def _add_and_norm(
        self, g: GraphBuilder, x: str, residual: str, norm: NormWeights
    ) -> tuple[str, str]:
        """LayerNorm(x + residual), and the sum itself.

        Not the fused SkipLayerNormalization: on the CPU that is several times slower.
        """
        total = g.add("Add", x, residual)
        return self._norm(g, total, norm), total

    def _norm(self, g: GraphBuilder, x: str, norm: NormWeights) -> str:
        return g.add(
            "LayerNormalization", x, *self._norm_constants(g, norm), axis=-1, epsilon=norm.epsilon
        )

    def _norm_constants(self, g: GraphBuilder, norm: NormWeights) -> tuple[str, str]:
        return (
            g.constant(f"{norm.name}.gamma", norm.gamma.astype(self._precision.element)),
            g.constant(f"{norm.name}.beta", norm.beta.astype(self._precision.element)),
        )

    def _embed(self, g: GraphBuilder, ids: str, positions: str, weights: EmbeddingWeights) -> str:
        table = g.constant(
            f"{weights.name}.positions", weights.positions.astype(self._precision.element)
        )
        return g.add(
            "Add",
            self._precision.lookup(g, ids, weights),
            g.add("Gather", table, positions, axis=0),
        )

    def _cache_shape(self, rows: str, capacity: int) -> list[int | str]:
        return [rows, self._dimensions.heads, capacity, self._dimensions.head_width]

    def _cache_input(self, g: GraphBuilder, name: str, rows: str, capacity: int) -> None:
        g.input(name, self._element, self._cache_shape(rows, capacity))

    def _write(
        self, g: GraphBuilder, cache: str, rows: str, capacity: int, places: str, lines: str
    ) -> None:
        self._cache_input(g, cache, rows, capacity)
        self._scatter(g, cache, rows, capacity, places, lines)

    def _scatter(
        self, g: GraphBuilder, cache: str, rows: str, capacity: int, places: str, lines: str
    ) -> None:
        written = g.add("ScatterND", cache, places, lines)
        g.output(written, updated(cache), self._element, self._cache_shape(rows, capacity))

    def _range(self, g: GraphBuilder, count_1: str) -> str:
        zero, one = (
            g.scalar(name, value, np.int64) for name, value in (("from_0", 0), ("by_1", 1))
        )
        return g.add("Range", zero, g.add("Squeeze", count_1, g.ints(0)), one)

    def _places(self, g: GraphBuilder, rows_m: str, count_1: str) -> str:
        """(row, head, position) of every line piece: shape [m, H, positions, 3]."""
        heads = g.constant("heads", np.arange(self._dimensions.heads, dtype=np.int64))
        axes = (
            g.add("Unsqueeze", rows_m, g.ints(1, 2)),
            g.add("Unsqueeze", heads, g.ints(0, 2)),
            g.add("Unsqueeze", self._range(g, count_1), g.ints(0, 1)),
        )
        shape = g.add(
            "Concat",
            g.add("Shape", rows_m),
            g.ints(self._dimensions.heads),
            count_1,
            axis=0,
        )
        parts = [g.add("Unsqueeze", g.add("Expand", a, shape), g.ints(3)) for a in axes]
        return g.add("Concat", *parts, axis=3)
