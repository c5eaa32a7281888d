"""The architecture page names every module of the packages, and no other."""

import re
from pathlib import Path

import pytest

from support import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
PACKAGES = [
    "training/dragoman_training",
    "export/dragoman_export",
    "server/dragoman_server",
    "client/dragoman_client",
    "cli/dragoman_cli",
    "documents/dragoman_documents",
]


def modules(package: Path) -> set[str]:
    return {
        str(file.relative_to(package).with_suffix(""))
        for file in package.rglob("*.py")
        if file.name != "__init__.py"
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_is_on_the_page(package: str) -> None:
    _, _, section = PAGE.partition(f"### `{package}`\n")
    table = section.partition("\n### ")[0]
    named = re.findall(r"^\| `([\w/]+)` \| \S", table, re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(named) == modules(ROOT / package)


def test_no_module_is_long_and_no_package_is_flat() -> None:
    """What is longer has two jobs, and what is flatter has to be searched."""
    roots = [*PACKAGES, "client/dragoman_client", "cli/dragoman_cli", "benchmarks"]
    for root in roots:
        for file in (ROOT / root).rglob("*.py"):
            assert len(file.read_text().splitlines()) <= 350, file
            beside = [each for each in file.parent.glob("*.py") if each.name != "__init__.py"]
            assert len(beside) <= 16, file.parent


def test_no_module_of_tests_is_long() -> None:
    for file in (ROOT / "tests").rglob("*.py"):
        assert len(file.read_text().splitlines()) <= 350, file
