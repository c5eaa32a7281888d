"""Messages of the wire as JSON: protobuf's mapping, with the names of fields as in the .proto.

Requests may write them in lowerCamelCase too. What is wrong with a request is said by field, as
over gRPC.
"""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from google.protobuf.message import Message

from dragoman_server.service.errors import InvalidArgumentError

M = TypeVar("M", bound=Message)

Descriptor = Any
"""What protobuf says of a kind of message; its two implementations have a class each."""

INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
"""The least and the largest number of each kind of whole numbers."""
_MAX_FLOAT = 3.4028234e38
"""The largest number of 32 bits."""


@dataclass(frozen=True)
class Field:
    """A field of a message, and what its descriptor does not say in all versions of protobuf."""

    descriptor: FieldDescriptor
    is_repeated: bool


@cache  # one for each kind of message
def fields_of(message: Descriptor) -> dict[str, Field]:
    """Return the fields of a message by their names in the .proto."""
    copied = DescriptorProto()
    message.CopyToProto(copied)
    repeated = {
        field.name for field in copied.field if field.label == FieldDescriptorProto.LABEL_REPEATED
    }
    return {field.name: Field(field, field.name in repeated) for field in message.fields}


@cache  # one for each kind of message
def _fields_by_any_name(message: Descriptor) -> dict[str, Field]:
    fields = fields_of(message)
    return {field.descriptor.json_name: field for field in fields.values()} | fields


def from_json(value: Any, kind: type[M]) -> M:
    """Return the message that a JSON value stands for.

    Raises ``InvalidArgumentError`` that names the field for what is none.
    """
    _check_message(value, kind.DESCRIPTOR, "")
    try:
        return json_format.ParseDict(value, kind())
    except (json_format.ParseError, ValueError):
        raise InvalidArgumentError(
            "", f"the body is not a {kind.DESCRIPTOR.full_name}", reason="MALFORMED"
        ) from None


def to_value(message: Message) -> dict[str, Any]:
    """Return what stands for a message in JSON. Fields without presence are always there."""
    value: dict[str, Any] = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return value


def to_json(value: Any) -> bytes:
    """Return JSON in UTF-8, on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def is_text(value: object) -> bool:
    """Whether a JSON value is a text of Unicode: half of a surrogate pair is none."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_message(value: Any, message: Descriptor, path: str) -> None:
    if not isinstance(value, dict):
        raise InvalidArgumentError(
            path, "must be an object" if path else "the body must be an object"
        )
    fields = _fields_by_any_name(message)
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            known = ", ".join(fields_of(message))
            who = "" if path else "the body "
            raise InvalidArgumentError(path, f"{who}has a field that is none of {known}")
        inner = f"{path}.{field.descriptor.name}" if path else field.descriptor.name
        if item is None:
            continue  # the same as unset
        if not field.is_repeated:
            _check_value(item, field.descriptor, inner)
        elif isinstance(item, list):
            for number, each in enumerate(item):
                _check_value(each, field.descriptor, f"{inner}[{number}]")
        else:
            raise InvalidArgumentError(inner, "must be a list")


def _check_value(value: Any, field: FieldDescriptor, path: str) -> None:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_MESSAGE:
        _check_message(value, field.message_type, path)
    elif kind == FieldDescriptor.CPPTYPE_STRING:
        if not isinstance(value, str):
            raise InvalidArgumentError(path, "must be a text")
        if not is_text(value):
            raise InvalidArgumentError(path, "is not valid UTF-8", reason="INVALID_UTF8")
    elif kind == FieldDescriptor.CPPTYPE_BOOL:
        if not isinstance(value, bool):
            raise InvalidArgumentError(path, "must be true or false")
    elif kind == FieldDescriptor.CPPTYPE_ENUM:
        assert field.enum_type is not None
        names = field.enum_type.values_by_name
        if not isinstance(value, str) or value not in names:
            raise InvalidArgumentError(path, f"must be one of {', '.join(names)}")
    elif kind in INTEGERS:
        least, most = INTEGERS[kind]
        number = _integer(value)
        if number is None or not least <= number <= most:
            raise InvalidArgumentError(path, f"must be a whole number from {least} to {most}")
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgumentError(path, "must be a number")
    elif not abs(value) <= _MAX_FLOAT:
        raise InvalidArgumentError(path, "is too large")


def _integer(value: Any) -> int | None:
    """Return a whole number. Those of 64 bits may be texts, as JavaScript can't write them."""
    if isinstance(value, str) and len(value) <= 20 and value.isascii() and value.isdecimal():
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
