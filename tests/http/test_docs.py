"""The examples of docs/http.md, run as they are written against a real server."""

import ast
import json
import re
import subprocess

import deepl
import pytest

from support import ROOT
from support.http_client import address_of
from support.service_running import PATIENCE, Running
from support.shown_commands import blocks

PAGE = ROOT / "docs" / "http.md"
COMMANDS = [
    line for block in blocks(PAGE) for line in block.text.splitlines() if line.startswith("curl ")
]
PRINTED = re.findall(r"^    (curl .*)\n\n```\n(.*)\n```$", PAGE.read_text(), re.MULTILINE)
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def run(command: str, running: Running) -> str:
    done = subprocess.run(
        ["bash", "-eu", "-c", command.replace("localhost:8080", address_of(running))],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={"PATH": "/usr/bin:/bin", "DRAGOMAN_KEY": "none"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_an_example_works(running: Running, command: str) -> None:
    printed = run(command.replace("curl ", "curl --silent --show-error --fail "), running)
    if "/v1/stream" in command:
        assert printed.count("data: ") > 2
    elif "/metrics" in command:
        assert "dragoman_requests_total" in printed
    else:
        assert json.loads(printed)


def test_there_are_examples() -> None:
    assert len(COMMANDS) >= 12
    assert len(PRINTED) == 2
    assert len(PROGRAMS) == 2


@pytest.mark.parametrize(("command", "expected"), PRINTED)
def test_an_example_prints_what_is_shown(running: Running, command: str, expected: str) -> None:
    assert run(command.replace("curl ", "curl --silent "), running) == expected


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_works(
    running: Running,
    program: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)
    there = program.replace("localhost:8080", address_of(running))
    names: dict[str, object] = {}
    exec(compile(ast.parse(there), "docs/http.md", "exec"), names)  # noqa: S102 - our own page
    assert capsys.readouterr().out == "Bom dia.\n"
    if isinstance(client := names.get("client"), deepl.DeepLClient):
        client.close()  # type: ignore[no-untyped-call]
