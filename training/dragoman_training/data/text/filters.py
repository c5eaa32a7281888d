"""Which sentence pairs to train on, and a report of the others."""

import hashlib
from dataclasses import dataclass, fields
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from dragoman_training.data.text.corpus import Pair

_AT_A_TIME = 1 << 22
"""Hashes compared at a time: bounds memory at about 100 MB."""


@dataclass
class FilterReport:
    """Sentence pairs, by what became of them."""

    kept: int = 0
    empty: int = 0
    """One side or both have no text."""
    duplicate: int = 0
    """The same source with the same target came before."""
    too_long: int = 0
    """More tokens than ``data.max_tokens``."""
    ratio: int = 0
    """One side has more than ``max_ratio`` times the tokens of the other."""
    weightless: int = 0
    """The label of the pair has the weight 0."""
    untranslated: int = 0
    """Machine-made: most words of the target are the source's."""
    repeated: int = 0
    """Machine-made: the target repeats itself."""
    length: int = 0
    """Machine-made: the target is far shorter or longer than the source."""
    characters: int = 0
    """Machine-made: the target has symbols or letters of other scripts that the source has not."""
    numbers: int = 0
    """Machine-made: the target has other numbers than the source."""
    quotes: int = 0
    """Machine-made: the target lost quotation marks."""
    brackets: int = 0
    """Machine-made: the target has brackets that the source has not."""
    times: int = 0
    """Machine-made: the target does not say of a time whether it is in the morning."""
    currency: int = 0
    """Machine-made: the target lost a currency, or names another one."""
    made_up: int = 0
    """Machine-made: the target has a phrase that the teacher says of anything."""
    short: int = 0
    """Machine-made: the source is a word or two, of which a teacher of sentences knows little."""

    @property
    def read(self) -> int:
        return sum(getattr(self, field.name) for field in fields(self))

    def count(self, reason: str) -> None:
        """Count one more pair that was dropped for this reason."""
        setattr(self, reason, getattr(self, reason) + 1)

    def add(self, other: "FilterReport") -> None:
        """Add the counts of another report."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def is_empty(pair: Pair) -> bool:
    return not pair.source.strip() or not pair.target.strip()


def is_lopsided(source_tokens: int, target_tokens: int, max_ratio: float) -> bool:
    shorter, longer = sorted((source_tokens, target_tokens))
    return longer > max_ratio * shorter


class DuplicateFinder:
    """Finds pairs that came before, in memory that does not grow with their number.

    The pairs' hashes go to a file. They are compared by groups of the same leading bits,
    one group at a time, because duplicates always share a group.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._count = 0

    def add(self, pair: Pair) -> None:
        text = f"{pair.source.strip()}\n{pair.target.strip()}".encode()
        self._file.write(hashlib.blake2b(text, digest_size=8).digest())
        self._count += 1

    def find(self, at_a_time: int = _AT_A_TIME) -> npt.NDArray[np.bool_]:
        """For each pair in the order they were added: is it a repetition?"""
        repeated: npt.NDArray[np.bool_] = np.zeros(self._count, np.bool_)
        if not self._count:
            return repeated
        self._file.flush()
        hashes = np.memmap(self._file, np.uint64, mode="r")
        groups = -(-self._count // at_a_time)
        bits = (groups - 1).bit_length()
        for group in range(1 << bits):
            members = np.concatenate(
                [
                    at + np.flatnonzero(_leading_bits(hashes[at : at + at_a_time], bits) == group)
                    for at in range(0, self._count, at_a_time)
                ]
            )
            repeated[members] = True
            _, first = np.unique(hashes[members], return_index=True)
            repeated[members[first]] = False
        return repeated


def _leading_bits(hashes: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.uint64]:
    if bits == 0:
        return np.zeros(len(hashes), np.uint64)
    return hashes >> np.uint64(64 - bits)
