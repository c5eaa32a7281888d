"""Which pairs of a token store are drawn equally often, on disk.

groups.json   the weight of each group, and whether its pairs may be joined
members       the numbers of the pairs, group after group
"""

import json
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple

import numpy as np

from dragoman_training.data.mixture import Group

_AT_A_TIME = 1 << 20
"""Pairs looked at at a time when members are sorted: bounds memory."""
_GROUPS, _MEMBERS, _UNSORTED = "groups.json", "members", "unsorted"


class GroupKey(NamedTuple):
    """What makes pairs one group."""

    weight: float
    joinable: bool


class GroupWriter:
    """Takes the group of each pair, in the order of the store; readable when closed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._keys: dict[GroupKey, int] = {}

    def __enter__(self) -> "GroupWriter":
        self._directory.mkdir()
        self._file: BinaryIO = (self._directory / _UNSORTED).open("w+b")
        return self

    def add(self, key: GroupKey) -> None:
        number = self._keys.setdefault(key, len(self._keys))
        self._file.write(number.to_bytes(4, "little"))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        if error is not None:
            return
        unsorted = self._directory / _UNSORTED
        counts = self._sort(unsorted) if unsorted.stat().st_size else []
        unsorted.unlink()
        groups = [
            {"weight": key.weight, "joinable": key.joinable, "pairs": count}
            for key, count in zip(self._keys, counts, strict=True)
        ]
        (self._directory / _GROUPS).write_text(json.dumps(groups))

    def _sort(self, unsorted: Path) -> list[int]:
        """Write the pairs of each group, one group after the other. Returns how many each has."""
        numbers = np.memmap(unsorted, "<u4", mode="r")
        counts = []
        with (self._directory / _MEMBERS).open("wb") as members:
            for group in range(len(self._keys)):
                count = 0
                for at in range(0, len(numbers), _AT_A_TIME):
                    found = at + np.flatnonzero(numbers[at : at + _AT_A_TIME] == group)
                    members.write(found.astype("<i8").tobytes())
                    count += len(found)
                counts.append(count)
        return counts


def load_groups(directory: Path) -> list[Group]:
    """Read what a writer left. The members stay on disk until they are asked for."""
    members = np.memmap(directory / _MEMBERS, "<i8", mode="r")
    groups = []
    at = 0
    for group in json.loads((directory / _GROUPS).read_text()):
        end = at + group["pairs"]
        groups.append(Group(members[at:end], group["weight"], group["joinable"]))
        at = end
    return groups
