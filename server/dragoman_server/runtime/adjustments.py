"""Single logits that a step changes before it looks for the best: engines say which, graphs do it.

Only those that change are sent, not a value for each token of the vocabulary.
"""

from dataclasses import dataclass

import numpy as np

from dragoman_server.runtime.arrays import Floats, Ints


@dataclass(frozen=True)
class Adjustments:
    """Changes of single logits: repetition penalties and bans."""

    places: Ints
    """Logits to change, each as row × vocabulary + token. A logit that is named twice must be
    changed alike."""
    factors: Floats
    """Penalty of each logit: a positive logit is divided by it, a negative one multiplied."""
    offsets: Floats
    """Number to add to each logit after the penalty; -inf bans the token."""

    def by_row(self, rows: int, vocabulary: int) -> tuple[Ints, Floats, Floats]:
        """Return tokens, factors and offsets as the graph wants them, each of shape [rows, A].

        A row that has fewer repeats its first, and one without any leaves token 0 as it is.
        """
        if not self.places.size:
            nothing = np.zeros((rows, 0), np.float32)
            return np.zeros((rows, 0), np.int64), nothing, nothing
        order = np.argsort(self.places, kind="stable")
        row, token = np.divmod(self.places[order], vocabulary)
        if (
            len(row) == rows and (row == np.arange(rows)).all()
        ):  # one each, as with a minimum length
            return token[:, None], self.factors[order][:, None], self.offsets[order][:, None]
        counts = np.bincount(row, minlength=rows)
        first = np.cumsum(counts) - counts
        column = np.arange(len(row)) - first[row]
        shape = (rows, int(counts.max(initial=0)))
        filled = []
        for values, default in (
            (token, 0),
            (self.factors[order], 1.0),
            (self.offsets[order], 0.0),
        ):
            lines = np.full(shape, default, values.dtype)
            has = counts > 0
            lines[has] = values[first[has], None]
            lines[row, column] = values
            filled.append(lines)
        return filled[0], filled[1], filled[2]


NO_ADJUSTMENTS = Adjustments(
    np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.float32)
)
