"""Searches with a shortlist beside those without: what ``shortlist.py`` measured."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring.names import SHORTLISTED
from sections.markdown import paragraph, search_name, sentence, spread_cell, table


def shortlist_section(found: dict[str, Any], images: Path) -> Iterator[str]:
    yield "## With a shortlist"
    yield ""
    yield from paragraph(
        "[A shortlist](export.md#a-shortlist) lets a search look only at the target tokens that",
        "are likely for the source. CTranslate2 has the same lists as its vocabulary map. Both run",
        "in process, with int8. A cell divides the sentences a second of one by those of the",
        "other: the median of the rounds, with the lowest and the highest of them.",
    )
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
        one = lists[SHORTLISTED]
        yield from paragraph(
            sentence(subject["what"]),
            f"The list of a sentence has {one['mean']:.0f} of {lists['vocabulary']:,} tokens on",
            f"average; the lists of {lists['sentences']} sentences have {one['union']:,} together.",
        )
        yield ""
        yield from table(
            ["", *(f"{count} at a time" for count in counts)],
            [[pair, *(row.get(count, "") for count in counts)] for pair, row in rows.items()],
        )
