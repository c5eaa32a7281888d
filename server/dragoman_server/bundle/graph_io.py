"""Names of the inputs and outputs of a bundle's graphs: the contract of export and server.

Shapes: R rows of the caches, n active rows (always the first n), W rows to fill, B sentences,
S source positions, C capacity of a cache, H heads, K width of a head, V vocabulary, k candidates,
A adjusted logits, D width of the model, U columns, L tokens of a shortlist, m rows to move.

encoder.onnx
    source_ids        [B, S]  int64   padded with anything
    source_lengths    [B]     int32   end token included
    sentences         [W]     int64   which sentence each row to fill is of
    rows              [W]     int64   the rows to fill
    cross caches, in and out          [R, H, C, K]
    sentence_sums     [B]     float   sum of the last vectors: not finite where one is poisoned

decoder.onnx, one step of n rows
    token_ids         [n]     int64   the newest token of each row
    past_lengths      [n]     int32   tokens in its cache, so the position of this one
    longest           [1]     int32   the largest of them + 1 (on the host)
    source_ends       [n]     int32   its source length - 1
    longest_source    [1]     int32   the largest source length (on the host)
    adjust_places     [n, A]  int64   tokens whose logits to adjust; one that is named twice in a
                                      row must be adjusted alike
    adjust_factors    [n, A]  float   positive logits are divided by it, negative multiplied
    adjust_offsets    [n, A]  float   then added; -inf bans the token
    given_ids         [n]     int64   tokens whose log-probability is wanted
    candidates        [1]     int64   k
    self and cross caches, in and out [n, H, C, K]
    or cell states, in and out        [n, 1, D]  float32, where the decoder has cells and no self
                                      caches; what a state holds does not count at position 0
    log_probs         [n, V]  float   of every token, after adjustment
    top_log_probs     [n, k]  float   the best, in order
    top_ids           [n, k]  int64
    given_log_probs   [n]     float
    row_sums          [n]     float   sum of the last vector: not finite where a row is poisoned
    alignment         [n, S]  float   cross-attention of one layer, mean of its heads; what stands
                                      behind the end of a row's source means nothing

listed.onnx, the same step where rows choose among the tokens of their shortlists; given_log_probs
is that of the end token, and there are no given_ids, adjustments or log_probs
    column_weights    [D, U]  int8    the output weights of tokens, side by side in any order
    column_steps      [U]     float   the quantization scale of each column
    column_biases     [U]     float   where the model has any
    list_ids          [n, L]  int64   the tokens of each row's shortlist, the end token first
    list_columns      [n, L]  int64   the column of each of these tokens
    list_offsets      [n, L]  float   added to their logits; -inf bans a token, and fills a line up

columns.onnx
    ids               [m]     int64   target tokens
    weights, steps, biases            of these, as listed.onnx takes them

move.onnx
    sources, destinations   [m]  int64   rows; no destination may be a source
    self_length, cross_length [1] int64  how much of each line is copied
    self and cross caches, in and out [R, H, C, K]
    or cell states, in and out        [R, 1, D]  copied whole
"""

from math import prod
from typing import NamedTuple

ATTENTION, SSRU = DECODERS = ("attention", "ssru")
"""What a decoder layer looks back with: self-attention, or a cell that has a state."""
ENCODER, DECODER, MOVE = "encoder.onnx", "decoder.onnx", "move.onnx"
GRAPHS = (ENCODER, DECODER, MOVE)
LISTED_DECODER, OUTPUT_COLUMNS = "listed.onnx", "columns.onnx"
SHORTLIST_GRAPHS = (LISTED_DECODER, OUTPUT_COLUMNS)
"""Graphs that a bundle with a shortlist has besides."""


def self_caches(layers: int) -> list[str]:
    """Return the names of the caches of the decoder's own keys and values."""
    return [f"self_{part}_{layer}" for layer in range(layers) for part in ("key", "value")]


def cross_caches(layers: int) -> list[str]:
    """Return the names of the caches of the source's keys and values."""
    return [f"cross_{part}_{layer}" for layer in range(layers) for part in ("key", "value")]


def cell_states(layers: int) -> list[str]:
    """Return the names of the caches of cells, which hold one vector of a row each."""
    return [f"cell_state_{layer}" for layer in range(layers)]


class RowCache(NamedTuple):
    """What one row has in a cache."""

    shape: tuple[int, ...]
    """Shape of the row's part, without the dimension of rows."""
    element: str
    """Type of its numbers: ``float32`` or ``float16``."""

    @property
    def bytes(self) -> int:
        """Memory that the row takes in the cache, in bytes."""
        return prod(self.shape) * (2 if self.element == "float16" else 4)


def row_caches(
    *,
    decoder: str,
    layers: int,
    heads: int,
    head_width: int,
    max_source: int,
    max_target: int,
    element: str,
) -> dict[str, RowCache]:
    """Return what a row has in each cache, by the cache's name, in the order of the graphs."""
    cross = RowCache((heads, max_source, head_width), element)
    caches = dict.fromkeys(cross_caches(layers), cross)
    if decoder == SSRU:
        # A state that is mostly kept would lose in float16 what each token adds.
        state = RowCache((1, heads * head_width), "float32")
        return {**dict.fromkeys(cell_states(layers), state), **caches}
    own = RowCache((heads, max_target, head_width), element)
    return {**dict.fromkeys(self_caches(layers), own), **caches}


def updated(cache: str) -> str:
    """Return the name of the output that holds a cache after a call.

    It is bound to the same memory as the input.
    """
    return f"{cache}_out"
