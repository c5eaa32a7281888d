"""Write the page of results and its pictures, from the JSON that the benchmarks wrote.

    python benchmarks/report.py runs/bench docs/benchmarks.md

A section of the page is made from the file of the same name, such as ``compare.json``; one whose
file is missing is left out. Runs that were measured apart go into one section if their files are
called ``NAME-PART.json``, beside ``NAME.json``.
"""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sections.engines import engines_section, real_section
from sections.load import latency_section, memory_section, overload_section
from sections.markdown import paragraph
from sections.served_sentence import served_sentence_section
from sections.shortlist import shortlist_section

SECTIONS = {
    "compare": engines_section,
    "real": real_section,
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
    yield from paragraph(
        "`make bench` writes this page. Below each part are the commands that measured it.",
        "Ratios compare engines that took turns in one run; times and rates are those of one",
        "machine. Each engine has its fastest setting, found in the same run.",
    )
    about = next(iter(found.values()))["machine"]
    flags = ", ".join(about["flags"]) or "no vector instructions that matter here"
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    yield ""
    yield from paragraph(
        f"The machine: {about['cpu']}, {about['cores']} cores ({flags}), {about['memory_gib']} GiB",
        f"of memory. Measured on {about['date']}; the load average before was",
        f"{about['load_before']}.",
        f"The software: Python {about['python']}, {versions}.",
    )
    for name, make in SECTIONS.items():
        if name in found:
            yield ""
            yield from make(found[name], images)
            yield ""
            yield from (f"    {command}" for command in found[name]["commands"])


def read(directory: Path) -> dict[str, dict[str, Any]]:
    """Return the figures by section. Those of ``NAME-PART.json`` go to the section *NAME*."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(directory.glob("*.json"), key=lambda file: file.stem):
        one = json.loads(file.read_text())
        # Where the figures went, and where other files are, says nothing about them.
        command = re.sub(r" --json \S+", "", one["machine"]["command"])
        one["commands"] = [re.sub(r"(?<= )/\S*/", "", command)]
        name = file.stem.partition("-")[0]
        if name in found:
            for key in ("commands", "entries"):
                found[name][key] += one[key]
            for key in ("subjects", "quality"):
                found[name].get(key, {}).update(one.get(key, {}))
        else:
            found[name] = one
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", type=Path, help="directory with the JSON files")
    parser.add_argument("page", type=Path, help="Markdown file to write; pictures go to images/")
    wanted = parser.parse_args()
    found = read(wanted.figures)
    if not found:
        raise SystemExit(f"{wanted.figures}: there are no JSON files in it")
    images = wanted.page.parent / "images"
    images.mkdir(exist_ok=True)
    wanted.page.write_text("\n".join(page(found, images)) + "\n")
    print(wanted.page)


if __name__ == "__main__":
    main()
