"""The wire contract: its stubs are fresh, load everywhere, and keep buf's STANDARD rules."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import google.rpc
import grpc
import grpc_tools
import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from grpc_tools import protoc

from dragoman.v1 import translation_pb2, translation_pb2_grpc
from support import ROOT

PROTOS = ROOT / "protos"
FILE = "dragoman/v1/translation.proto"
SERVICE = translation_pb2.DESCRIPTOR.services_by_name["TranslationService"]


def messages(file: FileDescriptorProto) -> Iterator[DescriptorProto]:
    waiting = list(file.message_type)
    while waiting:
        message = waiting.pop()
        yield message
        waiting += message.nested_type


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> FileDescriptorProto:
    """What the .proto file says now."""
    output = tmp_path_factory.mktemp("protos") / "set.bin"
    includes = [
        PROTOS,
        Path(google.rpc.__path__[0]).parents[1],
        Path(grpc_tools.__path__[0]) / "_proto",
    ]
    arguments = [f"--proto_path={path}" for path in includes]
    assert protoc.main(["protoc", *arguments, f"--descriptor_set_out={output}", FILE]) == 0
    (file,) = FileDescriptorSet.FromString(output.read_bytes()).file
    for message in messages(file):
        for field in message.field:
            field.ClearField("json_name")  # which stubs leave out
    return file


def test_the_stubs_are_fresh(compiled: FileDescriptorProto) -> None:
    committed = FileDescriptorProto()
    translation_pb2.DESCRIPTOR.CopyToProto(committed)
    assert committed == compiled, "run make protos"


def test_the_grpc_stubs_have_every_call() -> None:
    with grpc.insecure_channel("localhost:1") as channel:
        stub = translation_pb2_grpc.TranslationServiceStub(channel)
        calls = {name for name in vars(stub) if not name.startswith("_")}
    assert calls == {method.name for method in SERVICE.methods}


def test_the_stubs_load_with_the_oldest_protobuf_that_is_allowed() -> None:
    stub = (PROTOS / FILE.replace(".proto", "_pb2.py")).read_text()
    made_for = re.search(r"Protobuf Python Version: (\d+)\.(\d+)", stub)
    project = (PROTOS.parent / "pyproject.toml").read_text()
    allowed = re.search(r'"protobuf>=(\d+)\.(\d+),<(\d+)"', project)
    assert made_for is not None
    assert allowed is not None
    assert made_for.groups() == allowed.groups()[:2]
    assert int(allowed[3]) == int(made_for[1]) + 2  # the next major version loads it too


# buf's STANDARD rules, by their names


def enums(file: FileDescriptorProto) -> list[EnumDescriptorProto]:
    return [*file.enum_type, *(e for message in messages(file) for e in message.enum_type)]


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def breaches(file: FileDescriptorProto) -> list[str]:
    """Each rule that is broken, and where."""
    found: list[str] = []

    def hold(rule: str, name: str, holds: object) -> None:
        if not holds:
            found.append(f"{rule}: {name}")

    package, path = file.package, Path(file.name)
    hold("PACKAGE_DEFINED", file.name, package)
    hold("PACKAGE_DIRECTORY_MATCH", file.name, str(path.parent) == package.replace(".", "/"))
    hold("PACKAGE_LOWER_SNAKE_CASE", package, re.fullmatch(r"[a-z0-9_.]+", package))
    hold("PACKAGE_VERSION_SUFFIX", package, re.search(r"\.v\d+((alpha|beta)\d*)?$", package))
    hold("FILE_LOWER_SNAKE_CASE", file.name, re.fullmatch(r"[a-z0-9_]+\.proto", path.name))
    hold("SYNTAX_SPECIFIED", file.name, file.syntax == "proto3")
    hold("IMPORT_NO_PUBLIC", file.name, not file.public_dependency)
    hold("IMPORT_NO_WEAK", file.name, not file.weak_dependency)
    for message in messages(file):
        hold("MESSAGE_PASCAL_CASE", message.name, re.fullmatch(r"[A-Z][A-Za-z0-9]*", message.name))
        for field in message.field:
            name = f"{message.name}.{field.name}"
            hold("FIELD_LOWER_SNAKE_CASE", name, re.fullmatch(r"[a-z][a-z0-9_]*", field.name))
            hold("FIELD_NOT_REQUIRED", name, field.label != FieldDescriptorProto.LABEL_REQUIRED)
        for oneof in message.oneof_decl:
            hold("ONEOF_LOWER_SNAKE_CASE", oneof.name, re.fullmatch(r"[a-z0-9_]+", oneof.name))
    for enum in enums(file):
        prefix = f"{snake(enum.name).upper()}_"
        hold("ENUM_PASCAL_CASE", enum.name, re.fullmatch(r"[A-Z][A-Za-z0-9]*", enum.name))
        hold("ENUM_NO_ALLOW_ALIAS", enum.name, not enum.options.allow_alias)
        hold("ENUM_FIRST_VALUE_ZERO", enum.name, enum.value[0].number == 0)
        hold("ENUM_ZERO_VALUE_SUFFIX", enum.name, enum.value[0].name == f"{prefix}UNSPECIFIED")
        for value in enum.value:
            hold("ENUM_VALUE_PREFIX", value.name, value.name.startswith(prefix))
            hold("ENUM_VALUE_UPPER_SNAKE_CASE", value.name, re.fullmatch(r"[A-Z0-9_]+", value.name))
    used: Counter[str] = Counter()
    for service in file.service:
        hold("SERVICE_PASCAL_CASE", service.name, re.fullmatch(r"[A-Z]\w*", service.name))
        hold("SERVICE_SUFFIX", service.name, service.name.endswith("Service"))
        for call in service.method:
            hold("RPC_PASCAL_CASE", call.name, re.fullmatch(r"[A-Z][A-Za-z0-9]*", call.name))
            for rule, kind, suffix in (
                ("RPC_REQUEST_STANDARD_NAME", call.input_type, "Request"),
                ("RPC_RESPONSE_STANDARD_NAME", call.output_type, "Response"),
            ):
                used[kind] += 1
                hold(rule, call.name, kind == f".{package}.{call.name}{suffix}")
    for kind, times in used.items():
        hold("RPC_REQUEST_RESPONSE_UNIQUE", kind, times == 1)
    return found


def test_the_contract_keeps_the_rules(compiled: FileDescriptorProto) -> None:
    assert breaches(compiled) == []


def test_breaches_are_seen(compiled: FileDescriptorProto) -> None:
    bad = FileDescriptorProto()
    bad.CopyFrom(compiled)
    bad.package = "dragoman"
    bad.message_type[0].field[0].name = "Texts"
    bad.enum_type[0].value[0].name = "NONE"
    bad.service[0].name = "Translation"
    bad.service[0].method[1].input_type = bad.service[0].method[0].input_type
    rules = {breach.partition(":")[0] for breach in breaches(bad)}
    assert rules >= {
        "PACKAGE_VERSION_SUFFIX",
        "PACKAGE_DIRECTORY_MATCH",
        "FIELD_LOWER_SNAKE_CASE",
        "ENUM_ZERO_VALUE_SUFFIX",
        "ENUM_VALUE_PREFIX",
        "SERVICE_SUFFIX",
        "RPC_REQUEST_STANDARD_NAME",
        "RPC_REQUEST_RESPONSE_UNIQUE",
    }


def test_every_message_of_the_contract_is_typed() -> None:
    """Editors and mypy read the stubs' .pyi file."""
    typed = (PROTOS / FILE.replace(".proto", "_pb2.pyi")).read_text()
    names = translation_pb2.DESCRIPTOR.message_types_by_name
    assert all(f"class {name}(" in typed for name in names)
    assert sys.modules[translation_pb2.__name__].__file__ == str(
        PROTOS / FILE.replace(".proto", "_pb2.py")
    )
