"""One step of beam search for many sentences at once, as ``dragoman_training.search`` defines it.

Shapes: s sentences of the same beam, b hypotheses of each, k = 2b candidates.
"""

from collections.abc import Callable
from functools import cache
from itertools import compress

import numpy as np
import numpy.typing as npt

from dragoman_server.engine.core import Finish, Hypothesis
from dragoman_server.engine.rows import Rows, Running
from dragoman_server.runtime.results import StepResult

Ints = npt.NDArray[np.int64]
Move = Callable[[Ints, Ints, int], None]
"""Copies caches from rows to other rows, up to a length."""


def score(log_prob: float, length: int, alpha: float) -> float:
    """The length counts the end token."""
    return log_prob / float(length**alpha)


def hypothesis(
    rows: Rows, running: Running, row: int, log_prob: float, finish: Finish
) -> Hypothesis:
    """The hypothesis of a row, ended now by a token of this log-probability."""
    start, past = int(rows.start[row]), int(rows.past[row])
    total = float(rows.total[row]) + log_prob
    alignment = None
    if running.job.options.alignment:
        alignment = rows.alignment[row, start : past + 1, : rows.source_length[row]].copy()
    return Hypothesis(
        ids=tuple(rows.ids[row, start:past].tolist()),
        log_prob=total,
        score=score(total, past + 1 - start, running.job.options.length_penalty),
        finish=finish,
        token_log_probs=(*rows.log_probs[row, start:past].tolist(), log_prob),
        alignment=alignment,
    )


def keep(running: Running, found: Hypothesis) -> None:
    """Add a finished hypothesis, if it is among the best that are wanted."""
    running.finished.append(found)
    running.finished.sort(key=lambda h: -h.score)  # stable: the earlier of equals stays ahead
    del running.finished[running.job.options.n_best :]


def finish_at_limit(rows: Rows, running: Running, result: StepResult, end: int) -> None:
    """The last position: every live hypothesis ends here."""
    for row in running.rows:
        if rows.total[row] > -np.inf:
            by_itself = result.top_ids[row, 0] == end
            found = hypothesis(
                rows,
                running,
                row,
                float(result.given_log_probs[row]),
                Finish.END if by_itself else Finish.LENGTH,
            )
            keep(running, found)


def advance(
    rows: Rows,
    group: list[Running],
    result: StepResult,
    end: int,
    move: Move,
    *,
    ends_in_beam: bool = False,
) -> list[Running]:
    """Continue sentences of the same beam by one token. Returns those that are finished.

    With ``ends_in_beam``, an end beyond the best b continuations is no end of a hypothesis.
    """
    sentences, beam = len(group), group[0].job.options.beam
    k = 2 * beam
    rows_sb = np.array([running.rows for running in group])
    log_probs_sbk = result.top_log_probs[rows_sb, :k]
    totals_sbk = rows.total[rows_sb][:, :, None] + log_probs_sbk
    order_sk = (-totals_sbk).reshape(sentences, -1).argsort(axis=1, kind="stable")[:, :k]
    at_sk = order_sk + _firsts(sentences, beam * k)
    slot_sk = order_sk // k
    total_sk = totals_sbk.take(at_sk)
    token_sk = result.top_ids[rows_sb, :k].take(at_sk)
    log_prob_sk = log_probs_sbk.take(at_sk)

    best_sb = np.arange(beam) + _firsts(sentences, k)
    is_end_sk = token_sk == end
    if np.logical_or.reduce(is_end_sk, axis=None):
        is_found_sk = is_end_sk & (total_sk > -np.inf)
        if ends_in_beam:
            is_found_sk[:, beam:] = False
        for s, place in np.argwhere(is_found_sk).tolist():
            row = int(rows_sb[s, slot_sk[s, place]])
            log_prob = float(log_prob_sk[s, place])
            keep(group[s], hypothesis(rows, group[s], row, log_prob, Finish.END))
        # Of each sentence, the best continuations that go on; at most b of the 2b end.
        goes_on_sk = ~is_end_sk
        goes_on_sk &= goes_on_sk.cumsum(axis=1) <= beam
        best_sb = np.flatnonzero(goes_on_sk).reshape(sentences, beam)

    of_all = (slot_sk, token_sk, total_sk, log_prob_sk)
    parent_sb, token_sb, total_sb, log_prob_sb = (of_each.take(best_sb) for of_each in of_all)
    children = (rows_sb, parent_sb, token_sb, total_sb, log_prob_sb)
    bests = total_sb[:, 0].tolist()
    is_done = [_is_done(running, best) for running, best in zip(group, bests, strict=True)]
    if not any(is_done):
        _place(rows, group, move, *children)
        return []
    goes_on = [not done for done in is_done]
    if any(goes_on):
        live = list(compress(group, goes_on))
        _place(rows, live, move, *(of_each[goes_on] for of_each in children))
    return list(compress(group, is_done))


def _firsts(lines: int, width: int) -> Ints:
    """Of lines of a width that lie one after the other, where each begins."""
    return np.arange(0, lines * width, width)[:, None]


def _is_done(running: Running, best_live: float) -> bool:
    """Enough are finished, and no live one can beat the worst of them.

    A live hypothesis can't do better than to reach the limit at no further cost.
    """
    if best_live == -np.inf:
        return True
    job = running.job
    if len(running.finished) < job.options.n_best:
        return False
    return running.finished[-1].score >= score(best_live, job.limit, job.options.length_penalty)


def _place(
    rows: Rows,
    group: list[Running],
    move: Move,
    rows_sb: Ints,
    parent_sb: Ints,
    token_sb: Ints,
    total_sb: npt.NDArray[np.float64],
    log_prob_sb: npt.NDArray[np.float32],
) -> None:
    """Give each child a row: the first of a parent stays, others get rows whose parent died.

    So no row is both read and written, and what stays costs nothing.
    """
    sentences, beam = rows_sb.shape
    parent_row_sb = row_sb = rows_sb.take(parent_sb + _firsts(sentences, beam))
    is_twin_sbb = (parent_sb[:, :, None] == parent_sb[:, None, :]) & _earlier(beam)
    again_sb = np.logical_or.reduce(is_twin_sbb, axis=2)
    if np.logical_or.reduce(again_sb, axis=None):
        is_parent_sbb = parent_sb[:, :, None] == np.arange(beam)
        childless_sb = ~np.logical_or.reduce(is_parent_sbb, axis=1)
        # In each sentence there are as many further children as childless parents.
        row_sb = parent_row_sb.copy()
        row_sb[again_sb] = rows_sb[childless_sb]
        moves = again_sb & (total_sb > -np.inf)
        sources, destinations = parent_row_sb[moves], row_sb[moves]
        if sources.size:
            length = int(rows.past[sources].max()) + 1
            move(sources, destinations, length)
            rows.copy_history(sources, destinations, length)
    past_sb = rows.past[row_sb]
    rows.ids[row_sb, past_sb] = token_sb
    rows.log_probs[row_sb, past_sb] = log_prob_sb
    rows.token[row_sb] = token_sb
    rows.total[row_sb] = total_sb
    rows.past[row_sb] = past_sb + 1
    for running, lines in zip(group, row_sb.tolist(), strict=True):
        running.rows = lines


@cache  # beams are few
def _earlier(beam: int) -> npt.NDArray[np.bool_]:
    """Of each place in a beam, the places before it."""
    return np.tri(beam, k=-1, dtype=np.bool_)
