"""What the forge and contributors' hooks read: valid, and in step with the project."""

import re
import sys
import tomllib
from pathlib import Path
from subprocess import run

import pytest

from support import ROOT
from support.deploy_tools import read_yaml

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(
    {*(GITHUB / "ISSUE_TEMPLATE").glob("*.yml")} - {GITHUB / "ISSUE_TEMPLATE/config.yml"}
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def problems(schema: str, *files: Path) -> str:
    """Return what a schema has against files; empty where they are valid."""
    checker = Path(sys.executable).with_name("check-jsonschema")
    checked = run(
        [checker, "--builtin-schema", schema, *files], capture_output=True, text=True, check=False
    )
    return checked.stdout if checked.returncode else ""


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("custom.github-workflows-require-timeout", WORKFLOWS),
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
    ],
)
def test_files_are_valid(schema: str, files: list[Path]) -> None:
    assert files
    assert problems(schema, *files) == ""


def test_an_invalid_workflow_is_seen(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "runs-at:"))
    assert "runs-at" in problems("vendor.github-workflows", broken)


def test_continuous_integration_runs_targets_of_the_makefile() -> None:
    jobs = read_yaml(GITHUB / "workflows" / "ci.yml")["jobs"]
    steps = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    called = {step.removeprefix("make ") for step in steps}
    assert {"lint", "test", "dist", "docs"} <= called <= TARGETS


def test_continuous_integration_tests_the_pythons_that_are_announced() -> None:
    matrix = read_yaml(GITHUB / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]
    classifiers = "\n".join(PROJECT["project"]["classifiers"])
    announced = re.findall(r"Python :: (3\.\d+)$", classifiers, re.MULTILINE)
    assert matrix["python"] == announced
    assert PROJECT["project"]["requires-python"] == f">={announced[0]}"


def test_hooks_run_the_programs_that_are_pinned() -> None:
    """Those of the environment that make makes: no hook brings a version of its own."""
    (repository,) = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    pinned = (ROOT / "constraints.txt").read_text()
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        program = hook["entry"].split()[0]
        assert program.startswith(".venv/bin/")
        assert re.search(rf"^{Path(program).name}==", pinned, re.MULTILINE), program
