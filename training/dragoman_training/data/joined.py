"""Longer examples out of short ones: several sentence pairs, one after the other.

A corpus of single sentences teaches a model nothing of longer texts: it stops after the first full
stop, or loses its place. Joined pairs are made of members drawn at random, so that a corpus sorted
by its text does not join a sentence with its own variants. They are computed when they are asked
for, and stored nowhere. The tokens of two texts joined by a space are those of the one and then
those of the other, because no piece of a vocabulary crosses a space.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman_training.data.batching import Indices, mix
from dragoman_training.data.mixture import Mixture
from dragoman_training.data.token_store import TokenPair, TokenStore


class _Members(NamedTuple):
    """Of joined pairs: the pairs drawn for each, their lengths, and which of them it takes."""

    pairs: Indices
    lengths: Indices
    taken: npt.NDArray[np.bool_]


class JoinedPairs:
    """The pairs of each epoch, followed by joined ones: ``share`` times as many.

    A joined pair has 2 to ``most`` members, or as many of them as fit: each side has at most
    ``max_tokens``, the end token included. The first always fits, because the store was filtered by
    the same limit. Without a mixture, an epoch has every pair of the store once.

    Numbers up to the size of the store are its pairs; joined ones are numbered from there on,
    through all epochs.
    """

    def __init__(
        self,
        store: TokenStore,
        *,
        share: float,
        most: int,
        max_tokens: int,
        seed: int,
        mixture: Mixture | None = None,
    ) -> None:
        self._store = store
        self._mixture = mixture
        self._plain = len(store) if mixture is None else len(mixture)
        self._joinable = len(store) if mixture is None else mixture.joinable
        self._joined = round(share * self._joinable)
        self._most = most
        self._limit = max_tokens - 1  # the end token takes a place
        self._keys = np.random.default_rng((seed, most)).integers(0, 2**63, 2, dtype=np.uint64)

    def __len__(self) -> int:
        return self._plain + self._joined

    @property
    def joined(self) -> int:
        """How many joined examples an epoch has."""
        return self._joined

    def draw(self, epoch: int, places: Indices) -> Indices:
        numbers = len(self._store) + epoch * self._joined + (places - self._plain)
        plain = places < self._plain
        numbers[plain] = self._pairs(np.full(plain.sum(), epoch, np.int64), places[plain])
        return numbers

    def __getitem__(self, index: int) -> TokenPair:
        if index < len(self._store):
            return self._store[index]
        drawn = self._draw(np.array([index], np.int64))
        members = [self._store[member] for member in drawn.pairs[drawn.taken].tolist()]
        return TokenPair(
            np.concatenate([member.source for member in members]),
            np.concatenate([member.target for member in members]),
        )

    def lengths(self, indices: Indices) -> Indices:
        lengths = np.empty((len(indices), 2), np.int64)
        joined = indices >= len(self._store)
        lengths[~joined] = self._store.lengths(indices[~joined])
        if joined.any():
            drawn = self._draw(indices[joined])
            lengths[joined] = np.where(drawn.taken[..., None], drawn.lengths, 0).sum(axis=1)
        return lengths

    def _draw(self, indices: Indices) -> _Members:
        numbers = (indices - len(self._store)).astype(np.uint64)
        places = numbers[:, None] * np.uint64(self._most) + np.arange(self._most, dtype=np.uint64)
        slots = (mix(places ^ self._keys[0]) % np.uint64(self._joinable)).astype(np.int64)
        epochs = (indices - len(self._store)) // self._joined
        pairs = self._pairs(epochs.repeat(self._most), slots.reshape(-1)).reshape(slots.shape)
        wanted = 2 + mix(numbers ^ self._keys[1]) % np.uint64(self._most - 1)
        lengths = self._store.lengths(pairs.reshape(-1)).reshape(*pairs.shape, 2)
        taken = (lengths.cumsum(axis=1) <= self._limit).all(axis=2)
        taken &= np.arange(self._most) < wanted[:, None]
        return _Members(pairs, lengths, taken)

    def _pairs(self, epochs: Indices, places: Indices) -> Indices:
        """Return the pairs at these places of these epochs."""
        return places if self._mixture is None else self._mixture.pairs(epochs, places)
