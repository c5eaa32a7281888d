"""The order of training: which pairs form which batch, as a pure function of seed and epoch.

An epoch is a random permutation of its examples, read in windows. Inside a window, pairs of like
lengths go into one batch, so that little is padded, and the batches are shuffled. Nothing here
holds more than one window, so a larger corpus does not need more memory.

A batch is always the batch of the whole training, however many processes share it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dragoman_training.data.token_store import Examples

WINDOW = 1 << 17
_ROUNDS = 6

Indices = npt.NDArray[np.int64]


class Permutation:
    """A random permutation of 0 … size - 1, computed place by place instead of stored.

    A Feistel network scrambles numbers of an even number of bits one to one, whatever the function
    inside; a result outside the range is scrambled again until it falls inside.
    """

    def __init__(self, size: int, seed: tuple[int, ...]) -> None:
        self._size = size
        self._half = max(1, ((size - 1).bit_length() + 1) // 2)
        self._keys = np.random.default_rng(seed).integers(0, 2**63, _ROUNDS, dtype=np.uint64)

    def __getitem__(self, places: slice) -> Indices:
        return self.at(np.arange(*places.indices(self._size)))

    def at(self, places: Indices) -> Indices:
        """Return what stands at each of these places."""
        values = self._scramble(places.astype(np.uint64))
        while (outside := values >= self._size).any():
            values[outside] = self._scramble(values[outside])
        return values.astype(np.int64)

    def _scramble(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        half = np.uint64(self._half)
        mask = np.uint64((1 << self._half) - 1)
        left, right = values >> half, values & mask
        for key in self._keys:
            left, right = right, left ^ (mix(right ^ key) & mask)
        return (left << half) | right


def mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finaliser: every bit of the input moves every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@dataclass(frozen=True)
class Position:
    """The next batch to train on."""

    epoch: int = 0
    batch: int = 0


def batches_from(
    examples: Examples, position: Position, *, tokens: int, seed: int
) -> Iterator[tuple[Indices, Position]]:
    """Batches without end, each with the position that follows it."""
    epoch, skip = position.epoch, position.batch
    while True:
        ended = Position(epoch + 1)
        count = 0
        pending: Indices | None = None
        for batch in epoch_batches(examples, epoch, tokens=tokens, seed=seed):
            # One batch is held back, because the last of an epoch is followed by the next epoch.
            if pending is not None and count > skip:
                yield pending, Position(epoch, count)
            pending = batch
            count += 1
        if pending is not None and count > skip:
            yield pending, ended
        epoch, skip = epoch + 1, 0


def epoch_batches(
    examples: Examples, epoch: int, *, tokens: int, seed: int, window: int = WINDOW
) -> Iterator[Indices]:
    """The batches of one epoch; each of its examples is in exactly one."""
    order = Permutation(len(examples), (seed, epoch))
    for number, at in enumerate(range(0, len(examples), window)):
        indices = examples.draw(epoch, order[at : at + window])
        lengths = examples.lengths(indices) + 1  # each side gains a begin or end token
        by_length = _serpentine(lengths)
        batches = list(_cut(indices[by_length], lengths[by_length], tokens))
        rng = np.random.default_rng((seed, epoch, number))
        for batch in rng.permutation(len(batches)):
            yield batches[batch]


def _serpentine(lengths: Indices) -> Indices:
    """Order by target length, and within it by source length, up and down in turns.

    Going down again instead of starting over keeps the sources of a batch alike where it spans two
    target lengths.
    """
    source, target = lengths.T
    return np.lexsort((np.where(target % 2, -source, source), target))


def _cut(indices: Indices, lengths: Indices, tokens: int) -> Iterator[Indices]:
    """Consecutive pairs, as many as fit: pairs times the longest side is at most ``tokens``."""
    longest = lengths.max(axis=1)
    start = 0
    widest = 0
    for end, length in enumerate(longest):
        widest = max(widest, int(length))
        if (end - start + 1) * widest > tokens and end > start:
            yield indices[start:end]
            start, widest = end, int(length)
    if start < len(indices):
        yield indices[start:]
