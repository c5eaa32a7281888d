"""Large arrays of zeros: touched at the start, or only where they are used."""

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def zeros(shape: tuple[int, ...], kind: npt.DTypeLike, *, touched: bool) -> npt.NDArray[Any]:
    """Return an array of zeros.

    Touched, all of it is in memory from the start, in huge pages: numpy asks the system for them.
    Otherwise memory is taken where something is written, in small pages: of a cache for sentences
    of 256 tokens, one of 24 then takes a tenth. Lines of a cache lie far apart, so looking up
    small pages takes longer: a step of 32 rows took 4 to 9% longer.
    """
    array: npt.NDArray[Any] = np.empty(0, kind)
    size = int(np.prod(shape)) * array.itemsize
    if touched or size < mmap.PAGESIZE:
        array = np.empty(shape, kind)
        array.fill(0)
        return array
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, kind).reshape(shape)
