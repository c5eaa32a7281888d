"""The list of what a server is made of, which `make sbom` writes."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from support import ROOT
from support.deploy_tools import run, tool

MAKEFILE = (ROOT / "Makefile").read_text()


def test_the_tool_is_pinned_and_in_no_environment_of_ours() -> None:
    assert re.search(r"^sbom: \$\(SBOM\)/\.done \$\(SERVED\)/\.done$", MAKEFILE, re.MULTILINE)
    assert re.search(r"^cyclonedx-bom==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "cyclonedx" not in str([project["dependencies"], project["optional-dependencies"]])


@pytest.mark.slow  # for a tool that few have; make test-deploy runs it
def test_it_lists_what_is_installed(tmp_path: Path) -> None:
    """By the command of the Makefile, of the environment that the tests run in."""
    (recipe,) = re.findall(r"\$\(SBOM\)/bin/(cyclonedx-py (?:.*\\\n)*.*)", MAKEFILE)
    words = recipe.replace("\\\n", " ").split()
    own = str(ROOT / ".venv-sbom" / "bin" / words[0])
    program = tool("make sbom", own, words[0])
    output = tmp_path / "sbom.json"
    values = {"dist/dragoman-server.cdx.json": str(output), "$(SERVED)/bin/python": sys.executable}
    run(program, *(values.get(word, word) for word in words[1:]), cwd=ROOT)
    bill = json.loads(output.read_text())
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "dragoman")
    listed = {each["name"]: each["version"] for each in bill["components"]}
    pinned = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines()[1:]
    )
    for name in ("grpcio", "onnxruntime", "sentencepiece"):
        assert listed[name] == pinned[name]
