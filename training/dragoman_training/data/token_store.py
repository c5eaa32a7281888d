"""Sentence pairs as token ids in memory-mapped files.

Memory does not grow with the corpus: the system keeps in memory what is being read. A store is a
directory: the ids of all sentences of one side in one file, where each sentence begins in another.
"""

import json
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

_SIDES = ("source", "target")


class TokenPair(NamedTuple):
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]


class Examples(Protocol):
    """Sentence pairs to train on, by number."""

    def __len__(self) -> int:
        """Return how many examples an epoch has."""

    def draw(self, epoch: int, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers of the examples at these places of an epoch."""

    def __getitem__(self, index: int) -> TokenPair: ...

    def lengths(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Tokens of each pair's source and target, without special tokens; shape [pairs, 2]."""


class TokenStoreWriter:
    """Appends pairs to a new store; readable when closed."""

    def __init__(self, directory: Path, vocabulary: int) -> None:
        self._directory = directory
        self._dtype = np.dtype("<u2" if vocabulary <= 1 << 16 else "<u4")
        self._stack = ExitStack()
        self._ids: list[BinaryIO] = []
        self._offsets: list[BinaryIO] = []
        self._ends = [0, 0]
        self._pairs = 0

    def __enter__(self) -> "TokenStoreWriter":
        self._directory.mkdir()
        for side in _SIDES:
            for files, kind in ((self._ids, "ids"), (self._offsets, "offsets")):
                path = self._directory / f"{side}.{kind}"
                files.append(self._stack.enter_context(path.open("wb")))
        for file in self._offsets:
            file.write(np.array([0], "<i8").tobytes())
        return self

    def add(self, source: list[int], target: list[int]) -> None:
        for side, ids in enumerate((source, target)):
            self._ids[side].write(np.array(ids, self._dtype).tobytes())
            self._ends[side] += len(ids)
            self._offsets[side].write(np.array([self._ends[side]], "<i8").tobytes())
        self._pairs += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
        if error is None:
            meta = {"pairs": self._pairs, "dtype": self._dtype.str}
            (self._directory / "store.json").write_text(json.dumps(meta))


class TokenStore:
    """Read access to a store, by the number of the pair."""

    def __init__(self, directory: Path) -> None:
        meta = json.loads((directory / "store.json").read_text())
        self._count = int(meta["pairs"])
        self._ids = [_map(directory / f"{side}.ids", meta["dtype"]) for side in _SIDES]
        self._offsets = [_map(directory / f"{side}.offsets", "<i8") for side in _SIDES]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> TokenPair:
        source, target = (
            ids[offsets[index] : offsets[index + 1]].astype(np.int64)
            for ids, offsets in zip(self._ids, self._offsets, strict=True)
        )
        return TokenPair(source, target)

    def draw(self, epoch: int, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Every epoch has all pairs."""
        return places

    def lengths(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.stack([o[indices + 1] - o[indices] for o in self._offsets], axis=1)

    @property
    def tokens(self) -> tuple[int, int]:
        """Tokens of all sources and of all targets."""
        source, target = (int(offsets[-1]) for offsets in self._offsets)
        return source, target


def _map(path: Path, dtype: str) -> npt.NDArray[np.integer]:
    if path.stat().st_size == 0:  # an empty file can't be mapped
        return np.empty(0, dtype)
    return np.memmap(path, dtype, mode="r")
