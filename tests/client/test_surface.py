"""What the SDK offers: its names, the same calls with and without an event loop, and its weight."""

import inspect
import os
import subprocess
import sys
import typing
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Mapping
from pathlib import Path
from types import GenericAlias, ModuleType

import pytest

import dragoman_client
from dragoman_client import AsyncClient, Client

TWINS = {"__enter__": "__aenter__", "__exit__": "__aexit__"}


def test_all_is_what_a_user_sees_and_no_more() -> None:
    for name in dragoman_client.__all__:  # loaded now, those that were not yet
        assert getattr(dragoman_client, name).__module__.startswith("dragoman_client")
    public = {
        name
        for name, value in vars(dragoman_client).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public == set(dragoman_client.__all__)
    assert sorted(dragoman_client.__all__, key=lambda n: (n != "TLS", n)) == list(
        dragoman_client.__all__
    )


def test_all_has_these_names() -> None:
    """A name that goes, or comes, is a change that users notice."""
    assert " ".join(dragoman_client.__all__).split() == [
        *("TLS", "Alignment", "Alternative", "AsyncClient", "AuthenticationError", "CallError"),
        *("CancelledError", "Client", "ConfigurationError", "DetectedLanguage", "DragomanError"),
        *("FinishReason", "Glossary"),
        *("InvalidRequestError", "Model", "ModelRefusedError", "NotFoundError", "Options"),
        *("OverloadedError", "PermissionDeniedError", "Retries", "Sampling", "Score", "Segment"),
        *("ServerError", "StatusCode", "TimedOutError", "Timing", "Token", "Translation"),
        *("TranslationWarning", "UnavailableError", "WarningCode", "read_glossary"),
    ]


def methods(client: type) -> dict[str, typing.Any]:
    names = [name for name in vars(client) if not name.startswith("_") or name in TWINS.values()]
    names += [name for name in TWINS if name in vars(client)]
    return {name: inspect.getattr_static(client, name) for name in [*names, "__init__"]}


def in_sync(annotation: typing.Any) -> typing.Any:
    """What an annotation of the async client is in the other one."""
    if annotation is AsyncClient:
        return Client
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is AsyncGenerator:
        return GenericAlias(Generator, (*arguments, None))
    if AsyncIterable in [typing.get_origin(each) for each in arguments]:
        # Takes what the other takes, and more.
        return GenericAlias(Iterable, typing.get_args(arguments[0]))
    return annotation


def test_both_clients_have_the_same_calls() -> None:
    plain = {TWINS.get(name, name) for name in methods(Client)}
    assert plain == set(methods(AsyncClient))


@pytest.mark.parametrize("name", sorted(methods(Client)))
def test_both_clients_take_and_return_the_same(name: str) -> None:
    one, other = methods(Client)[name], methods(AsyncClient)[TWINS.get(name, name)]
    left, right = inspect.signature(one), inspect.signature(other)
    assert list(left.parameters) == list(right.parameters)
    for parameter in left.parameters.values():
        twin = right.parameters[parameter.name]
        assert (parameter.kind, parameter.default) == (twin.kind, twin.default)
    hints, twins = typing.get_type_hints(one), typing.get_type_hints(other)
    assert hints == {key: in_sync(annotation) for key, annotation in twins.items()}


@pytest.mark.parametrize("name", sorted(set(methods(Client)) - set(TWINS) - {"__init__"}))
def test_both_clients_are_explained(name: str) -> None:
    one, other = methods(Client)[name], methods(AsyncClient)[name]
    assert bool(one.__doc__) == bool(other.__doc__)
    assert one.__doc__ or name == "close"


def run(script: str, environment: Mapping[str, str] | None = None) -> str:
    environment = {**os.environ, **(environment or {})}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def test_the_sdk_loads_neither_the_command_nor_anything_heavy() -> None:
    script = """
from dragoman_client import *
import sys
print(*{name.partition(".")[0] for name in sys.modules})
"""
    loaded = set(run(script).split())
    heavy = {"typer", "click", "rich", "numpy", "torch", "onnxruntime", "matplotlib", "hypothesis"}
    assert loaded.isdisjoint(heavy | {"dragoman_server", "dragoman_training"})


def test_the_sdk_is_quick_to_import(tmp_path: Path) -> None:
    """It adds 50 ms to ``import grpc`` on a quiet machine; this one may be three times slower."""
    script = """
import time
import grpc
began = time.process_time()
from dragoman_client import *
print(time.process_time() - began)
"""
    # With compiled modules, as where it is installed; the first run compiles them.
    cache = {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    assert min(float(run(script, cache)) for _ in range(3)) < 0.15


def test_grpc_comes_with_the_first_name() -> None:
    """Not before: the command has settings for it, which it reads when it is loaded."""
    script = """
import dragoman_client, sys
before = "grpc" in sys.modules
dragoman_client.TLS
print(before, "grpc" in sys.modules)
try:
    dragoman_client.Nothing
except AttributeError as error:
    print(error)
"""
    assert run(script).splitlines() == [
        "False True",
        "module 'dragoman_client' has no attribute 'Nothing'",
    ]
