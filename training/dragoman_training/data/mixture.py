"""How often each pair of a corpus is in an epoch: groups of pairs, each with a weight.

A group of weight 2 has all its pairs twice in every epoch; one of weight 0.3 has three in ten, and
other ones in the next epoch, until all had their turn. Nothing is copied or drawn ahead: the pair
at a place of an epoch is computed when it is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman_training.data.batching import Indices, Permutation


@dataclass(frozen=True, eq=False)
class Group:
    """Pairs that are drawn equally often."""

    pairs: Indices
    """Their numbers in the store."""
    weight: float
    joinable: bool = True
    """Whether its pairs may be members of joined examples."""

    @property
    def size(self) -> int:
        """Examples of this group in an epoch. A group that is drawn at all has one at least."""
        if not self.weight or not len(self.pairs):
            return 0
        return max(1, round(self.weight * len(self.pairs)))


class Mixture:
    """The pairs of an epoch, by place."""

    def __init__(self, groups: Sequence[Group], seed: int) -> None:
        # Joinable groups come first, so that the first places are the joinable ones.
        self._groups = sorted(groups, key=lambda group: not group.joinable)
        self._ends = np.cumsum([group.size for group in self._groups], dtype=np.int64)
        self._orders = [
            Permutation(max(1, len(group.pairs)), (seed, number, len(group.pairs)))
            for number, group in enumerate(self._groups)
        ]
        self.joinable = sum(group.size for group in self._groups if group.joinable)
        """How many of the first places are joinable."""

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def pairs(self, epochs: Indices, places: Indices) -> Indices:
        """Return the numbers of the pairs that stand at these places of these epochs."""
        numbers = np.searchsorted(self._ends, places, side="right")
        found = np.empty(len(places), np.int64)
        for number in np.unique(numbers):
            here = numbers == number
            begin = self._ends[number] - self._groups[number].size
            found[here] = self._of_group(int(number), epochs[here], places[here] - begin)
        return found

    def _of_group(self, number: int, epochs: Indices, slots: Indices) -> Indices:
        group = self._groups[number]
        count = len(group.pairs)
        whole = int(group.weight) * count
        """Slots of the copies that are complete in every epoch."""
        members = slots % count
        rest = slots >= whole
        if rest.any():
            each = group.size - whole
            turn = (epochs[rest] * each + slots[rest] - whole) % count
            members[rest] = self._orders[number].at(turn)
        return group.pairs[members].astype(np.int64)
