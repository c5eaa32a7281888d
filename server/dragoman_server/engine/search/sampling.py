"""Drawing tokens. A draw depends on the row's own distribution, seed and position, on nothing else.

Shapes: r rows, k candidates, V vocabulary.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from dragoman_server.engine.core import Sampling
from dragoman_server.engine.jobs import Selection
from dragoman_server.engine.rows import Rows, Running
from dragoman_server.runtime.arrays import Bools, Floats, Ints
from dragoman_server.runtime.limits import MAX_CANDIDATES
from dragoman_server.runtime.results import StepResult

Doubles = npt.NDArray[np.float64]


def draw(
    rows: Rows,
    running: Iterable[Running],
    result: StepResult,
    is_free: Bools,
    all_log_probs: Callable[[], Floats],
    token: Ints,
    log_prob: Floats,
) -> None:
    """Write what is drawn over the best token of each row that samples and is free to choose.

    ``all_log_probs`` gives the log-probabilities of the whole vocabulary, where a draw needs them.
    """
    among_candidates: list[Running] = []
    among_all: list[Running] = []
    for each in running:
        selection = each.job.decoding.selection
        if selection is Selection.SAMPLE_CANDIDATES and is_free[each.rows[0]]:
            among_candidates.append(each)
        elif selection is Selection.SAMPLE_VOCABULARY and is_free[each.rows[0]]:
            among_all.append(each)
    drawn = [*among_candidates, *among_all]
    if not drawn:
        return
    at_r = np.array([each.rows[0] for each in drawn])
    seeds_r = np.array([each.job.seed for each in drawn], np.uint64)
    uniform_r = uniform(seeds_r, rows.past[at_r])
    split = len(among_candidates)
    if among_candidates:
        at = at_r[:split]
        places = draw_from_candidates(
            result.top_log_probs[at], [_sampling(each) for each in among_candidates], uniform_r
        )
        token[at] = result.top_ids[at, places]
        log_prob[at] = result.top_log_probs[at, places]
    if among_all:
        log_probs_rV = all_log_probs()
        for each, number in zip(among_all, uniform_r[split:].tolist(), strict=True):
            row = each.rows[0]
            token[row] = draw_from_vocabulary(log_probs_rV[row], _sampling(each), number)
            log_prob[row] = log_probs_rV[row, token[row]]


def _sampling(running: Running) -> Sampling:
    sampling = running.job.options.sampling
    assert sampling is not None
    return sampling


def uniform(seeds: npt.NDArray[np.uint64], positions: Ints) -> Doubles:
    """Return a number from 0 to 1, 1 excluded, for each seed and position: SplitMix64 of both."""
    x = _mix(_mix(seeds) + positions.astype(np.uint64))
    result: Doubles = (x >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return result


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draw_from_candidates(
    log_probs_rk: Floats, samplings: list[Sampling], uniform_r: Doubles
) -> Ints:
    """Return the place drawn among each row's candidates, which are sorted, best first."""
    rows, width = len(samplings), min(MAX_CANDIDATES, log_probs_rk.shape[1])
    wide_rk = np.full((rows, MAX_CANDIDATES), -np.inf)  # the same width for every batch
    wide_rk[:, :width] = log_probs_rk[:, :width]
    top_k_r = np.array([s.top_k for s in samplings])
    temperature_r = np.array([s.temperature for s in samplings])
    top_p_r = np.array([s.top_p for s in samplings])
    wide_rk[np.arange(MAX_CANDIDATES) >= top_k_r[:, None]] = -np.inf
    return _draw_sorted(wide_rk, temperature_r, top_p_r, uniform_r[:rows])


def draw_from_vocabulary(log_probs_V: Floats, sampling: Sampling, uniform: float) -> int:
    """Return a token of the whole vocabulary."""
    if sampling.top_k == 0 and sampling.top_p == 1.0:
        centred_V = log_probs_V.astype(np.float64) - log_probs_V.max()
        weights_V = np.exp(centred_V / sampling.temperature)
        sums_V = weights_V.cumsum()
        return int(np.searchsorted(sums_V, uniform * sums_V[-1], side="right"))
    order_V = np.argsort(-log_probs_V, kind="stable")
    if sampling.top_k:
        order_V = order_V[: sampling.top_k]
    place = _draw_sorted(
        log_probs_V[order_V].astype(np.float64)[None],
        np.array([sampling.temperature]),
        np.array([sampling.top_p]),
        np.array([uniform]),
    )
    return int(order_V[place[0]])


def _draw_sorted(
    log_probs_rk: Doubles, temperature_r: Doubles, top_p_r: Doubles, uniform_r: Doubles
) -> Ints:
    """Return a place of each row, which is sorted, best first; -inf is never drawn."""
    weights_rk = np.exp((log_probs_rk - log_probs_rk[:, :1]) / temperature_r[:, None])
    sums_rk = weights_rk.cumsum(axis=1)
    # A token is in the nucleus when those before it do not reach top_p yet.
    before_rk = (sums_rk - weights_rk) / sums_rk[:, -1:]
    weights_rk[before_rk >= top_p_r[:, None]] = 0.0
    sums_rk = weights_rk.cumsum(axis=1)
    drawn_r1 = (uniform_r * sums_rk[:, -1])[:, None]
    places: Ints = (sums_rk <= drawn_r1).sum(axis=1)
    return places
