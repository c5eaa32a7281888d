"""CTranslate2's ``model.bin``: its variables, read as numbers, texts and float32 weights.

Little endian throughout; a text is a u16 length with its NUL, and the bytes:

    u32 version, text specification, u32 revision
    u32 count of variables, and for each: text name, u8 rank, u32 × rank shape,
        u8 type, u32 bytes, and the data
    u32 count of aliases, and for each: text alias, text name of the variable

Before version 4, the type is the bytes of an item, and items are counted instead of bytes. Weights
of 8 bits have a scale for each row, those of 16 bits one for all: value = stored / scale. Every
count and size is checked against the bytes that are left before anything is read for it.
"""

import math
import struct
from dataclasses import dataclass
from typing import IO, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman_export.errors import ExportError

VERSIONS = (2, 6)
"""First and last version of the file's layout that is read."""
_MAX_VARIABLES = 20_000
_MAX_RANK = 4
_MAX_VALUES = 1 << 30
"""Most values of all weights, each counted under all its names: they become float32, whatever they
are in the file, and a model has them all."""
_MAX_TEXT = 1024
"""Most bytes of a name."""
_TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
_ITEM_BYTES = {"float32": 4, "int8": 1, "int16": 2, "int32": 4, "float16": 2, "bfloat16": 2}
_BY_ITEM_BYTES = {4: "float32", 2: "int16", 1: "int8"}
_INT16_SCALE = 1000.0
"""Scale of 16-bit weights in files that state none."""
_SCALE = "_scale"

Stored = npt.NDArray[np.generic]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ModelFile:
    """The variables of a CTranslate2 model."""

    specification: str
    """What the model is: ``TransformerSpec`` for an encoder and a decoder."""
    revision: int
    """Revision of the specification, which decides how variables are named."""
    numbers: dict[str, int | float]
    """Variables that are one number, such as ``encoder/num_heads``. Flags are whole numbers."""
    texts: dict[str, str]
    """Variables that are a text; files before version 6 name special tokens so."""
    weights: dict[str, Tensor]
    """All other variables, as float32. Those that are one in the file are one tensor here."""


class _Reader:
    """Reads what a file consists of; knows how many bytes are left."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream = stream
        self.left = size
        self._values_left = _MAX_VALUES

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise ExportError("model.bin is cut off")
        data = self._stream.read(count)
        if len(data) < count:
            raise ExportError("model.bin is cut off")
        self.left -= count
        return data

    def claim(self, values: int) -> None:
        """Count values that are about to be read, or that get another name."""
        self._values_left -= values
        if self._values_left < 0:
            raise ExportError(f"model.bin has more than {_MAX_VALUES} values")

    def number(self, kind: str) -> int:
        (value,) = struct.unpack(f"<{kind}", self.take(struct.calcsize(kind)))
        return int(value)

    def text(self) -> str:
        length = self.number("H")
        if not 1 <= length <= _MAX_TEXT:
            raise ExportError(f"model.bin has a name of {length} bytes")
        data = self.take(length)
        try:
            text = data[:-1].decode()
        except UnicodeDecodeError:
            text = "\0"
        if data[-1] or not text.isprintable():
            raise ExportError("model.bin has a name that is no text")
        return text

    def count(self, what: str) -> int:
        value = self.number("I")
        if value > _MAX_VARIABLES:
            raise ExportError(f"model.bin has {value} {what}, which no model needs")
        return value


def read_model(stream: IO[bytes], size: int) -> ModelFile:
    """Read ``model.bin``, which has ``size`` bytes. Raises ``ExportError`` if it is damaged."""
    reader = _Reader(stream, size)
    version = reader.number("I")
    first, last = VERSIONS
    if not first <= version <= last:
        raise ExportError(f"model.bin is of version {version}: versions {first} to {last} are read")
    specification, revision = reader.text(), reader.number("I")
    stored: dict[str, tuple[str, Stored]] = {}
    for _ in range(reader.count("variables")):
        name, kind, array = _variable(reader, version)
        if name in stored:
            raise ExportError(f"model.bin has {name} twice")
        stored[name] = kind, array
    aliases = _aliases(reader, stored) if version >= 3 else {}
    if reader.left:
        raise ExportError(f"model.bin has {reader.left} bytes too many")
    numbers, texts, weights = _decoded(stored)
    return ModelFile(
        specification,
        revision,
        _with_aliases(numbers, aliases),
        _with_aliases(texts, aliases),
        _with_aliases(weights, aliases),
    )


def _with_aliases(table: dict[str, T], aliases: dict[str, str]) -> dict[str, T]:
    return table | {alias: table[name] for alias, name in aliases.items() if name in table}


def _variable(reader: _Reader, version: int) -> tuple[str, str, Stored]:
    name = reader.text()
    rank = reader.number("B")
    if rank > _MAX_RANK:
        raise ExportError(f"model.bin: {name} has {rank} dimensions")
    shape = tuple(reader.number("I") for _ in range(rank))
    if version >= 4:
        number, held = reader.number("B"), reader.number("I")
        kind = _TYPES[number] if number < len(_TYPES) else None
    else:
        number = reader.number("B")
        kind, held = _BY_ITEM_BYTES.get(number), reader.number("I") * number
    if kind is None:
        raise ExportError(f"model.bin: {name} is of type {number}, which is not known")
    if math.prod(shape) * _ITEM_BYTES[kind] != held:
        raise ExportError(f"model.bin: {name} is {list(shape)} of {kind}, but has {held} bytes")
    reader.claim(math.prod(shape))
    data = reader.take(held)
    kept = "uint16" if kind == "bfloat16" else kind
    return name, kind, np.frombuffer(data, np.dtype(kept).newbyteorder("<")).reshape(shape)


def _aliases(reader: _Reader, stored: dict[str, tuple[str, Stored]]) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for _ in range(reader.count("aliases")):
        alias, name = reader.text(), reader.text()
        if name not in stored:
            raise ExportError(f"model.bin: {alias} stands for {name}, which it does not have")
        if alias in stored or alias in aliases:
            raise ExportError(f"model.bin has {alias} twice")
        reader.claim(stored[name][1].size)
        aliases[alias] = name
    return aliases


def _decoded(
    stored: dict[str, tuple[str, Stored]],
) -> tuple[dict[str, int | float], dict[str, str], dict[str, Tensor]]:
    """Tell numbers, texts and weights apart. Takes what it has read out of ``stored``."""
    scales = {name: stored.pop(name)[1] for name in [*stored] if _is_scale(name, stored)}
    numbers: dict[str, int | float] = {}
    texts: dict[str, str] = {}
    weights: dict[str, Tensor] = {}
    for name in [*stored]:
        kind, array = stored.pop(name)
        scale = scales.get(name + _SCALE)
        if array.ndim == 0 and scale is None:
            numbers[name] = int(array) if "int" in kind else float(_as_float(kind, array))
        elif kind == "int8" and array.ndim == 1 and scale is None:
            texts[name] = array.tobytes().decode(errors="replace")
        else:
            weights[name] = _weight(name, kind, array, scale)
    return numbers, texts, weights


def _is_scale(name: str, stored: dict[str, tuple[str, Stored]]) -> bool:
    """Whether a variable is the scale of another, and not a number that is called so."""
    return name.endswith(_SCALE) and name.removesuffix(_SCALE) in stored


def _as_float(kind: str, array: Stored) -> npt.NDArray[np.float32]:
    if kind == "bfloat16":  # the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def _weight(name: str, kind: str, array: Stored, scale: Stored | None) -> Tensor:
    if kind == "int16" and scale is None:
        scale = np.full((), _INT16_SCALE, np.float32)
    if kind == "int32":
        raise ExportError(f"model.bin: {name} is of int32, as no weight of a Transformer is")
    if (kind in ("int8", "int16")) != (scale is not None):
        raise ExportError(
            f"model.bin: {name} is of {kind} and has {'no' if scale is None else 'a'} scale"
        )
    values = _as_float(kind, array)
    if scale is not None:
        with np.errstate(over="ignore"):  # is looked for next
            values /= _checked_scale(name, array, scale)
    if not np.isfinite(values).all():
        raise ExportError(f"model.bin: {name} has what is not a finite number")
    return torch.from_numpy(values)


def _checked_scale(name: str, array: Stored, scale: Stored) -> npt.NDArray[np.float32]:
    """Return a scale in a shape that the values can be divided by."""
    if scale.shape not in ((), array.shape[:1]):
        raise ExportError(
            f"model.bin: {name}{_SCALE} is {list(scale.shape)}, and {name} {list(array.shape)}"
        )
    if scale.dtype != np.float32:
        raise ExportError(f"model.bin: {name}{_SCALE} is of {scale.dtype}, not of float32")
    values = scale.astype(np.float32)
    if not (np.isfinite(values).all() and (values != 0).all()):
        raise ExportError(f"model.bin: {name}{_SCALE} is zero or not finite somewhere")
    return values.reshape(scale.shape + (1,) * (array.ndim - 1) if scale.ndim else ())
