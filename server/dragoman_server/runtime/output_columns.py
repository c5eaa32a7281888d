"""The shortlists of a lane's rows, and the output weights of their tokens, side by side.

The last product of a shortlisted step is with these columns alone. A sentence brings the tokens of
its shortlist. A token's column is added once, and stays until there is no room for new ones; then
only columns that a running sentence still needs are kept.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman_server.bundle.shortlist import MAX_SHORTLIST_TOKENS
from dragoman_server.runtime.arrays import Ints
from dragoman_server.runtime.output_weights import OutputWeights

_LINE = 64
"""Bytes of a cache line. The number of columns is an odd multiple of it: onnxruntime reads a
few columns of all rows at a time, and where rows are a power of two apart, their lines push each
other out of the cache. With 2,112 columns a product takes half as long as with 2,048."""
_SPARE = 1.5
"""Columns that are made for each token in use. With more, more are computed for nothing; with
fewer, there is soon no room for new tokens."""
_MAX_SURPLUS = 3
"""Columns are made anew when there are this many times as many as tokens in use call for, as after
a crowd of sentences has ended."""


def _odd_lines(columns: int) -> int:
    """Return the least number of columns, not below this, that is an odd multiple of a line."""
    return _LINE * (-(-columns // _LINE) | 1)


class RowShortlists:
    """The tokens that each row chooses among, and the columns of their weights.

    All memory is taken at the start.
    """

    def __init__(
        self, weights: OutputWeights, rows: int, max_tokens: int = MAX_SHORTLIST_TOKENS
    ) -> None:
        """``max_tokens`` are those that one shortlist may have."""
        vocabulary, width = weights.matrix.shape
        self._all = weights
        self._max_columns = _odd_lines(min(vocabulary, rows * max_tokens))
        self.ids = np.zeros((rows, max_tokens), np.int64)
        """Tokens of each row's shortlist, the end token first."""
        self.columns = np.zeros((rows, max_tokens), np.int64)
        """Column of each token in ``ids``."""
        self.offsets = np.full((rows, max_tokens), -np.inf, np.float32)
        """Added to the logit of each token in ``ids``: -inf after the last token of a shortlist,
        and for an end token that may not come yet."""
        self._memory = np.zeros(self._max_columns * width, np.int8)
        self._memory.fill(0)  # zeros() alone leaves the pages to be touched later
        self._scales = np.zeros(self._max_columns, np.float32)
        self._biases = np.zeros(self._max_columns, np.float32)
        self._column_of = np.full(vocabulary, -1, np.int64)
        """Column of each target token, -1 for a token without one."""
        self._uses = np.zeros(vocabulary, np.int32)
        """Running sentences that have each target token in their shortlist."""
        self._used_columns = 0
        self._filled_rows = 0
        """Rows up to the last that was ever given a shortlist."""
        self.version = 0
        """Changes when the columns are made anew, and with them the memory that graphs read."""
        self._rebuild()

    @property
    def bytes(self) -> int:
        """Memory of all arrays, in bytes."""
        arrays = [each for each in vars(self).values() if isinstance(each, np.ndarray)]
        return sum(array.nbytes for array in arrays if array.base is None)

    @property
    def tokens_in_use(self) -> int:
        """Number of target tokens that are in the shortlist of a running sentence."""
        return int(np.count_nonzero(self._uses))

    @property
    def _wanted_columns(self) -> int:
        """Number of columns that the tokens in use call for."""
        return min(self._max_columns, _odd_lines(int(_SPARE * self.tokens_in_use)))

    @property
    def inputs(self) -> dict[str, npt.NDArray[Any]]:
        """Columns as inputs of the graph; they stay where they are while the version does."""
        found: dict[str, npt.NDArray[Any]] = {
            "column_weights": self._weights,
            "column_steps": self._scales[: self._column_count],
        }
        if self._all.biases is not None:
            found["column_biases"] = self._biases[: self._column_count]
        return found

    def fill(self, rows: list[int], shortlist: Ints) -> None:
        """Give a sentence's rows their shortlist."""
        count = len(shortlist)
        self._uses[shortlist] += 1
        new = shortlist[self._column_of[shortlist] < 0]
        is_full = self._used_columns + len(new) > self._column_count
        if is_full or self._column_count > _MAX_SURPLUS * self._wanted_columns:
            self._rebuild()
        else:
            self._append(new)
        self._filled_rows = max(self._filled_rows, max(rows) + 1)
        self.ids[rows, :count] = shortlist
        self.columns[rows, :count] = self._column_of[shortlist]
        self.columns[rows, count:] = 0
        self.offsets[rows, :count] = 0.0
        self.offsets[rows, count:] = -np.inf

    def free(self, shortlist: Ints) -> None:
        """Note that a sentence with this shortlist has ended."""
        self._uses[shortlist] -= 1

    def move(self, sources: list[int], destinations: list[int]) -> None:
        """Copy the shortlists of rows to other rows."""
        self._filled_rows = max(self._filled_rows, max(destinations) + 1)
        for of_rows in (self.ids, self.columns, self.offsets):
            of_rows[destinations] = of_rows[sources]

    def fill_all(self) -> None:
        """Give every row as long a shortlist as there can be, to take as much memory as ever."""
        vocabulary, (rows, max_tokens) = len(self._uses), self.ids.shape
        length = min(max_tokens, vocabulary)
        for row in range(rows):
            self.fill([row], (row * max_tokens + np.arange(length)) % vocabulary)

    def clear(self) -> None:
        """Forget all shortlists."""
        self._uses.fill(0)
        self._rebuild()

    def _append(self, tokens: Ints) -> None:
        """Add the columns of tokens that have none."""
        begin, end = self._used_columns, self._used_columns + len(tokens)
        self._weights[:, begin:end] = self._all.matrix[tokens].T
        self._scales[begin:end] = self._all.scales[tokens]
        if self._all.biases is not None:
            self._biases[begin:end] = self._all.biases[tokens]
        self._column_of[tokens] = np.arange(begin, end)
        self._used_columns = end

    def _rebuild(self) -> None:
        """Make the columns anew, of the tokens in use alone."""
        in_use = np.flatnonzero(self._uses)
        self._column_count = self._wanted_columns
        width = self._all.matrix.shape[1]
        size = width * self._column_count
        self._weights = self._memory[:size].reshape(width, self._column_count)
        self._column_of.fill(-1)
        self._used_columns = 0
        self._append(in_use)
        # The shortlists of rows without a sentence may have tokens that have no column any more.
        filled = slice(0, self._filled_rows)
        np.maximum(self._column_of[self.ids[filled]], 0, out=self.columns[filled])
        self.version += 1
