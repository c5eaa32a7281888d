"""Where the time of a sentence goes: what ``served_sentence.py`` measured."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sections.markdown import paragraph, table
from sections.pictures import PARTS, draw_parts


def served_sentence_section(found: dict[str, Any], images: Path) -> Iterator[str]:
    rows = found["served_sentence"]
    limits = found["limits"]
    yield "## Where the time goes"
    yield ""
    yield from paragraph(
        "The parts of a sentence's time over gRPC: medians in milliseconds, from the server's own",
        "timing (`Options(timing=True)`). [The benchmark](../benchmarks/served_sentence.py) says",
        "what each part is.",
    )
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
    yield from paragraph(
        f"One thread of this machine does {limits['float32_rate'] / 1e9:.0f} G float32 or",
        f"{limits['int8_rate'] / 1e9:.0f} G int8 operations a second, and reads",
        f"{limits['read_rate'] / 1e9:.1f} GB of memory a second. A decoding step takes at least as",
        "long as reading its weights and caches, or multiplying, takes at these rates. In",
        "milliseconds:",
    )
    yield ""
    yield from table(
        ["rows of a lane", "a step", "reading, at least", "multiplying, at least"],
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
