"""One step of beam search for many sentences at once, as ``dragoman_training.search`` defines it.

Shapes: s sentences of the same beam, b hypotheses of each, k = 2b candidates.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dragoman_server.engine.core import Finish, Hypothesis
from dragoman_server.engine.rows import Rows, Running
from dragoman_server.graphs import StepResult


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
    move: Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64], int], None],
    *,
    ends_in_beam: bool = False,
) -> list[Running]:
    """Continue sentences of the same beam by one token. Returns those that are finished.

    With ``ends_in_beam``, an end beyond the best b continuations is no end of a hypothesis.
    """
    beam = group[0].job.options.beam
    k = 2 * beam
    rows_sb = np.array([running.rows for running in group])
    s_1 = np.arange(len(group))[:, None]
    log_probs_sbk = result.top_log_probs[rows_sb, :k].astype(np.float64)
    totals_sx = (rows.total[rows_sb][:, :, None] + log_probs_sbk).reshape(len(group), beam * k)
    order_sk = np.argsort(-totals_sx, axis=1, kind="stable")[:, :k]
    slot_sk = order_sk // k
    total_sk = totals_sx[s_1, order_sk]
    token_sk = result.top_ids[rows_sb, :k].reshape(len(group), beam * k)[s_1, order_sk]
    log_prob_sk = result.top_log_probs[rows_sb, :k].reshape(len(group), beam * k)[s_1, order_sk]

    is_end_sk = token_sk == end
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
    place_sb = np.nonzero(goes_on_sk)[1].reshape(len(group), beam)
    total_sb = total_sk[s_1, place_sb]
    done_s = np.array([_is_done(r, best) for r, best in zip(group, total_sb[:, 0], strict=True)])

    live_s = ~done_s
    if live_s.any():
        chosen = (rows_sb, slot_sk[s_1, place_sb], token_sk[s_1, place_sb])
        _place(
            rows,
            [running for running, done in zip(group, done_s, strict=True) if not done],
            *(array[live_s] for array in chosen),
            total_sb=total_sb[live_s],
            log_prob_sb=log_prob_sk[s_1, place_sb][live_s],
            move=move,
        )
    return [running for running, done in zip(group, done_s, strict=True) if done]


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
    rows_sb: npt.NDArray[np.int64],
    parent_sb: npt.NDArray[np.int64],
    token_sb: npt.NDArray[np.int64],
    *,
    total_sb: npt.NDArray[np.float64],
    log_prob_sb: npt.NDArray[np.float32],
    move: Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64], int], None],
) -> None:
    """Give each child a row: the first of a parent stays, others get rows whose parent died.

    So no row is both read and written, and what stays costs nothing.
    """
    beam = rows_sb.shape[1]
    same_sbb = parent_sb[:, :, None] == parent_sb[:, None, :]
    again_sb = (same_sbb & np.tri(beam, k=-1, dtype=np.bool_)).any(axis=2)
    childless_sb = ~(parent_sb[:, :, None] == np.arange(beam)).any(axis=1)
    parent_row_sb = np.take_along_axis(rows_sb, parent_sb, axis=1)
    row_sb = parent_row_sb.copy()
    # In each sentence there are as many further children as childless parents.
    row_sb[again_sb] = rows_sb[childless_sb]
    moves = again_sb & (total_sb > -np.inf)
    if moves.any():
        sources, destinations = parent_row_sb[moves], row_sb[moves]
        length = int(rows.past[sources].max()) + 1
        move(sources, destinations, length)
        rows.copy_history(sources, destinations, length)
    past_sb = rows.past[row_sb]
    rows.ids[row_sb, past_sb] = token_sb
    rows.log_probs[row_sb, past_sb] = log_prob_sb
    rows.token[row_sb] = token_sb
    rows.total[row_sb] = total_sb
    rows.past[row_sb] += 1
    for running, lines in zip(group, row_sb.tolist(), strict=True):
        running.rows = lines
