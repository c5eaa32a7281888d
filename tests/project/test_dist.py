"""The distributions: what is in them, that they run without the repository, and their version.

`make dist` makes the environment that builds them; these tests are skipped without it.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import pytest

from support import ROOT

BUILDER = ROOT / ".venv-dist" / "bin" / "python"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION: str = PROJECT["project"]["version"]
PACKAGES = [
    PurePosixPath(path)
    for path in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
]
MAX_WHEEL_BYTES = 2_000_000
MAX_SDIST_BYTES = 25_000_000
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Distributions:
    wheel: Path
    sdist: Path

    def wheel_names(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    def sdist_names(self) -> set[str]:
        """Return the paths of files, without the directory that all of them are in."""
        with tarfile.open(self.sdist) as archive:
            return {name.partition("/")[2] for name in archive.getnames()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Build both distributions: the wheel is built from the source distribution."""
    if not BUILDER.exists():
        pytest.skip(f"{BUILDER.relative_to(ROOT)} is not there: `make dist` makes it")
    directory = tmp_path_factory.mktemp("dist")
    build: list[str | Path] = [BUILDER, "-m", "build", "--no-isolation"]
    subprocess.run(
        [*build, "--outdir", directory, ROOT], check=True, capture_output=True, timeout=PATIENCE_S
    )
    (wheel,), (sdist,) = directory.glob("*.whl"), directory.glob("*.tar.gz")
    return Distributions(wheel, sdist)


def test_the_wheel_has_the_packages_and_nothing_else(built: Distributions) -> None:
    names = built.wheel_names()
    metadata = f"dragoman-{VERSION}.dist-info"
    assert {name.partition("/")[0] for name in names} == {metadata, *(p.name for p in PACKAGES)}
    for package in PACKAGES:
        assert f"{package.name}/py.typed" in names
    assert "dragoman/v1/translation.proto" in names
    page = ROOT / "server/dragoman_server/http_api/page"
    files = {str(file.relative_to(page.parents[1])) for file in page.rglob("*.*")}
    assert files
    assert {f"dragoman_server/{file}" for file in files} <= names
    assert f"{metadata}/licenses/LICENSE" in names
    assert not [name for name in names if "test" in name or "__pycache__" in name]
    assert built.wheel.stat().st_size < MAX_WHEEL_BYTES


def test_the_sdist_has_what_it_takes_to_build_test_and_run(built: Distributions) -> None:
    """The default model is part of it: the tests and `make run` need it. No other model is."""
    names = built.sdist_names()
    tracked = subprocess.run(
        ["git", "ls-files", "protos", "recipes", "tests", "docs"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    assert [path for path in tracked if (ROOT / path).exists() and path not in names] == []
    assert {"Makefile", "constraints.txt", "LICENSE", "CHANGELOG.md", "models/en-pt.md"} <= names
    models = {name.split("/")[1] for name in names if name.startswith("models/")}
    assert models == {"en-pt", "en-pt.md"}
    unwanted = re.compile(r"(^|/)(\.git|\.venv[^/]*|runs|dist|site|__pycache__|\.mypy_cache)/")
    assert not [name for name in names if unwanted.search(name)]
    assert built.sdist.stat().st_size < MAX_SDIST_BYTES


@pytest.fixture(scope="module")
def installed(built: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a new environment and return where its programs are.

    What the wheel depends on is found where it is for these tests, by a .pth file. A .pth file in
    there is not followed, so the editable installation of the repository is not on the path.
    """
    environment = tmp_path_factory.mktemp("installed")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", environment],
        check=True,
        timeout=PATIENCE_S,
    )
    python = environment / "bin" / "python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python]
    pip += ["--disable-pip-version-check"]
    install = [*pip, "install", "--quiet", "--no-deps", "--no-index", built.wheel]
    subprocess.run(install, check=True, timeout=PATIENCE_S)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    (Path(run(python, "-c", ask).strip()) / "rest.pth").write_text(sysconfig.get_path("purelib"))
    return environment / "bin"


def run(*command: str | Path, directory: Path | None = None) -> str:
    """Return what a program prints, run without what the environment says about Python or us."""
    done = subprocess.run(
        command,
        cwd=directory,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def clean_environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DRAGOMAN"))}
    return {**kept, "COLUMNS": "200", "TERM": "dumb"}


@contextmanager
def served(program: Path, directory: Path) -> Iterator[str]:
    """Serve the default model; yield the address once the server says that it is ready."""
    model = ROOT / "models" / "en-pt"
    addresses = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(
            [program, "serve", model, *addresses],
            cwd=directory,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert server.stdout is not None
        banner = ""
        for line in server.stdout:
            banner += line
            if found := re.search(r"gRPC +(\S+)", line):
                assert "Dragoman is ready." in banner
                yield found[1]
                break
        else:
            pytest.fail((directory / "log").read_text())
        server.terminate()
        assert server.wait(PATIENCE_S) == 0
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def test_the_wheel_runs_without_the_repository(installed: Path, tmp_path: Path) -> None:
    where = "import dragoman_client, sys; print(dragoman_client.__file__, *sys.path, sep='\\n')"
    module, *path = run(installed / "python", "-c", where, directory=tmp_path).splitlines()
    assert Path(module).is_relative_to(installed.parent)
    sources = {ROOT, *(ROOT / package.parent for package in PACKAGES)}
    assert sources.isdisjoint(map(Path, path))

    dragoman = installed / "dragoman"
    assert run(dragoman, "--version", directory=tmp_path) == f"dragoman {VERSION}\n"
    commands = PROJECT["project"]["entry-points"]["dragoman.commands"]
    shown = run(dragoman, "--help", directory=tmp_path)
    assert all(re.search(rf"\b{name}\b", shown) for name in commands)
    assert "--stream" in run(dragoman, "translate", "--help", directory=tmp_path)

    translate = (
        "import sys; from dragoman_client import Client\n"
        "with Client(sys.argv[1]) as client: print(client.translate('Good morning.').text)"
    )
    with served(dragoman, tmp_path) as address:
        printed = run(installed / "python", "-c", translate, address, directory=tmp_path)
    assert printed == "Bom dia.\n"


# The version is written in pyproject.toml. Programs ask the metadata of what is installed.


def test_what_is_installed_has_the_version_of_the_project() -> None:
    assert version("dragoman") == VERSION


def test_no_module_repeats_the_version() -> None:
    for package in PACKAGES:
        for module in (ROOT / package).rglob("*.py"):
            text = module.read_text()
            assert "__version__ =" not in text, module
            assert f'"{VERSION}"' not in text, module


def test_files_that_cannot_ask_have_the_same_version() -> None:
    """A Dockerfile and a kustomization hold text only."""
    labels = re.findall(r'image\.version="(.*)"', (ROOT / "Dockerfile").read_text())
    assert set(labels) == {VERSION}
    for file in (ROOT / "deploy" / "kubernetes" / "overlays").rglob("kustomization.yaml"):
        for tag in re.findall(r"newTag: (\S+)", file.read_text()):
            assert re.fullmatch(rf"{re.escape(VERSION)}-(cpu|gpu)", tag), file
