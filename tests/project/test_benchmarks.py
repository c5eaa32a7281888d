"""The benchmarks: their list is complete, options are explained, the page can be written."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import ROOT

BENCHMARKS = ROOT / "benchmarks"
MACHINE = {
    "cpu": "a CPU",
    "cores": 2,
    "flags": ["avx2"],
    "memory_gib": 8.0,
    "load_before": 0.1,
    "python": "3.11",
    "versions": {"dragoman": "0.1.0"},
    "command": "python benchmarks/compare.py --rounds 3 --json /tmp/figures/compare.json",
    "date": "2026-11-16",
}


def test_the_list_has_every_script() -> None:
    page = (BENCHMARKS / "README.md").read_text()
    listed = re.findall(r"^\|? ?`([\w/]+\.py)", page, re.MULTILINE)
    # A package is what scripts share; a folder without __init__.py has scripts.
    folders = {file.parent for file in BENCHMARKS.rglob("*.py")}
    scripts = [
        script
        for folder in folders
        if not (folder / "__init__.py").exists()
        for script in folder.glob("*.py")
    ]
    assert set(listed) == {str(file.relative_to(BENCHMARKS)) for file in scripts}


def test_every_make_target_runs_a_script_that_exists() -> None:
    run = re.findall(r"benchmarks/([\w/]+\.py)", (ROOT / "Makefile").read_text())
    assert run
    assert all((BENCHMARKS / script).exists() for script in run)


@pytest.mark.parametrize("file", sorted(BENCHMARKS.rglob("*.py")), ids=lambda file: file.stem)
def test_every_option_is_explained(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            option = ast.unparse(node.args[0])
            assert "help" in {keyword.arg for keyword in node.keywords}, option


def entry(concurrent: int, ratio: float) -> dict[str, Any]:
    """Return figures of an engine that is ``ratio`` times as fast as its peer."""
    spread = {"median": ratio, "least": ratio - 0.1, "most": ratio + 0.1}
    rates = {"dragoman over gRPC": 10 * ratio, "ctranslate2": 10.0}
    return {
        "subject": "base",
        "precision": "int8",
        "beam": 1,
        "concurrent": concurrent,
        "engines": {
            name: {"setting": "2 × 1", "sentences_per_second": rate, "least": rate, "most": rate}
            for name, rate in rates.items()
        },
        "ratios": {"ctranslate2": {"dragoman over gRPC": spread}},
    }


def test_the_page_has_the_figures_of_all_files(tmp_path: Path) -> None:
    """Files of one benchmark make one section; benchmarks that did not run make none."""
    figures, page = tmp_path / "figures", tmp_path / "page.md"
    figures.mkdir()
    for name, found in (
        ("compare", entry(1, 1.5)),
        ("compare-more", entry(8, 2.25)),
        ("real", entry(1, 1.5)),
    ):
        content = {
            "machine": MACHINE,
            "subjects": {"base": "a seeded model"},
            "rounds": 3,
            "absent": {},
            "entries": [found],
            "quality": {"base": {"ctranslate2": {"bleu": 30.25, "chrf": 55.5}}},
        }
        (figures / f"{name}.json").write_text(json.dumps(content))
    command = [sys.executable, str(BENCHMARKS / "report.py"), str(figures), str(page)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "| int8, greedy: ctranslate2 | **1.50** (1.40–1.60) | **2.25** (2.15–2.35) |" in text
    assert "| int8, greedy: dragoman over gRPC | 15.0 [2 × 1] | 22.5 [2 × 1] |" in text
    assert "| base: ctranslate2 | 30.25 | 55.50 |" in text
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == [
        "Speed beside other engines",
        "Published models and real text",
    ]
    assert text.count("    python benchmarks/compare.py --rounds 3\n") == 3
    (picture,) = {*re.findall(r"!\[.*\]\((.*)\)", text)}
    assert (tmp_path / picture).stat().st_size > 10_000
