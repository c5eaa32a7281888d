"""Drawing tokens. A draw depends on the row's own distribution, seed and position, on nothing else.

Shapes: r rows, k candidates, V vocabulary.
"""

import numpy as np
import numpy.typing as npt

from dragoman_server.engine.core import Sampling
from dragoman_server.runtime.results import CANDIDATES

LISTED = CANDIDATES
"""Up to this top-k, the step's own list of best tokens is enough."""

Floats = npt.NDArray[np.float64]


def is_listed(sampling: Sampling) -> bool:
    """Decided by the row's own options alone, so that a draw never depends on other rows."""
    return 0 < sampling.top_k <= LISTED


def uniform(seeds: npt.NDArray[np.uint64], positions: npt.NDArray[np.int64]) -> Floats:
    """A number from 0 to 1, 1 excluded, for each seed and position: SplitMix64 of both."""
    x = _mix(_mix(seeds) + positions.astype(np.uint64))
    result: Floats = (x >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return result


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draw_listed(
    log_probs_rk: npt.NDArray[np.float32], samplings: list[Sampling], uniform_r: Floats
) -> npt.NDArray[np.int64]:
    """The place drawn in each row's list, which is sorted, best first."""
    wide = np.full((len(log_probs_rk), LISTED), -np.inf)  # the same width for every batch
    width = min(LISTED, log_probs_rk.shape[1])
    wide[:, :width] = log_probs_rk[:, :width]
    top_k = np.array([s.top_k for s in samplings])
    temperature = np.array([s.temperature for s in samplings])
    top_p = np.array([s.top_p for s in samplings])
    wide[np.arange(LISTED) >= top_k[:, None]] = -np.inf
    return _draw_sorted(wide, temperature, top_p, uniform_r)


def draw_any(log_probs_V: npt.NDArray[np.float32], sampling: Sampling, uniform: float) -> int:
    """A token of the whole vocabulary."""
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
    log_probs_rk: Floats, temperature_r: Floats, top_p_r: Floats, uniform_r: Floats
) -> npt.NDArray[np.int64]:
    """Places in rows that are sorted, best first; -inf is never drawn."""
    weights_rk = np.exp((log_probs_rk - log_probs_rk[:, :1]) / temperature_r[:, None])
    sums_rk = weights_rk.cumsum(axis=1)
    # A token is in the nucleus when those before it do not reach top_p yet.
    before_rk = (sums_rk - weights_rk) / sums_rk[:, -1:]
    weights_rk[before_rk >= top_p_r[:, None]] = 0.0
    sums_rk = weights_rk.cumsum(axis=1)
    drawn_r1 = (uniform_r * sums_rk[:, -1])[:, None]
    places: npt.NDArray[np.int64] = (sums_rk <= drawn_r1).sum(axis=1)
    return places
