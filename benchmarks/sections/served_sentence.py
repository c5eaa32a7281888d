"""Where the time of a sentence goes: what ``served_sentence.py`` measured."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sections.markdown import table
from sections.pictures import PARTS, draw_parts


def served_sentence_section(found: dict[str, Any], images: Path) -> Iterator[str]:
    rows = found["served_sentence"]
    limits = found["limits"]
    yield "## Where the time goes"
    yield ""
    yield "A sentence over gRPC, medians in milliseconds, from the server's own timing"
    yield "(`Options(timing=True)`)."
    yield ""
    yield from table(
        ["", *(f"{row['concurrent']} at a time" for row in rows)],
        [
            [name, *(f"{1000 * row['parts'][name]:.2f}" for row in rows)]
            for name in (*PARTS, "total")
        ],
    )
    picture = images / "benchmarks-sentence.png"
    draw_parts(rows, picture)
    yield ""
    yield f"![where the time goes]({images.name}/{picture.name})"
    yield ""
    yield f"This machine, one thread: {limits['float32_rate'] / 1e9:.0f} G float32 and"
    yield f"{limits['int8_rate'] / 1e9:.0f} G int8 operations a second, reading"
    yield f"{limits['read_rate'] / 1e9:.1f} GB a second. A step beside that, in milliseconds:"
    yield ""
    yield from table(
        ["rows of a lane", "a step", "reading weights and caches", "multiplying"],
        [
            [
                str(row["rows"]),
                f"{1000 * row['step']:.2f}",
                f"{1000 * row['least_read']:.2f}",
                f"{1000 * row['least_product']:.2f}",
            ]
            for row in rows
            if "step" in row
        ],
    )
