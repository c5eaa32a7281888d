"""Dragoman beside its peers: what ``compare.py`` and ``real.py`` measured."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring.names import IN_PROCESS, OPTIMUM, SERVED, TRANSFORMERS
from sections.markdown import paragraph, search_name, sentence, spread_cell, table
from sections.pictures import draw_rates, kinds_of

_FLOAT32_ONLY = (TRANSFORMERS, OPTIMUM)


def engines_section(found: dict[str, Any], images: Path) -> Iterator[str]:
    yield "## Speed beside other engines"
    yield from _subjects(found, images)


def real_section(found: dict[str, Any], images: Path) -> Iterator[str]:
    yield "## Published models and real text"
    yield ""
    yield from paragraph(
        "From lines of text to lines of text, in int8 and greedily; a line is one sentence for all",
        "engines. Bergamot has Firefox's own settings. The largest number at a time is the whole",
        "text at once.",
    )
    yield from _subjects(found, images, in_process=True)
    yield ""
    yield "The quality of the same translations, of the whole text:"
    yield ""
    rows = [
        [f"{subject}: {engine}", f"{one['bleu']:.2f}", f"{one['chrf']:.2f}"]
        for subject, engines in found["quality"].items()
        for engine, one in engines.items()
    ]
    yield from table(["", "BLEU", "chrF"], rows)


def _subjects(found: dict[str, Any], images: Path, *, in_process: bool = False) -> Iterator[str]:
    """Yield the tables of each model; ``in_process`` adds one of our engine without a server."""
    entries = found["entries"]
    counts = sorted({entry["concurrent"] for entry in entries})
    for subject, what in found["subjects"].items():
        mine = [entry for entry in entries if entry["subject"] == subject]
        if not mine:
            continue
        yield ""
        yield f"### {subject}"
        yield ""
        yield from paragraph(
            sentence(what),
            "A cell is the sentences a second of `dragoman serve`, over gRPC, divided by those of",
            f"the peer, in process: the median of {found['rounds']} rounds, with the lowest and",
            "the highest of them.",
        )
        yield ""
        head = ["", *(f"{count} at a time" for count in counts)]
        yield from table(head, list(_ratio_rows(mine, counts, SERVED)))
        if in_process:
            yield ""
            yield "The same for the engine in process, without a server:"
            yield ""
            yield from table(head, list(_ratio_rows(mine, counts, IN_PROCESS)))
        picture = images / f"benchmarks-{subject}.png"
        draw_rates(mine, counts, picture)
        yield ""
        yield f"![sentences a second]({images.name}/{picture.name})"
        yield ""
        yield "Sentences a second, and the fastest setting (workers or lanes × threads of each):"
        yield ""
        yield from table(head, list(_rate_rows(mine, counts)))
    for name, why in found["absent"].items():
        yield ""
        yield f"{name} was not measured: {why}."


def _ratio_rows(entries: list[dict[str, Any]], counts: list[int], ours: str) -> Iterator[list[str]]:
    for precision, beam in kinds_of(entries):
        chosen = {
            e["concurrent"]: e for e in entries if (e["precision"], e["beam"]) == (precision, beam)
        }
        names = dict.fromkeys(name for entry in chosen.values() for name in entry["ratios"])
        for name in names:
            cells = []
            for count in counts:
                ratio = chosen.get(count, {}).get("ratios", {}).get(name, {}).get(ours)
                cells.append(spread_cell(ratio) if ratio else "")
            if not any(cells):
                continue
            other = " (float32)" if precision == "int8" and name in _FLOAT32_ONLY else ""
            yield [f"{precision}, {search_name(beam)}: {name}{other}", *cells]


def _rate_rows(entries: list[dict[str, Any]], counts: list[int]) -> Iterator[list[str]]:
    for precision, beam in kinds_of(entries):
        chosen = {
            e["concurrent"]: e for e in entries if (e["precision"], e["beam"]) == (precision, beam)
        }
        names = dict.fromkeys(name for entry in chosen.values() for name in entry["engines"])
        for name in names:
            cells = []
            for count in counts:
                one = chosen.get(count, {}).get("engines", {}).get(name)
                cells.append(f"{one['sentences_per_second']:.1f} [{one['setting']}]" if one else "")
            yield [f"{precision}, {search_name(beam)}: {name}", *cells]
