"""What a type checker knows of the SDK: everything that a program gets back, and no ``Any``."""

import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import dragoman_client
from dragoman_client import AsyncClient, Client
from support.service_running import PATIENCE, Running

PROGRAM = Path(__file__).with_name("whole_sdk.py")
TEXT = PROGRAM.read_text()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def check(program: Path, cache: Path) -> str:
    """Return what mypy finds, as for a user: with none of our own settings."""
    command = [
        *(sys.executable, "-m", "mypy", "--config-file", "", "--cache-dir", cache, "--strict"),
        *("--disallow-any-expr", "--disallow-any-decorated", "--no-pretty", program),
    ]
    run = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        cwd=program.parent,
        timeout=PATIENCE,
    )
    return run.stdout + run.stderr


def test_a_program_that_uses_all_of_it_has_no_any(cache: Path) -> None:
    assert check(PROGRAM, cache).startswith("Success")


MISTAKES = {
    "from dragoman_client import Clinet": 'has no attribute "Clinet"',
    "Client().translate('Hello.', source='en')": "Unexpected keyword argument",
    "Client().translate('Hello.', options={'beam_size': 4})": "incompatible type",
    "Client().score(['a', 'b'])": "incompatible type",
    "Options(overlong='cut')": "incompatible type",
    "Client().translate('Hello.').score.upper()": 'has no attribute "upper"',
}


def test_mistakes_are_found(cache: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("\n".join(["from dragoman_client import Client, Options", *MISTAKES]) + "\n")
    found = check(program, cache).splitlines()
    for number, (mistake, says) in enumerate(MISTAKES.items(), start=2):
        assert any(f":{number}: " in line and says in line for line in found), mistake


def test_the_program_uses_all_of_it() -> None:
    for name in dragoman_client.__all__:
        assert len(re.findall(rf"\b{name}\b", TEXT)) > 1, name
        kind = getattr(dragoman_client, name)
        for field in fields(kind) if is_dataclass(kind) else ():
            assert re.search(rf"\b{field.name}\b", TEXT), f"{name}.{field.name}"
    for client, part in ((Client, "def translate("), (AsyncClient, "async def translate_async(")):
        body = TEXT.partition(part)[2].partition("\n\n\n")[0]
        for method in vars(client):
            if not method.startswith("_") and method != "close":
                assert f"client.{method}(" in body, f"{client.__name__}.{method}"


def test_the_program_runs(running: Running) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM), running.server.address],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.stderr == ""
    assert run.stdout.count("UNKNOWN_MODEL") == 2
