"""From a request's bytes to a message, with an error that says what is wrong."""

from collections.abc import Iterator
from functools import cache
from typing import TypeVar

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.message import DecodeError, Message

from dragoman_server.service.errors import InvalidArgumentError

M = TypeVar("M", bound=Message)


def decode(raw: bytes, kind: type[M], max_bytes: int) -> M:
    """Return the message. Raises ``InvalidArgumentError`` for what is too long, or is none."""
    if len(raw) > max_bytes:
        raise InvalidArgumentError(
            "", f"the request has {len(raw)} bytes: the limit is {max_bytes}", reason="TOO_LARGE"
        )
    try:
        return kind.FromString(raw)
    except DecodeError:
        field = _not_utf8(raw, kind)
    if field:
        raise InvalidArgumentError(field, "is not valid UTF-8", reason="INVALID_UTF8")
    raise InvalidArgumentError(
        "", f"the request is not a {kind.DESCRIPTOR.full_name}", reason="MALFORMED"
    )


def _not_utf8(raw: bytes, kind: type[Message]) -> str | None:
    """Return the path of the first text that is not UTF-8, parsing again with bytes for texts."""
    try:
        message = _lenient(kind.DESCRIPTOR.full_name, kind.DESCRIPTOR.file).FromString(raw)
    except DecodeError:
        return None
    return next(_invalid(message), None)


def _invalid(message: Message, prefix: str = "") -> Iterator[str]:
    for field, value in message.ListFields():
        # Older versions of protobuf can't be asked whether a field is repeated.
        is_single = isinstance(value, Message | bytes | int | float)
        for number, item in enumerate([value] if is_single else value):
            path = f"{prefix}{field.name}" + ("" if is_single else f"[{number}]")
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                yield from _invalid(item, f"{path}.")
            elif field.type == FieldDescriptor.TYPE_BYTES and not _is_utf8(item):
                yield path


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


@cache  # one for each kind of request
def _lenient(name: str, file: FileDescriptor) -> type[Message]:
    """Return a message class like the one of this name, whose texts may be any bytes."""
    pool = descriptor_pool.DescriptorPool()
    _add_lenient(pool, file, set())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def _add_lenient(
    pool: descriptor_pool.DescriptorPool, file: FileDescriptor, added: set[str]
) -> None:
    if file.name in added:
        return
    added.add(file.name)
    for needed in file.dependencies:
        _add_lenient(pool, needed, added)
    copy = FileDescriptorProto()
    file.CopyToProto(copy)
    for message in copy.message_type:
        _loosen(message)
    pool.Add(copy)


def _loosen(message: DescriptorProto) -> None:
    for field in message.field:
        if field.type == FieldDescriptorProto.TYPE_STRING:
            field.type = FieldDescriptorProto.TYPE_BYTES
    for nested in message.nested_type:
        if not nested.options.map_entry:
            _loosen(nested)
