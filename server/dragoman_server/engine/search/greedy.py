"""One step of the rows that hold a hypothesis each: greedy, sampled, or with their tokens given.

``advance`` is for lanes in which every sentence is greedy, which is most of what a server does;
``advance_mixed`` for all others.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dragoman_server.engine.core import Finish, NewToken, Report
from dragoman_server.engine.rows import Rows
from dragoman_server.runtime.arrays import Bools, Floats, Ints
from dragoman_server.runtime.results import StepResult


class Ended(NamedTuple):
    """A row whose hypothesis ends in this step."""

    row: int
    log_prob: float
    """Log-probability of the end token."""
    finish: Finish


Draw = Callable[[Bools, Ints, Floats], None]
"""Takes which rows are free to choose, and the best token and its log-probability for every row;
writes what is drawn over these."""


def advance(rows: Rows, result: StepResult, end: int, report: Report) -> list[Ended]:
    """Continue all rows by their best token. Returns those that end."""
    count = len(result.top_ids)
    token, log_prob = result.top_ids[:, 0], result.top_log_probs[:, 0]
    ends = (token == end) | (rows.past[:count] + 1 >= rows.max_length[:count])
    ended: list[Ended] = []
    going: slice | Ints = slice(0, count)
    if np.logical_or.reduce(ends):
        going = np.flatnonzero(~ends)
        for row in np.flatnonzero(ends).tolist():
            if token[row] == end:
                ended.append(Ended(row, float(log_prob[row]), Finish.END))
            else:  # cut off: the token whose log-probability is given is the end token
                ended.append(Ended(row, float(result.given_log_probs[row]), Finish.LENGTH))
    rows.append(going, token, log_prob)
    if np.logical_or.reduce(rows.stream[:count]):
        _report_tokens(rows, np.flatnonzero(rows.stream[:count] & ~ends), token, log_prob, report)
    return ended


def advance_mixed(
    rows: Rows,
    result: StepResult,
    end: int,
    is_forced: Bools,
    given: Ints,
    draw: Draw,
    report: Report,
) -> list[Ended]:
    """Continue the rows that choose for themselves, and those whose token is given.

    Rows of a beam that chooses are left alone. Returns the rows that end.
    """
    count = len(is_forced)
    past, is_single = rows.past[:count], rows.is_single[:count]
    advances = is_single | is_forced
    if not np.logical_or.reduce(advances):
        return []  # beams alone
    is_free = is_single & ~is_forced
    at_limit = is_free & (past + 1 >= rows.max_length[:count])
    token = result.top_ids[:, 0].copy()
    log_prob = result.top_log_probs[:, 0].copy()
    draw(is_free & ~at_limit, token, log_prob)
    ends_by_itself = token == end
    is_given = is_forced | at_limit
    token[is_given] = given[is_given]
    log_prob[is_given] = result.given_log_probs[is_given]
    is_start = past < rows.start[:count]
    log_prob[is_start] = 0.0

    ended: list[Ended] = []
    for row in np.flatnonzero(is_single & (token == end)).tolist():
        is_cut_off = at_limit[row] and not ends_by_itself[row]
        finish = Finish.LENGTH if is_cut_off else Finish.END
        ended.append(Ended(row, float(log_prob[row]), finish))
    going = np.flatnonzero(advances & (token != end))
    streamed = going[rows.stream[going] & ~is_start[going]]
    rows.append(going, token, log_prob)
    _report_tokens(rows, streamed, token, log_prob, report)
    return ended


def _report_tokens(
    rows: Rows, streamed: Ints, token: Ints, log_prob: Floats, report: Report
) -> None:
    """Report the new tokens of rows that are streamed."""
    for row in streamed.tolist():
        running = rows.owner[row]
        assert running is not None
        report.tokens.append(NewToken(running.job.ticket, int(token[row]), float(log_prob[row])))
