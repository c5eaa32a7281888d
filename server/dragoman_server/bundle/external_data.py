"""Which files an ONNX graph would read, found without onnx and before onnxruntime sees it.

A tensor may name a file that holds its data, and that name may point anywhere. This walks the
protobuf message by the field numbers of ``onnx.proto``, far enough to reach every tensor.
"""

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# Message -> field number -> message of that field, for the fields on the way to tensors.
_FIELDS: dict[str, dict[int, str]] = {
    "Model": {7: "Graph", 20: "TrainingInfo", 25: "Function"},
    "TrainingInfo": {1: "Graph", 2: "Graph"},
    "Function": {7: "Node", 11: "Attribute"},
    "Graph": {1: "Node", 5: "Tensor", 15: "SparseTensor"},
    "Node": {5: "Attribute"},
    "Attribute": {
        5: "Tensor",
        6: "Graph",
        10: "Tensor",
        11: "Graph",
        22: "SparseTensor",
        23: "SparseTensor",
    },
    "SparseTensor": {1: "Tensor", 2: "Tensor"},
    "Tensor": {13: "Entry"},
}
_MAX_DEPTH = 32


def external_files(model: bytes) -> set[str]:
    """Return the files that tensors of a graph are stored in. Raises ``ValueError`` if not ONNX."""
    return set(_locations(memoryview(model), "Model", 0))


def _locations(message: memoryview, kind: str, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    if kind == "Entry":
        entry = {number: bytes(value) for number, value in _fields(message)}
        if entry.get(1) == b"location":
            yield entry.get(2, b"").decode("utf-8")
        return
    for number, value in _fields(message):
        if (inner := _FIELDS[kind].get(number)) is not None:
            yield from _locations(value, inner, depth + 1)


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield number and content of each length-delimited field of a message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if not 8 <= key < 1 << 32:
            # Parsers disagree on what such a tag means: one might see a field that we do not.
            raise ValueError(f"tag {key}")
        wire_type = key & 7
        if wire_type == _VARINT:
            _, at = _varint(message, at)
        elif wire_type in (_FIXED64, _FIXED32):
            at += 8 if wire_type == _FIXED64 else 4
        elif wire_type == _BYTES:
            length, at = _varint(message, at)
            if at + length > len(message):
                raise ValueError("cut short")
            yield key >> 3, message[at : at + length]
            at += length
        else:
            raise ValueError(f"wire type {wire_type}")
    if at > len(message):
        raise ValueError("cut short")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise ValueError("cut short")
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
