"""Memory that is taken at the start, or where it is used."""

from pathlib import Path

import numpy as np

from dragoman_server.runtime.memory import zeros

MEBIBYTE = 1 << 20


def resident() -> int:
    """Return the bytes of this process that are in memory and its own."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))


def test_touched_memory_is_there_from_the_start() -> None:
    before = resident()
    array = zeros((64, MEBIBYTE), np.int8, touched=True)
    assert resident() - before > 60 * MEBIBYTE
    assert not array.any()


def test_other_memory_is_there_where_it_is_written() -> None:
    before = resident()
    array = zeros((64, MEBIBYTE), np.int8, touched=False)
    assert not array.any()  # reading takes none
    assert resident() - before < 4 * MEBIBYTE
    array[:, :4096] = 1  # a page of each of 64 lines
    assert 64 * 4096 <= resident() - before < 4 * MEBIBYTE
    assert array.sum() == 64 * 4096


def test_arrays_are_as_they_were_asked_for() -> None:
    for touched in (True, False):
        array = zeros((3, 5, 7000), np.float32, touched=touched)
        assert array.shape == (3, 5, 7000)
        assert array.dtype == np.float32
        array += 1.0
        assert array.sum() == array.size
