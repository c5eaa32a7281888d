"""The page that lists all settings of a recipe."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dragoman_training.config.tables import flat
from support import ROOT

SCRIPT = ROOT / "scripts" / "settings_page.py"
PAGE = ROOT / "docs" / "settings.md"


def test_the_page_is_what_the_code_says() -> None:
    """``make settings`` writes it again."""
    run = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("path", sorted((ROOT / "recipes").glob("*.toml")), ids=lambda p: p.stem)
def test_every_setting_of_our_recipes_is_on_the_page(path: Path) -> None:
    """Under its own section, so that a reader finds it."""
    sections: dict[str, str] = {}
    for text in PAGE.read_text().split("\n## ")[1:]:
        title, _, table = text.partition("\n")
        name = title.split("`")[1].strip("[]") if "`" in title else ""
        sections[name] = sections.get(name, "") + table
    for key in flat(tomllib.loads(path.read_text())):
        names = [part for part in key.split(".") if not part.isdecimal()]
        if "label_weights" in names:
            names = names[: names.index("label_weights") + 1]
        elif "variants" in names:
            names = ["data", "corpora", "variants", names[-1]]
        *section, last = names
        assert f"`{last}`" in sections[".".join(section)], key


def test_the_warm_up_has_its_rule_beside_it() -> None:
    row = next(
        line for line in PAGE.read_text().splitlines() if line.startswith("| `warmup_steps`")
    )
    assert "a tenth of `max_steps`, at most 4,000" in row
