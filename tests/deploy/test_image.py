"""The Dockerfile, beyond what it takes a build to see: `make test-image` is that build."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from dragoman_server.service.settings import split_address
from support import ROOT
from support.deploy_tools import dockerfile_stages, image_settings, run, variables

TARGETS = ("cpu", "gpu")
SAID_OF_BOTH = ("USER", "WORKDIR", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD")


def test_hadolint_has_nothing_to_say() -> None:
    assert run(Path(sys.executable).with_name("hadolint"), ROOT / "Dockerfile") == ""


def test_what_is_copied_is_not_ignored_and_nothing_else_is_sent() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    text = (ROOT / "Dockerfile").read_text()
    copied = {
        source
        for arguments in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)
        for source in arguments.split()[:-1]
    }
    assert copied == allowed
    assert all((ROOT / path).exists() for path in copied)


def test_both_targets_run_alike() -> None:
    stages = dockerfile_stages()
    for word in SAID_OF_BOTH:
        said = {tuple(re.findall(rf"^{word} .*$", stages[t], re.MULTILINE)) for t in TARGETS}
        assert len(said) == 1, word
        assert said.pop() != (), word
    assert list(stages)[-1] == "cpu"  # what is built where no target is named


@pytest.mark.parametrize("target", TARGETS)
def test_settings_are_those_of_the_server(target: str) -> None:
    settings = image_settings(target)
    known = variables()
    assert {name for name in settings if name.startswith("DRAGOMAN_")} <= set(known)
    exposed = re.findall(r"^EXPOSE (.*)$", dockerfile_stages()[target], re.MULTILINE)[0].split()
    ports = [split_address("", settings[f"DRAGOMAN_{name}"])[1] for name in ("LISTEN", "METRICS")]
    assert [int(port) for port in exposed] == ports
    # The check asks where the client asks by default.
    assert known["DRAGOMAN_ADDRESS"] == f"localhost:{ports[0]}"
    assert settings["ORT_DISABLE_TELEMETRY"] == "1"


@pytest.mark.parametrize("target", TARGETS)
def test_the_label_has_the_version(target: str) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f'image.version="{version}"' in dockerfile_stages()[target]


def test_the_user_is_a_number() -> None:
    for target in TARGETS:
        (user,) = re.findall(r"^USER (.*)$", dockerfile_stages()[target], re.MULTILINE)
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
