"""Marian's binary form of a model, ``model.bin``, as Bergamot and Firefox have it.

Little endian throughout:

    u64 version, u64 number of items
    for each item: u64 length of its name, u64 type, u64 number of dimensions, u64 bytes of data
    all names, each with a zero at its end; all shapes, as i32
    u64 length of a gap, and the gap; all data

A weight of 8 bits has its values as int8, and after them the multiplier that made them whole. Such
a matrix is stored transposed, [out, in], but a table of embeddings is not.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from dragoman_export.marian.model_file import (
    CONFIG,
    SPECIAL,
    Floats,
    ModelFile,
    Weight,
    checked_name,
    decoded_text,
)

VERSION = 1
INT8, FLOAT32, INTGEMM8 = 0x0101, 0x0404, 0x4101
"""Types of items that are read: text, floats, and weights of 8 bits."""
_OTHERS = {
    0x0402: "float16",
    0x0408: "float64",
    0x0802: "packed16",
    0x1801: "packed8avx2",
    0x2801: "packed8avx512",
    0x4102: "intgemm16",
}
"""Types of items that are not read, for the message that says so."""
EMBEDDINGS = "Wemb"
"""What the name of a table of embeddings has in it."""
_WORD, _HEADER = struct.Struct("<Q"), struct.Struct("<4Q")
_MAX_DIMENSIONS = 8


@dataclass(frozen=True)
class _Item:
    name: str
    type: int
    shape: tuple[int, ...]
    data: memoryview


def read_binary(path: Path) -> ModelFile:
    """Read a file of this form. Raises ``ValueError`` if it is damaged or has other types."""
    content = path.read_bytes()
    if not content:
        raise ValueError("empty")
    weights: dict[str, Weight] = {}
    config = ""
    for item in _items(memoryview(content)):
        if item.name == CONFIG:
            config = decoded_text(item.name, bytes(item.data))
        elif not item.name.startswith(SPECIAL):
            weights[checked_name(item.name, weights)] = _weight(item)
    return ModelFile(weights, config)


class _Cursor:
    """A place in a file, which nothing is read behind the end of."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes between the place and the end of the file."""
        return len(self._content) - self._at

    def take(self, size: int) -> memoryview:
        """Return the next bytes. Raises ``ValueError`` if there are not as many."""
        if size > self.left:
            raise ValueError(
                f"cut off: {size} bytes are to follow at {self._at}, and {self.left} do"
            )
        self._at += size
        return self._content[self._at - size : self._at]

    def word(self) -> int:
        """Return the next whole number."""
        (number,) = _WORD.unpack(self.take(_WORD.size))
        return int(number)


def _items(content: memoryview) -> list[_Item]:
    cursor = _Cursor(content)
    version = cursor.word()
    if version != VERSION:
        raise ValueError(f"not a model of Marian's: its first number is {version}, not {VERSION}")
    headers = list(_HEADER.iter_unpack(cursor.take(cursor.word() * _HEADER.size)))
    names = [_name(cursor.take(length)) for length, *_ in headers]
    shapes = [_shape(name, cursor, header[2]) for name, header in zip(names, headers, strict=True)]
    cursor.take(cursor.word())
    return [
        _Item(name, kind, shape, cursor.take(size))
        for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True)
    ]


def _name(data: memoryview) -> str:
    text = bytes(data)
    if not text.endswith(b"\0") or not text[:-1].isascii() or not text[:-1].decode().isprintable():
        raise ValueError("not a model of Marian's: an item has no name")
    return text[:-1].decode()


def _shape(name: str, cursor: _Cursor, dimensions: int) -> tuple[int, ...]:
    if not 1 <= dimensions <= _MAX_DIMENSIONS:
        raise ValueError(f"{name} has {dimensions} dimensions")
    shape = struct.unpack(f"<{dimensions}i", cursor.take(4 * dimensions))
    if min(shape) < 1:
        raise ValueError(f"{name} is of shape {list(shape)}")
    return shape


def _weight(item: _Item) -> Weight:
    if item.type == FLOAT32:
        return Weight(_array(item, 4).view("<f4").astype(np.float32).reshape(item.shape))
    if item.type != INTGEMM8:
        _refuse_type(item)
    stored = _array(item, 1, more=4)
    multiplier = float(stored[-4:].view("<f4")[0])
    if not (math.isfinite(multiplier) and multiplier > 0):
        raise ValueError(f"{item.name} has the multiplier {multiplier}")
    values: Floats = stored[:-4].view(np.int8).astype(np.float32)
    if EMBEDDINGS in item.name or len(item.shape) == 1:
        values = values.reshape(item.shape)
    else:
        *first, last = item.shape
        values = values.reshape(last, math.prod(first)).T.reshape(item.shape)
    values /= np.float32(multiplier)
    return Weight(values, multiplier)


def _array(item: _Item, width: int, more: int = 0) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return an item's data without what fills it up: each value's bytes, and some more."""
    wanted = math.prod(item.shape) * width + more
    if wanted > len(item.data):
        raise ValueError(
            f"{item.name} is of shape {list(item.shape)}, which takes {wanted} bytes, and has "
            f"{len(item.data)}"
        )
    return np.frombuffer(item.data[:wanted], np.uint8)


def _refuse_type(item: _Item) -> NoReturn:
    kind = _OTHERS.get(item.type, f"type {item.type:#06x}")
    raise ValueError(f"{item.name} is stored as {kind}: it must be float32 or intgemm8")
