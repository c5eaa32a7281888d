"""npm's ``translate`` and ``deepl-node`` as they are, where Node and npm's registry are there."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support.http_client import address_of
from support.service_running import PATIENCE, Running

pytestmark = pytest.mark.slow

PACKAGES = ("translate@3", "deepl-node@1")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the packages."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("Node is not there")
    directory = tmp_path_factory.mktemp("npm")
    (directory / "package.json").write_text('{"private": true, "type": "module"}')
    flags = ("--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1")
    try:
        run = subprocess.run(
            [npm, "install", *flags, *PACKAGES],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm's registry does not answer")
    if run.returncode:
        pytest.skip(f"npm can't install them: {run.stderr.strip().splitlines()[-1]}")
    return directory


def test_clients_of_npm(running: Running, installed: Path) -> None:
    script = shutil.copy(Path(__file__).with_name("clients.mjs"), installed)
    run = subprocess.run(
        ["node", script, f"http://{address_of(running)}"],
        cwd=installed,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["libre"] == "Bom dia."
    assert found["deepl"] == [["Bom dia.", "en", 13], ["Olá.", "en", 6]]
    assert found["sources"] == ["en"]
    assert found["targets"] == ["pt-BR", "pt-PT"]
    assert found["usage"] >= 19
    assert "target_lang" in found["refused"]
