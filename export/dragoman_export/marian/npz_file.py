"""Marian's form of a model as an archive of numpy arrays, ``model.npz``.

An archive is opened without trust: each array's size is compared with what the archive has for it
before memory is taken, and nothing is unpickled.
"""

import io
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from dragoman_export.marian.model_file import (
    CONFIG,
    SPECIAL,
    ModelFile,
    Weight,
    checked_name,
    decoded_text,
)

_SUFFIX = ".npy"
_MAX_HEADER = 4096
"""Most bytes of an array's header."""


def read_npz(path: Path) -> ModelFile:
    """Read a file of this form. Raises ``ValueError`` if it is damaged or has other types."""
    weights: dict[str, Weight] = {}
    config = ""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_sizes(members, path.stat().st_size)
            for member in members:
                name = member.filename.removesuffix(_SUFFIX)
                if name != CONFIG and name.startswith(SPECIAL):
                    continue
                array = _array(name, archive.read(member))
                if name == CONFIG:
                    config = decoded_text(name, array.tobytes())
                else:
                    weights[checked_name(name, weights)] = _weight(name, array)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        # Among them a checksum that differs, and an archive with a password.
        raise ValueError(f"not an archive of arrays ({error})") from None
    return ModelFile(weights, config)


def _check_sizes(members: list[zipfile.ZipInfo], size: int) -> None:
    """Raise ``ValueError`` for an archive that would grow when it is read."""
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{member.filename} is compressed, which Marian's own are not")
    if sum(member.file_size for member in members) > size:
        raise ValueError("not an archive of arrays (they take more than the file has)")


def _array(name: str, data: bytes) -> npt.NDArray[Any]:
    stream = io.BytesIO(data)
    try:
        version = npy.read_magic(stream)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, is_fortran, dtype = read(stream, max_header_size=_MAX_HEADER)
    except (KeyError, ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"{name} is no array") from None
    if is_fortran and len(shape) > 1:
        raise ValueError(f"{name} is stored column by column, which Marian does not read either")
    if dtype.hasobject or dtype.itemsize == 0 or dtype.names is not None:
        raise ValueError(f"{name} is of type {dtype}, not of numbers")
    values = data[stream.tell() :]
    if min(shape, default=1) < 1 or math.prod(shape) * dtype.itemsize != len(values):
        raise ValueError(f"{name} is of shape {list(shape)}, and has {len(values)} bytes")
    return np.frombuffer(values, dtype).reshape(shape)


def _weight(name: str, array: npt.NDArray[Any]) -> Weight:
    if array.dtype not in (np.dtype("<f4"), np.dtype("<f2")):
        raise ValueError(f"{name} is of type {array.dtype}: it must be float32")
    return Weight(array.astype(np.float32))
