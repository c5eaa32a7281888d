"""The Dockerfile, beyond what it takes a build to see: `make test-image` is that build."""

import json
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


@pytest.mark.parametrize("path", ["Dockerfile", "deploy/bundle/Dockerfile"])
def test_hadolint_has_nothing_to_say(path: str) -> None:
    assert run(Path(sys.executable).with_name("hadolint"), ROOT / path) == ""


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
    names = ("LISTEN", "HTTP", "METRICS")
    ports = [split_address("", settings[f"DRAGOMAN_{name}"])[1] for name in names]
    assert [int(port) for port in exposed] == ports
    # The check asks where the client asks by default.
    assert known["DRAGOMAN_ADDRESS"] == f"localhost:{ports[0]}"
    assert settings["ORT_DISABLE_TELEMETRY"] == "1"


@pytest.mark.parametrize("target", TARGETS)
def test_labels_say_what_it_is(target: str) -> None:
    """In the words of the OCI's specification of images."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stage = dockerfile_stages()[target]
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\S+)="(.*)"', stage))
    source = project["urls"]["Repository"]
    assert labels["version"] == project["version"]
    assert labels["source"] == source
    assert labels["documentation"] == f"{source}/blob/main/docs/operations.md"
    assert project["license"] in labels["licenses"]
    for label, argument in (
        ("revision", "REVISION"),
        ("created", "CREATED"),
        ("base.name", f"{target.upper()}_BASE"),
    ):
        assert labels[label] == f"${{{argument}}}"
        assert re.search(rf"^ARG {argument}\b", stage, re.MULTILINE)  # or it would be empty


def test_bundles_of_an_image_are_copied_once_and_whole(tmp_path: Path) -> None:
    """By the very command of the image, in a shell of this machine."""
    text = (ROOT / "deploy" / "bundle" / "Dockerfile").read_text()
    (line,) = re.findall(r"^CMD (.*)$", text, re.MULTILINE)
    origin, goal = tmp_path / "from", tmp_path / "bundles"
    shell, options, script = json.loads(line)
    script = script.replace("/from/", f"{origin}/").replace("/bundles/", f"{goal}/")

    (origin / "en-de" / "deep").mkdir(parents=True)
    (origin / "en-de" / "manifest.json").write_text("new")
    (origin / "en-de" / "deep" / "file").write_text("deep")
    (origin / "en-pt").mkdir()
    (origin / "en-pt" / "manifest.json").write_text("new")
    (goal / "en-pt").mkdir(parents=True)
    (goal / "en-pt" / "manifest.json").write_text("as it was")
    (goal / "en-de.part").mkdir()
    (goal / "en-de.part" / "half").write_text("of another time")
    for _ in range(2):
        assert run(shell, options, script) == ""
        found = {
            str(path.relative_to(goal)): path.read_text()
            for path in goal.rglob("*")
            if path.is_file()
        }
        assert found == {
            "en-de/manifest.json": "new",
            "en-de/deep/file": "deep",
            "en-pt/manifest.json": "as it was",
        }


def test_the_user_is_a_number() -> None:
    for target in TARGETS:
        (user,) = re.findall(r"^USER (.*)$", dockerfile_stages()[target], re.MULTILINE)
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
