"""Penalties and bans: which logits of which rows to change, from each row's own history."""

import numpy as np

from dragoman_server.engine.core import Options
from dragoman_server.engine.rows import Rows, Running
from dragoman_server.runtime.adjustments import NO_ADJUSTMENTS, Adjustments
from dragoman_server.runtime.arrays import Bools, Floats, Ints


class Constraints:
    """The constrained sentences of a lane. Those with the same options are worked on together."""

    def __init__(self, rows: Rows, vocabulary: int, end: int) -> None:
        self._rows = rows
        self._vocabulary = vocabulary
        self._end = end
        self._by_options: dict[Options, list[Running]] = {}

    def add(self, running: Running) -> None:
        """Constrain a sentence by its options."""
        self._by_options.setdefault(running.job.options, []).append(running)

    def remove(self, running: Running) -> None:
        """Forget a sentence that was added."""
        members = self._by_options[running.job.options]
        members.remove(running)
        if not members:
            del self._by_options[running.job.options]

    @property
    def are_none(self) -> bool:
        """Whether no sentence is constrained."""
        return not self._by_options

    def adjustments(self) -> Adjustments:
        """Return the changes for the next step; each place is row x vocabulary + token."""
        if not self._by_options:
            return NO_ADJUSTMENTS
        places: list[Ints] = []
        factors: list[Floats] = []
        offsets: list[Floats] = []
        for options, members in self._by_options.items():
            rows = self._free_rows(members)
            if not len(rows):
                continue
            banned = np.concatenate(self._banned(options, rows))
            penalised = self._penalised(options, rows)
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

    def _free_rows(self, members: list[Running]) -> Ints:
        """Return the rows whose next token is not given.

        A given token comes whatever the options say, at the model's own log-probability.
        """
        rows = np.array([row for running in members for row in running.rows])
        return rows[self._rows.past[rows] >= self._rows.forced_length[rows]]

    def _penalised(self, options: Options, rows: Ints) -> Ints:
        """Return the places of tokens that occurred, where repetition has a penalty."""
        if options.repetition_penalty == 1.0:
            return np.zeros(0, np.int64)
        history, is_translation = self._history(rows)
        codes: Ints = (rows[:, None] * self._vocabulary + history)[is_translation]
        return codes

    def _banned(self, options: Options, rows: Ints) -> list[Ints]:
        """Return the places of tokens that may not come next."""
        past, first = self._rows.past[rows], rows * self._vocabulary
        banned = [first[past - self._rows.start[rows] < options.min_tokens] + self._end]
        if options.suppressed:
            banned.append((first[:, None] + np.array(options.suppressed, np.int64)).reshape(-1))
        if options.no_repeat_ngram:
            history, is_translation = self._history(rows)
            repeats = _repeats(history, is_translation, past, options.no_repeat_ngram)
            banned.append((first[:, None] + history)[repeats])
        return banned

    def _history(self, rows: Ints) -> tuple[Ints, Bools]:
        """Return the tokens so far of each row, and which places are of its translation."""
        start, past = self._rows.start[rows], self._rows.past[rows]
        longest = int(past.max())
        place = np.arange(longest)
        is_translation = (place >= start[:, None]) & (place < past[:, None])
        return self._rows.ids[rows, :longest], is_translation


def _repeats(history: Ints, is_translation: Bools, past: Ints, n: int) -> Bools:
    """Return where a token stands behind the same n - 1 tokens as are the newest now."""
    if history.shape[1] < n:
        return np.zeros_like(is_translation)
    repeats = is_translation.copy()
    repeats[:, : n - 1] = False
    for back in range(1, n):
        newest = history[np.arange(len(past)), np.maximum(past - back, 0)][:, None]
        repeats[:, back:] &= history[:, : history.shape[1] - back] == newest
    return repeats
