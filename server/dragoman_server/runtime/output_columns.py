"""The output weights that a lane's lists need, side by side: the product is with these alone.

Sentences bring the tokens of their lists. A token's column is added once, and stays until there is
no room for new ones; then only those that are still wanted are kept.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman_server.bundle.shortlist import MAX_SHORTLIST_TOKENS
from dragoman_server.runtime.arrays import Ints
from dragoman_server.runtime.output_weights import OutputWeights

_GRANULE = 512
"""Their number is a multiple of this."""
_SPARE = 1.5
"""Columns that there are after a new beginning, for each that is wanted: more are computed for
nothing, fewer are soon used up."""
_MAX_SURPLUS = 3
"""Times what there should be: after a crowd has gone, it is worth to begin anew."""


class RowShortlists:
    """The tokens that each row chooses among, and the columns of their weights. Memory is fixed."""

    def __init__(self, weights: OutputWeights, rows: int) -> None:
        vocabulary, width = weights.matrix.shape
        self._all = weights
        self._max_columns = min(vocabulary, rows * MAX_SHORTLIST_TOKENS)
        """Columns that can be wanted at a time."""
        self.ids = np.zeros((rows, MAX_SHORTLIST_TOKENS), np.int64)
        """The end token is the first."""
        self.columns = np.zeros((rows, MAX_SHORTLIST_TOKENS), np.int64)
        self.offsets = np.full((rows, MAX_SHORTLIST_TOKENS), -np.inf, np.float32)
        """-inf behind a list's end, and for an end token that may not come yet."""
        self._memory = np.zeros(self._max_columns * width, np.int8)
        self._memory.fill(0)  # zeros() alone leaves the pages to be touched later
        self._scales = np.zeros(self._max_columns, np.float32)
        self._biases = np.zeros(self._max_columns, np.float32)
        self._column_of = np.full(vocabulary, -1, np.int64)
        self._wanted = np.zeros(vocabulary, np.int32)
        """By how many sentences."""
        self._used = 0
        self.version = 0
        """Changes when the columns begin anew, somewhere else."""
        self._begin_anew()

    @property
    def bytes(self) -> int:
        arrays = [each for each in vars(self).values() if isinstance(each, np.ndarray)]
        return sum(array.nbytes for array in arrays if array.base is None)

    @property
    def wanted(self) -> int:
        """Tokens that are in the list of some sentence."""
        return int(np.count_nonzero(self._wanted))

    @property
    def _room(self) -> int:
        """Columns to have for what is wanted now."""
        return min(self._max_columns, _GRANULE * (1 + int(_SPARE * self.wanted) // _GRANULE))

    @property
    def inputs(self) -> dict[str, npt.NDArray[Any]]:
        """Columns, as the graph takes them; they stay where they are while the version does."""
        found: dict[str, npt.NDArray[Any]] = {
            "column_weights": self._weights,
            "column_steps": self._scales[: self._width],
        }
        if self._all.biases is not None:
            found["column_biases"] = self._biases[: self._width]
        return found

    def fill(self, rows: list[int], tokens: Ints) -> None:
        """Give a sentence's rows their list."""
        count = len(tokens)
        self._wanted[tokens] += 1
        new = tokens[self._column_of[tokens] < 0]
        is_full = self._used + len(new) > self._width
        if is_full or self._width > _MAX_SURPLUS * self._room:
            self._begin_anew()
        else:
            self._append(new)
        self.ids[rows, :count] = tokens
        self.columns[rows, :count] = self._column_of[tokens]
        self.columns[rows, count:] = 0
        self.offsets[rows, :count] = 0.0
        self.offsets[rows, count:] = -np.inf

    def free(self, tokens: Ints) -> None:
        """A sentence that had this list has ended."""
        self._wanted[tokens] -= 1

    def move(self, sources: list[int], destinations: list[int]) -> None:
        for line in (self.ids, self.columns, self.offsets):
            line[destinations] = line[sources]

    def fill_all(self) -> None:
        """RowShortlists of as many tokens as there can be: to see how much memory that takes."""
        vocabulary, rows = len(self._wanted), len(self.ids)
        for row in range(rows):
            tokens = (
                row * MAX_SHORTLIST_TOKENS + np.arange(min(MAX_SHORTLIST_TOKENS, vocabulary))
            ) % vocabulary
            self.fill([row], tokens)

    def clear(self) -> None:
        """No row has a list."""
        self._wanted.fill(0)
        self._begin_anew()

    def _append(self, tokens: Ints) -> None:
        begin, end = self._used, self._used + len(tokens)
        self._weights[:, begin:end] = self._all.matrix[tokens].T
        self._scales[begin:end] = self._all.scales[tokens]
        if self._all.biases is not None:
            self._biases[begin:end] = self._all.biases[tokens]
        self._column_of[tokens] = np.arange(begin, end)
        self._used = end

    def _begin_anew(self) -> None:
        """With what is wanted now."""
        wanted = np.flatnonzero(self._wanted)
        self._width = self._room
        lines = self._all.matrix.shape[1]
        self._weights = self._memory[: lines * self._width].reshape(lines, self._width)
        self._column_of.fill(-1)
        self._used = 0
        self._append(wanted)
        # RowShortlists of rows that nobody holds may have any tokens.
        np.maximum(self._column_of[self.ids], 0, out=self.columns)
        self.version += 1
