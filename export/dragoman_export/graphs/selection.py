"""The end of a decoder step: from logits to the few numbers that leave the graph.

Shapes: n rows, V vocabulary, G groups of S tokens, k candidates, U columns,
C tokens of a shortlist.
"""

import math

import numpy as np

from dragoman_export.graphs.builder import GraphBuilder


def select(
    g: GraphBuilder,
    logits: str,
    adjust: tuple[str, str, str],
    given_n: str,
    k: str,
    *,
    vocabulary: int,
    group: int,
) -> None:
    """Adjust logits, normalise them, and pick the best tokens, so that all that leaves is small."""
    places, factors, offsets = adjust
    chosen = g.add("GatherElements", logits, places, axis=1)
    zero = g.scalar("zero", 0, np.float32)
    penalised = g.add(
        "Where",
        g.add("Greater", chosen, zero),
        g.add("Div", chosen, factors),
        g.add("Mul", chosen, factors),
    )
    # ScatterElements works in place, where ScatterND would copy all logits.
    adjusted = g.add("Add", penalised, offsets)
    logits = g.add("ScatterElements", logits, places, adjusted, axis=1)
    log_probs = g.add("LogSoftmax", logits, axis=-1)
    best, ids = _best(g, log_probs, k, vocabulary, group)
    given = g.add("GatherElements", log_probs, g.add("Unsqueeze", given_n, g.ints(1)), axis=1)
    g.output(log_probs, "log_probs", "float32", ["n", vocabulary])
    g.output(best, "top_log_probs", "float32", ["n", "k"])
    g.output(ids, "top_ids", "int64", ["n", "k"])
    g.output(g.add("Squeeze", given, g.ints(1)), "given_log_probs", "float32", ["n"])


def select_listed(g: GraphBuilder, logits_nU: str, lists: tuple[str, str, str], k: str) -> None:
    """Pick the best among the tokens of each row's shortlist, of which the first is the end token.

    All shortlists are filled up to one length, so that the sum of a row's probabilities does not
    depend on which other rows there are.
    """
    ids_nC, columns_nC, offsets_nC = lists
    listed = g.add("GatherElements", logits_nU, columns_nC, axis=1)
    log_probs = g.add("LogSoftmax", g.add("Add", listed, offsets_nC), axis=-1)
    best, places_nk = g.add("TopK", log_probs, k, outputs=2, axis=-1)
    ends_n1 = g.add("Gather", log_probs, g.ints(0), axis=1)
    g.output(best, "top_log_probs", "float32", ["n", "k"])
    g.output(g.add("GatherElements", ids_nC, places_nk, axis=1), "top_ids", "int64", ["n", "k"])
    g.output(g.add("Squeeze", ends_n1, g.ints(1)), "given_log_probs", "float32", ["n"])


def _best(
    g: GraphBuilder, log_probs_nV: str, k: str, vocabulary: int, size: int
) -> tuple[str, str]:
    """Return the k best tokens: they are among the k groups of tokens with the best maxima.

    Finding maxima is several times as fast as sorting, and what is left to sort is little.
    """
    if size == 1:
        best, ids = g.add("TopK", log_probs_nV, k, outputs=2, axis=-1)
        return best, ids
    groups_nGS = g.add("Reshape", log_probs_nV, g.ints(-1, vocabulary // size, size))
    maxima_nG = g.add("ReduceMax", groups_nGS, g.ints(-1), keepdims=0)
    fewer = g.add("Min", k, g.ints(vocabulary // size))
    _, group_nk = g.add("TopK", maxima_nG, fewer, outputs=2, axis=-1)
    # Groups in the order of the vocabulary, so that of equal tokens the first comes first.
    group_nk, _ = g.add("TopK", group_nk, fewer, outputs=2, axis=-1, largest=0)
    members_nkS = g.add(
        "GatherND", groups_nGS, g.add("Unsqueeze", group_nk, g.ints(-1)), batch_dims=1
    )
    members = g.add(
        "Reshape",
        members_nkS,
        g.add("Concat", g.add("Shape", group_nk, end=1), g.ints(-1), axis=0),
    )
    best, place_nk = g.add("TopK", members, k, outputs=2, axis=-1)
    width = g.scalar("group_size", size, np.int64)
    chosen_nk = g.add("GatherElements", group_nk, g.add("Div", place_nk, width), axis=1)
    first = g.add("Mul", chosen_nk, width)
    return best, g.add("Add", first, g.add("Mod", place_nk, width))


def group_size(vocabulary: int) -> int:
    """Return a divisor that makes groups neither too many nor too large; 1 if there is none."""
    divisors = [size for size in range(16, 513) if vocabulary % size == 0]
    return min(divisors, key=lambda size: abs(size - math.sqrt(vocabulary)), default=1)
