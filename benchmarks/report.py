"""The page of results and its pictures, from the JSON that the measurements wrote.

    python benchmarks/report.py runs/bench docs/benchmarks.md

Only what was measured is shown: a file that is not there has no section.
"""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sections.engines import engines_section
from sections.load import latency_section, memory_section, overload_section
from sections.served_sentence import served_sentence_section
from sections.shortlist import shortlist_section

SECTIONS = {
    "compare": engines_section,
    "shortlist": shortlist_section,
    "latency": latency_section,
    "latency_wide": latency_section,
    "overload": overload_section,
    "memory": memory_section,
    "served_sentence": served_sentence_section,
}
"""Sections in the order of the page, by the name of the JSON file that each is made from."""


def page(found: dict[str, dict[str, Any]], images: Path) -> Iterator[str]:
    yield "# Benchmarks"
    yield ""
    yield "`make bench` writes this page; below each part is the command that its figures are from."
    yield "Ratios compare what was measured in one run; times and rates are of this machine. Each"
    yield "engine has the setting that was best for it in that run."
    about = next(iter(found.values()))["machine"]
    flags = ", ".join(about["flags"]) or "no vector instructions that matter here"
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    yield ""
    yield f"{about['cpu']}, {about['cores']} cores ({flags}), {about['memory_gib']} GiB,"
    yield f"{about['date']}, load {about['load_before']} before."
    yield f"Python {about['python']}, {versions}."
    for name, make in SECTIONS.items():
        if name in found:
            yield ""
            yield from make(found[name], images)
            yield ""
            yield from (f"    {command}" for command in found[name]["commands"])


def read(directory: Path) -> dict[str, dict[str, Any]]:
    """By what was measured; what ``WHAT-NAME.json`` has is added to that of ``WHAT.json``."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(directory.glob("*.json")):
        one = json.loads(file.read_text())
        # Where the figures went, and where other files are, says nothing about them.
        command = re.sub(r" --json \S+", "", one["machine"]["command"])
        one["commands"] = [re.sub(r"(?<= )/\S*/", "", command)]
        name, _, part = file.stem.partition("-")
        if part and name in found:
            for key in ("commands", "entries"):
                found[name][key] += one[key]
            found[name]["subjects"].update(one["subjects"])
        else:
            found[name] = one
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", type=Path, help="directory with the JSON files")
    parser.add_argument("page", type=Path)
    wanted = parser.parse_args()
    found = read(wanted.figures)
    if not found:
        raise SystemExit(f"{wanted.figures}: there are no figures in it")
    images = wanted.page.parent / "images"
    images.mkdir(exist_ok=True)
    wanted.page.write_text("\n".join(page(found, images)) + "\n")
    print(wanted.page)


if __name__ == "__main__":
    main()
