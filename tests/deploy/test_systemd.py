"""The unit for systemd: valid, confined, and in step with the server's settings."""

import configparser
import sys
from pathlib import Path

import pytest

from support.deploy_tools import DEPLOY, run, tool, variables

UNIT = DEPLOY / "systemd" / "dragoman.service"
ENVIRONMENT = DEPLOY / "systemd" / "dragoman.env"
COMMAND = "/opt/dragoman/bin/dragoman"


def service() -> dict[str, str]:
    """Of the section of this name; of what may be said several times, the last."""
    parser = configparser.RawConfigParser(strict=False, delimiters="=", comment_prefixes="#")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT)
    return dict(parser["Service"])


def settings() -> dict[str, str]:
    lines = ENVIRONMENT.read_text().splitlines()
    pairs = [line.split("=", 1) for line in lines if line and not line.startswith("#")]
    name, value = service()["Environment"].split("=", 1)
    return {**dict(pairs), name: value}


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with a command that is here, which is the one thing that it can't know."""
    text = UNIT.read_text()
    assert service()["ExecStart"] == f"{COMMAND} serve"
    path = tmp_path / UNIT.name
    path.write_text(text.replace(COMMAND, str(Path(sys.executable).with_name("dragoman"))))
    return path


def test_systemd_has_nothing_to_say(unit: Path) -> None:
    assert run(tool("systemd", "systemd-analyze"), "verify", "--man=no", unit) == ""


def test_it_is_confined(unit: Path) -> None:
    """On the scale of systemd-analyze, on which a service without any measures has 96."""
    analyze = tool("systemd", "systemd-analyze")
    run(analyze, "security", "--offline=yes", "--threshold=20", "--no-pager", unit)


def test_settings_are_those_of_the_server() -> None:
    assert set(settings()) <= set(variables())
    assert service()["EnvironmentFile"] == f"/etc/dragoman/{ENVIRONMENT.name}"
    assert settings()["DRAGOMAN_CACHE_DIR"] == f"%C/{service()['CacheDirectory']}"
    assert service()["CacheDirectoryMode"] == "0700"  # or the server does not use it


def test_it_ends_later_than_it_drains_and_bad_input_is_not_tried_again() -> None:
    assert float(service()["TimeoutStopSec"]) > float(settings()["DRAGOMAN_GRACE"]) + 5
    assert service()["KillMode"] == "mixed"  # the server drains, and ends its workers itself
    assert service()["Restart"] == "on-failure"
    assert service()["RestartPreventExitStatus"] == "2"
