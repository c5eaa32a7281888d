"""Searches with a shortlist beside those without: what ``shortlist.py`` measured."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sections.markdown import search_name, sentence, spread_cell, table


def shortlist_section(found: dict[str, Any], images: Path) -> Iterator[str]:
    yield "## With a shortlist"
    yield ""
    yield "[Searches that look only at likely tokens](export.md#a-shortlist), beside those that"
    yield "look at all, and beside CTranslate2 with the same lists as its vocabulary map; all in"
    yield "process. Sentences a second of the first, times those of the second; medians of rounds,"
    yield "least and most of them."
    for name, subject in found["subjects"].items():
        mine = [entry for entry in found["entries"] if entry["subject"] == name]
        counts = sorted({entry["concurrent"] for entry in mine})
        rows: dict[str, dict[int, str]] = {}
        for entry in mine:
            for pair, ratio in entry["ratios"].items():
                row = rows.setdefault(f"{search_name(entry['beam'])}: {pair}", {})
                row[entry["concurrent"]] = spread_cell(ratio)
        lists = subject["candidates"]
        yield ""
        yield f"### {name}, with lists"
        yield ""
        yield sentence(subject["what"])
        one = lists["dragoman, shortlist"]
        yield f"A list has {one['mean']:.0f} of {lists['vocabulary']:,} tokens; those of"
        yield f"{lists['sentences']} sentences have {one['union']:,} together."
        yield ""
        yield from table(
            ["", *(f"{count} at a time" for count in counts)],
            [[pair, *(row.get(count, "") for count in counts)] for pair, row in rows.items()],
        )
