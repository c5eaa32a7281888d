"""One step of beam search for many sentences at once.

``dragoman_training.translate.search`` defines it.

Shapes: s sentences of the same beam, b hypotheses of each, k = 2b candidates.
"""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import compress

import numpy as np
import numpy.typing as npt

from dragoman_server.engine.core import Finish
from dragoman_server.engine.jobs import Selection
from dragoman_server.engine.rows import Rows, Running
from dragoman_server.runtime.arrays import Bools, Floats, Ints
from dragoman_server.runtime.results import StepResult
from dragoman_server.runtime.scoring import can_stop, candidates_of, ending_candidates

Move = Callable[[Ints, Ints, int], None]
"""Copies caches from rows to other rows, up to a length."""


class BeamSearch:
    """The beams of a lane's sentences, from step to step."""

    def __init__(self, rows: Rows, end: int, move: Move, *, ends_in_beam: bool) -> None:
        self._rows = rows
        self._end = end
        self._move = move
        self._ends_in_beam = ends_in_beam

    def advance(
        self, running: Iterable[Running], result: StepResult, is_forced: Bools
    ) -> list[Running]:
        """Continue the beams that choose their token. Returns the sentences that are finished."""
        rows = self._rows
        groups: dict[int, list[Running]] = {}
        done: list[Running] = []
        for each in running:
            decoding, row = each.job.decoding, each.rows[0]
            if decoding.selection is not Selection.BEAM or is_forced[row]:
                continue
            if rows.past[row] + 1 >= rows.max_length[row]:
                self._finish_at_limit(each, result)
                done.append(each)
            else:
                groups.setdefault(decoding.beam, []).append(each)
        for group in groups.values():
            done += self._advance_group(group, result)
        return done

    def _finish_at_limit(self, running: Running, result: StepResult) -> None:
        """End every live hypothesis of a sentence: it is at its last position."""
        for row in running.rows:
            if self._rows.total[row] > -np.inf:
                by_itself = result.top_ids[row, 0] == self._end
                finish = Finish.END if by_itself else Finish.LENGTH
                log_prob = float(result.given_log_probs[row])
                running.keep(self._rows.hypothesis(running, row, log_prob, finish))

    def _advance_group(self, group: list[Running], result: StepResult) -> list[Running]:
        """Continue sentences of the same beam by one token. Returns those that are finished."""
        rows = self._rows
        sentences, beam = len(group), group[0].job.decoding.beam
        k = candidates_of(beam)
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
        is_end_sk = token_sk == self._end
        if np.logical_or.reduce(is_end_sk, axis=None):
            is_found_sk = is_end_sk & (total_sk > -np.inf)
            is_found_sk[:, ending_candidates(beam, ends_in_beam=self._ends_in_beam) :] = False
            for s, place in np.argwhere(is_found_sk).tolist():
                row = int(rows_sb[s, slot_sk[s, place]])
                log_prob = float(log_prob_sk[s, place])
                group[s].keep(rows.hypothesis(group[s], row, log_prob, Finish.END))
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
            self._place(group, *children)
            return []
        goes_on = [not done for done in is_done]
        if any(goes_on):
            live = list(compress(group, goes_on))
            self._place(live, *(of_each[goes_on] for of_each in children))
        return list(compress(group, is_done))

    def _place(
        self,
        group: list[Running],
        rows_sb: Ints,
        parent_sb: Ints,
        token_sb: Ints,
        total_sb: npt.NDArray[np.float64],
        log_prob_sb: Floats,
    ) -> None:
        """Give each child a row: the first of a parent stays, others get rows whose parent died.

        So no row is both read and written, and what stays costs nothing.
        """
        rows = self._rows
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
                self._move(sources, destinations, length)
                rows.copy_history(sources, destinations, length)
        past_sb = rows.past[row_sb]
        rows.ids[row_sb, past_sb] = token_sb
        rows.log_probs[row_sb, past_sb] = log_prob_sb
        rows.token[row_sb] = token_sb
        rows.total[row_sb] = total_sb
        rows.past[row_sb] = past_sb + 1
        for running, lines in zip(group, row_sb.tolist(), strict=True):
            running.rows = lines


def _firsts(lines: int, width: int) -> Ints:
    """Return where each line begins, of lines of a width that lie one after the other."""
    return np.arange(0, lines * width, width)[:, None]


def _is_done(running: Running, best_live: float) -> bool:
    """Return whether enough are finished, and no live hypothesis can beat the worst of them."""
    if best_live == -np.inf:
        return True
    job, finished = running.job, running.finished
    if len(finished) < job.options.n_best:
        return False
    return can_stop(finished[-1].score, best_live, job.limit, job.options.length_penalty)


@cache  # beams are few
def _earlier(beam: int) -> Bools:
    """Return, for each place in a beam, which places are before it."""
    return np.tri(beam, k=-1, dtype=np.bool_)
