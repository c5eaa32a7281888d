"""Penalties and bans: which logits of which rows to change, from each row's own history."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dragoman_server.engine.core import Options
from dragoman_server.engine.rows import Rows
from dragoman_server.runtime.adjustments import NO_ADJUSTMENTS, Adjustments
from dragoman_server.runtime.arrays import Floats, Ints


def is_constrained(options: Options) -> bool:
    return bool(
        options.repetition_penalty != 1.0
        or options.no_repeat_ngram
        or options.suppressed
        or options.min_tokens
    )


def adjustments(
    rows: Rows, groups: Sequence[tuple[Options, Ints]], *, vocabulary: int, end: int
) -> Adjustments:
    """For groups of rows with the same options; each place is row x vocabulary + token."""
    places: list[Ints] = []
    factors: list[Floats] = []
    offsets: list[Floats] = []
    for options, members in groups:
        banned = np.concatenate(_banned(rows, options, members, vocabulary, end))
        penalised = _penalised(rows, options, members, vocabulary)
        # What is named twice must be adjusted alike: what is banned gets no penalty.
        if banned.size and penalised.size:
            penalised = np.setdiff1d(penalised, banned)
        for codes, factor, offset in (
            (banned, 1.0, -np.inf),
            (penalised, options.repetition_penalty, 0.0),
        ):
            places.append(codes)
            factors.append(np.full(len(codes), factor, np.float32))
            offsets.append(np.full(len(codes), offset, np.float32))
    if not places:
        return NO_ADJUSTMENTS
    return Adjustments(np.concatenate(places), np.concatenate(factors), np.concatenate(offsets))


def _penalised(rows: Rows, options: Options, members: Ints, vocabulary: int) -> Ints:
    if options.repetition_penalty == 1.0:
        return np.zeros(0, np.int64)
    history, valid = _history(rows, members)
    codes: Ints = (members[:, None] * vocabulary + history)[valid]
    return codes


def _banned(rows: Rows, options: Options, members: Ints, vocabulary: int, end: int) -> list[Ints]:
    first = members * vocabulary
    tokens = rows.past[members] - rows.start[members]
    banned = [first[tokens < options.min_tokens] + end]
    if options.suppressed:
        banned.append((first[:, None] + np.array(options.suppressed, np.int64)).reshape(-1))
    if options.no_repeat_ngram:
        history, valid = _history(rows, members)
        repeats = _repeats(history, valid, rows.past[members], options.no_repeat_ngram)
        banned.append((first[:, None] + history)[repeats])
    return banned


def _history(rows: Rows, members: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Tokens so far of each row, and where there is one of its translation."""
    start, past = rows.start[members], rows.past[members]
    longest = int(past.max())
    place = np.arange(longest)
    return rows.ids[members, :longest], (place >= start[:, None]) & (place < past[:, None])


def _repeats(
    history: Ints, valid: npt.NDArray[np.bool_], past: Ints, n: int
) -> npt.NDArray[np.bool_]:
    """Tokens that stand where the same n - 1 tokens came before as come now."""
    if history.shape[1] < n:
        return np.zeros_like(valid)
    repeats = valid.copy()
    repeats[:, : n - 1] = False
    for back in range(1, n):
        newest = history[np.arange(len(past)), np.maximum(past - back, 0)][:, None]
        repeats[:, back:] &= history[:, : history.shape[1] - back] == newest
    return repeats
