"""The wire contract only grows: what ``wire_v1.txt`` lists stays as it is.

docs/compatibility.md has the policy. The list has a line for each call, field and value of an enum.
Whoever adds one of these adds its line. A line that would have to be changed or removed stands for
a change that breaks clients or servers of other versions.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
)

from dragoman.v1 import translation_pb2

SNAPSHOT = Path(__file__).with_name("wire_v1.txt")


def current() -> FileDescriptorProto:
    file = FileDescriptorProto()
    translation_pb2.DESCRIPTOR.CopyToProto(file)
    return file


def contract_of(file: FileDescriptorProto) -> dict[str, str]:
    """Return the name of each call, field and value, and what must not change of it."""
    found = {"package": file.package}
    for service in file.service:
        for call in service.method:
            found[f"{service.name}.{call.name}"] = describe_call(call)
    for name, message in messages_in(file.message_type):
        for field in message.field:
            found[f"{name}.{field.name}"] = describe_field(field, message)
        found |= values_of(message.enum_type, f"{name}.")
    return found | values_of(file.enum_type)


def messages_in(
    messages: Iterable[DescriptorProto], prefix: str = ""
) -> Iterator[tuple[str, DescriptorProto]]:
    for message in messages:
        yield prefix + message.name, message
        yield from messages_in(message.nested_type, f"{prefix}{message.name}.")


def values_of(enums: Iterable[EnumDescriptorProto], prefix: str = "") -> dict[str, str]:
    return {
        f"{prefix}{enum.name}.{value.name}": str(value.number)
        for enum in enums
        for value in enum.value
    }


def short(name: str) -> str:
    """Return the name of a message without the package, where it is ours."""
    return name.removeprefix(f".{translation_pb2.DESCRIPTOR.package}.").lstrip(".")


def describe_field(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    """Return its number, type and label."""
    kind = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        label = "repeated"
    elif field.proto3_optional:
        label = "optional"
    elif field.HasField("oneof_index"):
        label = f"oneof {message.oneof_decl[field.oneof_index].name}"
    else:
        label = "singular"
    return f"{field.number} {short(field.type_name) or kind} {label}"


def describe_call(call: MethodDescriptorProto) -> str:
    """Return what is sent and what comes back, and whether these are streams."""
    sent = f"({'stream ' if call.client_streaming else ''}{short(call.input_type)})"
    return f"{sent} returns ({'stream ' if call.server_streaming else ''}{short(call.output_type)})"


def read_snapshot() -> dict[str, str]:
    lines = [line for line in SNAPSHOT.read_text().splitlines() if not line.startswith("#")]
    pairs = [line.split(" = ") for line in lines if line]
    listed = dict(pairs)
    assert len(listed) == len(pairs), "a name is listed twice"
    return listed


def breaches(file: FileDescriptorProto) -> dict[str, str | None]:
    """Return what is listed and not so: its name, and what there is in its place, or None."""
    found = contract_of(file)
    return {
        name: found.get(name) for name, said in read_snapshot().items() if found.get(name) != said
    }


def test_nothing_was_removed_or_changed() -> None:
    assert breaches(current()) == {}, "this would need dragoman.v2: see docs/compatibility.md"


def test_everything_is_listed() -> None:
    listed = read_snapshot()
    missing = [f"{n} = {said}" for n, said in contract_of(current()).items() if n not in listed]
    assert missing == [], f"add these lines to {SNAPSHOT.name}"


def remove_a_field(file: FileDescriptorProto) -> None:
    del file.message_type[0].field[1]


def rename_a_field(file: FileDescriptorProto) -> None:
    file.message_type[0].field[1].name = "language"


def renumber_a_field(file: FileDescriptorProto) -> None:
    file.message_type[0].field[1].number = 9


def retype_a_field(file: FileDescriptorProto) -> None:
    file.message_type[0].field[1].type = FieldDescriptorProto.TYPE_BYTES


def repeat_a_field(file: FileDescriptorProto) -> None:
    file.message_type[0].field[1].label = FieldDescriptorProto.LABEL_REPEATED


def let_a_field_be_unset(file: FileDescriptorProto) -> None:
    file.message_type[0].field[1].proto3_optional = True


@pytest.mark.parametrize(
    ("change", "instead"),
    [
        (remove_a_field, None),
        (rename_a_field, None),
        (renumber_a_field, "9 string singular"),
        (retype_a_field, "2 bytes singular"),
        (repeat_a_field, "2 string repeated"),
        (let_a_field_be_unset, "2 string optional"),
    ],
)
def test_a_field_that_changes_is_seen(
    change: Callable[[FileDescriptorProto], None], instead: str | None
) -> None:
    file = current()
    change(file)
    assert breaches(file) == {"TranslateRequest.source_language": instead}


def test_a_call_or_a_value_that_changes_is_seen() -> None:
    file = current()
    file.service[0].method[0].server_streaming = True
    del file.service[0].method[1]
    (reasons,) = (enum for enum in file.enum_type if enum.name == "FinishReason")
    reasons.value[1].number = 9
    assert breaches(file) == {
        "TranslationService.Translate": ("(TranslateRequest) returns (stream TranslateResponse)"),
        "TranslationService.TranslateStream": None,
        f"FinishReason.{reasons.value[1].name}": "9",
    }


def test_what_is_added_breaks_nothing() -> None:
    file = current()
    file.message_type[0].field.add(
        name="added", number=99, type=FieldDescriptorProto.TYPE_STRING, label=1
    )
    file.message_type.add(name="Added")
    file.service[0].method.add(name="Added", input_type=".x", output_type=".y")
    assert breaches(file) == {}
