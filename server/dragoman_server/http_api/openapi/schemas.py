"""Schemas of the wire's messages, for OpenAPI: made of their descriptors and comments."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.http_api.json_messages import INTEGERS, Field, fields_of

_OPENING = re.compile(r"(?:message|enum) (\w+) \{")
_DEFINITION = re.compile(r"(?:(?:optional|repeated) )?(?:[\w.]+ )?(\w+) = \d+;")

_DIGITS = {"type": "string", "pattern": "^-?[0-9]{1,20}$"}


def message_schemas(*, requests: set[str]) -> dict[str, Any]:
    """Return the schema of each message by its name; ``requests`` are those that clients send.

    An answer has all fields but those that may be unset. In a request all may be left out.
    """
    sent = _reachable(requests)
    schemas = {
        name: _message_schema(message, is_request=name in sent)
        for name, message in pb.DESCRIPTOR.message_types_by_name.items()
    }
    for name, enum in pb.DESCRIPTOR.enum_types_by_name.items():
        schemas[name] = {"type": "string", "enum": list(enum.values_by_name)}
    return schemas


def _reachable(names: set[str]) -> set[str]:
    """Return the names of messages, and of those that they have as fields."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            message = pb.DESCRIPTOR.message_types_by_name[name]
            waiting += [f.message_type.name for f in message.fields if f.message_type is not None]
    return found


def _message_schema(message: Any, *, is_request: bool) -> dict[str, Any]:
    fields = fields_of(message)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _field_schema(message.name, each) for name, each in fields.items()},
        "additionalProperties": False,
    }
    if comment := comments().get((message.name, "")):
        schema["description"] = comment
    required = [name for name, each in fields.items() if not each.descriptor.has_presence]
    if not is_request and required:
        schema["required"] = required
    return schema


def _field_schema(message: str, field: Field) -> dict[str, Any]:
    schema = _value_schema(field.descriptor)
    if field.is_repeated:
        schema = {"type": "array", "items": schema}
    if comment := comments().get((message, field.descriptor.name)):
        schema["description"] = comment
    return schema


def _value_schema(field: FieldDescriptor) -> dict[str, Any]:
    kind = field.cpp_type
    if field.message_type is not None:
        if field.message_type.name == "Duration":
            return {"type": "string", "pattern": r"^[0-9.]+s$"}
        if field.message_type.file is not pb.DESCRIPTOR:
            return {"type": "object"}
        return {"$ref": f"#/components/schemas/{field.message_type.name}"}
    if field.enum_type is not None:
        return {"$ref": f"#/components/schemas/{field.enum_type.name}"}
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return {"type": "string"}
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return {"type": "boolean"}
    if kind in INTEGERS:
        least, most = INTEGERS[kind]
        number = {"type": "integer", "minimum": least, "maximum": most}
        # As JSON has them that JavaScript reads too: protobuf writes those of 64 bits as texts.
        return {"anyOf": [number, _DIGITS]} if most > 2**32 else number
    return {"type": "number"}


@cache
def comments() -> dict[tuple[str, str], str]:
    """Return the comments of the .proto by message and field; of a message itself, without one."""
    source = files("dragoman.v1").joinpath("translation.proto").read_text(encoding="utf-8")
    return dict(_comments(source))


def _comments(source: str) -> Iterator[tuple[tuple[str, str], str]]:
    message, comment = "", list[str]()
    for line in map(str.strip, source.splitlines()):
        if line.startswith("//"):
            comment.append(line.removeprefix("//").strip())
            continue
        if opening := _OPENING.match(line):
            message = opening[1]
            yield (message, ""), " ".join(comment)
        elif definition := _DEFINITION.match(line):
            yield (message, definition[1]), " ".join(comment)
        comment = []
