"""What tests of deploy/ share: its files, tools that may be missing, the settings there are."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.main import get_command

from dragoman_cli.commands import health
from dragoman_server.cli.serve import serve
from support import ROOT

DEPLOY = ROOT / "deploy"


def tool(package: str, *names: str) -> str:
    """A program that is not Python's; a test is skipped without it, unless all are asked for."""
    for name in names:
        if found := shutil.which(name):
            return found
    reason = f"{' or '.join(names)} is not installed: it comes with {package}"
    if os.environ.get("DRAGOMAN_ALL_TOOLS"):
        pytest.fail(reason)
    pytest.skip(reason)


def run(*command: str | Path, **more: Any) -> str:
    """What it prints; fails with it where the exit code is not 0."""
    done = subprocess.run(
        list(map(str, command)),
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        **more,
    )
    assert done.returncode == 0, done.stdout
    return str(done.stdout)


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def variables() -> dict[str, object]:
    """Of the environment, that the server and its health check read; with their defaults."""
    found: dict[str, object] = {}
    for command in (serve, health):
        app = typer.Typer()
        app.command()(command)
        for parameter in get_command(app).params:
            if isinstance(parameter.envvar, str):
                found[parameter.envvar] = parameter.default
    return found


def image_settings(target: str) -> dict[str, str]:
    """The environment of a stage of the Dockerfile."""
    stage = dockerfile_stages()[target]
    (block,) = re.findall(r"^ENV ((?:.*\\\n)*.*)", stage, re.MULTILINE)
    return dict(pair.split("=", 1) for pair in block.replace("\\\n", " ").split())


def dockerfile_stages() -> dict[str, str]:
    """By name."""
    text = (ROOT / "Dockerfile").read_text()
    parts = re.split(r"^FROM \S+ AS (\S+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))
