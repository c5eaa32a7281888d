"""Search over a bundle's graphs, plainly: what a faster engine must equal.

The definitions are those of ``dragoman_training.translate.search``. It replays a bundle's golden
decodings and serves as the reference of tests; nothing here is made for speed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman_server.runtime.arrays import Ints
from dragoman_server.runtime.graphs import Graphs
from dragoman_server.runtime.results import StepResult
from dragoman_server.runtime.scoring import (
    can_stop,
    candidates_of,
    ending_candidates,
    length_score,
)

Hypotheses = dict[int, tuple[tuple[int, ...], tuple[float, ...]]]
"""The live hypotheses of a beam by their row: token ids, and the log-probability of each."""


@dataclass(frozen=True)
class Decoded:
    ids: tuple[int, ...]
    """Tokens of the translation, without begin and end."""
    log_prob: float
    """Log-probability of the translation, the end token included."""
    score: float
    """``log_prob`` divided by length^alpha."""
    token_log_probs: tuple[float, ...] = ()
    """Log-probability of each token, the end token last."""
    margin: float = math.inf
    """Smallest lead of a chosen token over the next best, over all steps."""


def greedy(
    graphs: Graphs,
    sources: Sequence[Sequence[int]],
    limits: Sequence[int],
    alpha: float = 1.0,
    start: Sequence[int] = (),
) -> list[Decoded]:
    """Translate as many sentences as there are rows, or fewer, in one batch.

    ``start`` follows the begin token and is no part of the translation: it costs nothing, and no
    length or limit counts it.
    """
    special = graphs.manifest.special_ids
    lengths = encode(graphs, sources)
    count = len(sources)
    tokens = np.full(count, _prompt(graphs, lengths, start), np.int64)
    ids: list[list[int]] = [[] for _ in sources]
    log_probs: list[list[float]] = [[] for _ in sources]
    margins = [math.inf] * count
    going = set(range(count))
    for step in range(max(limits)):
        given = np.full(count, special.end, np.int64)
        past = np.full(count, len(start) + step)
        result = graphs.step(tokens, past, lengths, candidates=2, given_ids=given)
        for row in sorted(going):
            best, second = result.top_log_probs[row].tolist()
            token, log_prob = int(result.top_ids[row, 0]), best
            if step + 1 >= limits[row]:
                token, log_prob = special.end, float(result.given_log_probs[row])
            else:
                lead = best - second
                margins[row] = min(margins[row], -math.inf if math.isnan(lead) else lead)
            log_probs[row].append(log_prob)
            if token == special.end:
                going.discard(row)
            else:
                ids[row].append(token)
            tokens[row] = token
        if not going:
            break
    return [_decoded(ids[row], log_probs[row], alpha, margins[row]) for row in range(count)]


def beam(
    graphs: Graphs,
    source: Sequence[int],
    limit: int,
    size: int,
    alpha: float = 1.0,
    n_best: int = 1,
    start: Sequence[int] = (),
) -> list[Decoded]:
    """Translate one sentence with a beam; row i of the caches is a hypothesis."""
    special = graphs.manifest.special_ids
    lengths = encode(graphs, [source], copies=size)
    first = _prompt(graphs, lengths[:1], start)
    ending = ending_candidates(size, ends_in_beam=graphs.manifest.ends_in_beam)
    live: Hypotheses = {0: ((), ())}
    finished: list[Decoded] = []
    for step in range(limit):
        rows = max(live) + 1
        tokens = np.full(rows, first, np.int64)
        for row, (ids, _) in live.items():
            tokens[row] = ids[-1] if ids else first
        result = graphs.step(
            tokens,
            np.full(rows, len(start) + step),
            lengths[:rows],
            candidates=min(candidates_of(size), graphs.manifest.dimensions.target_vocabulary),
            given_ids=np.full(rows, special.end, np.int64),
        )
        continuations = _continuations(result, live, special.end if step + 1 == limit else None)
        children: list[tuple[int, tuple[int, ...], tuple[float, ...]]] = []
        for rank, (parent, token, log_prob) in enumerate(continuations[: candidates_of(size)]):
            ids, past = live[parent]
            if token == special.end:
                if rank < ending:
                    finished.append(_decoded(list(ids), [*past, log_prob], alpha))
            elif len(children) < size:
                children.append((parent, (*ids, token), (*past, log_prob)))
        live = _place(graphs, children, len(start) + step + 1)
        finished.sort(key=lambda d: -d.score)
        if not live or _is_done(finished, live, limit, alpha, n_best):
            break
    return finished[:n_best]


def encode(graphs: Graphs, sources: Sequence[Sequence[int]], copies: int = 1) -> Ints:
    """Read each sentence into ``copies`` rows, from the first on. Returns their source lengths."""
    end, pad = graphs.manifest.source_end, graphs.manifest.special_ids.pad
    lengths = np.array([len(source) + len(end) for source in sources])
    ids = np.full((len(sources), int(lengths.max())), pad, np.int64)
    for line, source in zip(ids, sources, strict=True):
        line[: len(source) + len(end)] = [*source, *end]
    sentences = np.arange(len(sources)).repeat(copies)
    graphs.encode(ids, lengths, sentences, np.arange(len(sentences)))
    return lengths[sentences]


def _prompt(graphs: Graphs, lengths: Ints, start: Sequence[int]) -> int:
    """Read the tokens that every row begins with into its cache. Returns the last, not read yet."""
    *before, last = (graphs.manifest.special_ids.begin, *start)
    rows = len(lengths)
    for past, token in enumerate(before):
        graphs.step(np.full(rows, token), np.full(rows, past), lengths, candidates=1)
    return last


def _continuations(
    result: StepResult,
    live: Hypotheses,
    forced: int | None,
) -> list[tuple[int, int, float]]:
    """Return (row, token, log-probability) of all continuations, best total first."""
    found: list[tuple[float, int, int, float]] = []
    for row, (_, past) in live.items():
        total = math.fsum(past)
        if forced is not None:
            log_prob = float(result.given_log_probs[row])
            found.append((total + log_prob, row, forced, log_prob))
            continue
        for token, log_prob in zip(
            result.top_ids[row].tolist(), result.top_log_probs[row].tolist(), strict=True
        ):
            found.append((total + log_prob, row, token, log_prob))
    found.sort(key=lambda f: -f[0])
    return [(row, token, log_prob) for _, row, token, log_prob in found]


def _place(
    graphs: Graphs, children: list[tuple[int, tuple[int, ...], tuple[float, ...]]], length: int
) -> Hypotheses:
    """Give each child a row: the first of a parent stays, others get rows whose parent died.

    So no row is read and written in the same move.
    """
    parents = {parent for parent, _, _ in children}
    free = [row for row in range(len(children) + len(parents)) if row not in parents]
    placed: Hypotheses = {}
    moves: list[tuple[int, int]] = []
    for parent, ids, log_probs in children:
        row = parent
        if parent in placed:
            row = free.pop(0)
            moves.append((parent, row))
        placed[row] = (ids, log_probs)
    if moves:
        sources, destinations = zip(*moves, strict=True)
        graphs.move(sources, destinations, self_length=length, cross_length=0)
    return placed


def _is_done(
    finished: list[Decoded],
    live: Hypotheses,
    limit: int,
    alpha: float,
    wanted: int,
) -> bool:
    """Return whether enough are finished, and no live hypothesis can beat the worst of them."""
    if len(finished) < wanted:
        return False
    best_live = max(math.fsum(log_probs) for _, log_probs in live.values())
    return can_stop(finished[wanted - 1].score, best_live, limit, alpha)


def _decoded(
    ids: list[int], log_probs: list[float], alpha: float, margin: float = math.inf
) -> Decoded:
    total = math.fsum(log_probs)
    score = length_score(total, len(log_probs), alpha)
    return Decoded(tuple(ids), total, score, tuple(log_probs), margin)
