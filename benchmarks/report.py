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

from matplotlib.figure import Figure

from dragoman_cli.bench.plot import BLUE, FAINT, GREEN, GRID, INK, LIGHT, RED

SERVED, IN_PROCESS = "dragoman over gRPC", "dragoman in process"
COLOURS = {
    SERVED: BLUE,
    IN_PROCESS: LIGHT,
    "ctranslate2": "#d98a29",
    "optimum-onnx": "#8c6bb1",
    "transformers": "#b0b7bf",
}
PARTS = ("tokenise", "queue", "encode", "steps", "detokenise", "wire")
PART_COLOURS = (GREEN, FAINT, "#d98a29", BLUE, "#8c6bb1", RED)


def page(found: dict[str, dict[str, Any]], images: Path, beside: str) -> Iterator[str]:
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
    makers = {
        "compare": _compare,
        "shortlist": _shortlist,
        "latency": _latency,
        "latency_wide": _latency,
        "overload": _overload,
        "memory": _memory,
        "served_sentence": _served_sentence,
    }
    for name, make in makers.items():
        if name in found:
            yield ""
            yield from make(found[name], images, beside)
            yield ""
            yield from (f"    {command}" for command in found[name]["commands"])


def _sentence(what: str) -> str:
    return f"{what[0].upper()}{what[1:]}."


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join(["---", *["--:"] * (len(head) - 1)]) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _compare(found: dict[str, Any], images: Path, beside: str) -> Iterator[str]:
    entries = found["entries"]
    yield "## Beside other engines"
    counts = sorted({entry["concurrent"] for entry in entries})
    for subject, what in found["subjects"].items():
        mine = [entry for entry in entries if entry["subject"] == subject]
        if not mine:
            continue
        yield ""
        yield f"### {subject}"
        yield ""
        yield _sentence(what)
        yield "Times the peer's sentences a second, over gRPC against the peer in process; median"
        yield f"of {found['rounds']} rounds, least and most of them."
        yield ""
        yield from _table(
            ["", *(f"{count} at a time" for count in counts)], list(_ratio_rows(mine, counts))
        )
        picture = images / f"benchmarks-{subject}.png"
        _draw_rates(mine, counts, picture)
        yield ""
        yield f"![sentences a second]({beside}/{picture.name})"
        yield ""
        yield "Sentences a second, and the settings that were best (workers × threads of each):"
        yield ""
        yield from _table(["", *(f"{count}" for count in counts)], list(_rate_rows(mine, counts)))
    for name, why in found["absent"].items():
        yield ""
        yield f"{name} was not measured: {why}."


def _kinds(entries: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((entry["precision"], entry["beam"]) for entry in entries))


def _search(beam: int) -> str:
    return "greedy" if beam == 1 else f"beam {beam}"


def _ratio_rows(entries: list[dict[str, Any]], counts: list[int]) -> Iterator[list[str]]:
    for precision, beam in _kinds(entries):
        chosen = {
            e["concurrent"]: e for e in entries if (e["precision"], e["beam"]) == (precision, beam)
        }
        names = dict.fromkeys(name for entry in chosen.values() for name in entry["ratios"])
        for name in names:
            cells = []
            for count in counts:
                ratio = chosen.get(count, {}).get("ratios", {}).get(name, {}).get(SERVED)
                cells.append(_spread(ratio) if ratio else "")
            other = " (float32)" if precision == "int8" and name in _FLOAT32_ONLY else ""
            yield [f"{precision}, {_search(beam)}: {name}{other}", *cells]


_FLOAT32_ONLY = ("transformers", "optimum-onnx")


def _rate_rows(entries: list[dict[str, Any]], counts: list[int]) -> Iterator[list[str]]:
    for precision, beam in _kinds(entries):
        chosen = {
            e["concurrent"]: e for e in entries if (e["precision"], e["beam"]) == (precision, beam)
        }
        names = dict.fromkeys(name for entry in chosen.values() for name in entry["engines"])
        for name in names:
            cells = []
            for count in counts:
                one = chosen.get(count, {}).get("engines", {}).get(name)
                cells.append(f"{one['sentences_per_second']:.1f} [{one['setting']}]" if one else "")
            yield [f"{precision}, {_search(beam)}: {name}", *cells]


def _draw_rates(entries: list[dict[str, Any]], counts: list[int], path: Path) -> None:
    kinds = _kinds(entries)
    figure = Figure(figsize=(12, 3.2 * -(-len(kinds) // 2) + 0.6), layout="constrained")
    for place, (precision, beam) in enumerate(kinds):
        axes = figure.add_subplot(-(-len(kinds) // 2), min(2, len(kinds)), place + 1)
        chosen = {
            e["concurrent"]: e for e in entries if (e["precision"], e["beam"]) == (precision, beam)
        }
        engines = [name for name in COLOURS if any(name in e["engines"] for e in chosen.values())]
        width = 0.8 / max(1, len(engines))
        for number, name in enumerate(engines):
            for at, count in enumerate(counts):
                one = chosen.get(count, {}).get("engines", {}).get(name)
                if one is None:
                    continue
                middle = one["sentences_per_second"]
                axes.bar(
                    at + (number - (len(engines) - 1) / 2) * width,
                    middle,
                    width * 0.92,
                    color=COLOURS[name],
                    label=name if at == 0 else None,
                    yerr=[[middle - one["least"]], [one["most"] - middle]],
                    error_kw={"ecolor": INK, "elinewidth": 0.8, "alpha": 0.6},
                )
        axes.set_title(f"{precision}, {_search(beam)}", loc="left", color=INK, fontsize=11)
        axes.set_xticks(range(len(counts)), [f"{count} at a time" for count in counts])
        axes.set_ylabel("sentences a second", color=FAINT)
        axes.tick_params(colors=FAINT)
        axes.grid(axis="y", color=GRID)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        if place == 0:
            axes.legend(frameon=False, labelcolor=INK, fontsize=8)
    figure.savefig(path, dpi=130)


def _shortlist(found: dict[str, Any], images: Path, beside: str) -> Iterator[str]:
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
                row = rows.setdefault(f"{_search(entry['beam'])}: {pair}", {})
                row[entry["concurrent"]] = _spread(ratio)
        lists = subject["candidates"]
        yield ""
        yield f"### {name}, with lists"
        yield ""
        yield _sentence(subject["what"])
        one = lists["dragoman, shortlist"]
        yield f"A list has {one['mean']:.0f} of {lists['vocabulary']:,} tokens; those of"
        yield f"{lists['sentences']} sentences have {one['union']:,} together."
        yield ""
        yield from _table(
            ["", *(f"{count} at a time" for count in counts)],
            [[pair, *(row.get(count, "") for count in counts)] for pair, row in rows.items()],
        )


def _spread(ratio: dict[str, float]) -> str:
    return f"**{ratio['median']:.2f}** ({ratio['least']:.2f}–{ratio['most']:.2f})"


def _latency(found: dict[str, Any], images: Path, beside: str) -> Iterator[str]:
    one = found["latency"]
    yield f"## How long people wait: {one['subject']}"
    yield ""
    yield _sentence(found["what"])
    yield "CTranslate2 behind a plain gRPC server with a batching window"
    yield "([its code](../benchmarks/peers/ctranslate2_server.py); best:"
    yield f"{one['ctranslate2_setting']}),"
    yield "and `dragoman serve`. Poisson arrivals at 70% of what CTranslate2's server can do:"
    yield f"{one['rate']:.1f} calls a second. Our p95 is {one['p95_share']:.2f} of its."
    yield ""
    yield from _table(
        ["milliseconds", "p50", "p95", "p95, least–most of rounds", "failed"],
        [
            [
                name,
                f"{1000 * one[name]['p50']:.0f}",
                f"{1000 * one[name]['p95']:.0f}",
                f"{1000 * one[name]['p95_least']:.0f}–{1000 * one[name]['p95_most']:.0f}",
                f"{one[name]['failed'] + one[name]['unsent']}",
            ]
            for name in ("dragoman", "ctranslate2")
        ],
    )


def _overload(found: dict[str, Any], images: Path, beside: str) -> Iterator[str]:
    one = found["overload"]
    yield "## Three times too much"
    yield ""
    yield _sentence(found["what"])
    yield f"A closed loop gets {one['capacity']:.1f} sentences a second at most;"
    yield f"{one['rate']:.1f} calls a second arrive, with a deadline of {one['deadline']:g} s."
    yield ""
    rows = [
        ["answered in time, sentences a second", f"{one['goodput']:.1f}"],
        ["of the most in a closed loop", f"{one['goodput_share']:.0%}"],
        ["p95 of what was answered", f"{one['admitted_p95']:.2f} s"],
    ]
    rows += [
        [f"{name}: {error['count']:,} calls, 95% told within", f"{1000 * error['p95']:.0f} ms"]
        for name, error in one["errors"].items()
    ]
    yield from _table(["", ""], rows)


def _memory(found: dict[str, Any], images: Path, beside: str) -> Iterator[str]:
    yield "## Memory"
    yield ""
    yield _sentence(f"{found['what']}; int8")
    yield "Resident, of the server's process, 64 calls under way."
    yield ""
    yield from _table(
        ["MiB", "when ready", "at most"],
        [
            [name, f"{one['before'] / 2**20:.0f}", f"{one['peak'] / 2**20:.0f}"]
            for name, one in found["memory"].items()
        ],
    )


def _served_sentence(found: dict[str, Any], images: Path, beside: str) -> Iterator[str]:
    rows = found["served_sentence"]
    limits = found["limits"]
    yield "## Where the time goes"
    yield ""
    yield "A sentence over gRPC, medians in milliseconds, from the server's own timing"
    yield "(`Options(timing=True)`)."
    yield ""
    yield from _table(
        ["", *(f"{row['concurrent']} at a time" for row in rows)],
        [
            [name, *(f"{1000 * row['parts'][name]:.2f}" for row in rows)]
            for name in (*PARTS, "total")
        ],
    )
    picture = images / "benchmarks-sentence.png"
    _draw_parts(rows, picture)
    yield ""
    yield f"![where the time goes]({beside}/{picture.name})"
    yield ""
    yield f"This machine, one thread: {limits['float32_rate'] / 1e9:.0f} G float32 and"
    yield f"{limits['int8_rate'] / 1e9:.0f} G int8 operations a second, reading"
    yield f"{limits['read_rate'] / 1e9:.1f} GB a second. A step beside that, in milliseconds:"
    yield ""
    yield from _table(
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


def _draw_parts(rows: list[dict[str, Any]], path: Path) -> None:
    figure = Figure(figsize=(12, 0.7 * len(rows) + 1.4), layout="constrained")
    axes = figure.add_subplot()
    for at, row in enumerate(rows):
        left = 0.0
        for name, colour in zip(PARTS, PART_COLOURS, strict=True):
            share = 100 * max(0.0, row["parts"][name]) / row["parts"]["total"]
            axes.barh(at, share, left=left, color=colour, label=name if at == 0 else None)
            left += share
    axes.set_yticks(range(len(rows)), [f"{row['concurrent']} at a time" for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("% of a sentence's time", color=FAINT)
    axes.tick_params(colors=FAINT)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.legend(loc="outside upper left", ncols=len(PARTS), frameon=False, labelcolor=INK)
    figure.savefig(path, dpi=130)


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
    wanted.page.write_text("\n".join(page(found, images, "images")) + "\n")
    print(wanted.page)


if __name__ == "__main__":
    main()
