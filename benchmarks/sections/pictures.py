"""Pictures of the page: sentences a second as bars, and the parts of a sentence's time."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from dragoman_cli.bench.plot import BLUE, FAINT, GREEN, GRID, INK, LIGHT, RED
from measuring.names import CTRANSLATE2, IN_PROCESS, OPTIMUM, SERVED, TRANSFORMERS
from sections.markdown import search_name

COLOURS = {
    SERVED: BLUE,
    IN_PROCESS: LIGHT,
    CTRANSLATE2: "#d98a29",
    OPTIMUM: "#8c6bb1",
    TRANSFORMERS: "#b0b7bf",
}
PARTS = ("tokenise", "queue", "encode", "steps", "detokenise", "wire")
PART_COLOURS = (GREEN, FAINT, "#d98a29", BLUE, "#8c6bb1", RED)


def kinds_of(entries: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((entry["precision"], entry["beam"]) for entry in entries))


def draw_rates(entries: list[dict[str, Any]], counts: list[int], path: Path) -> None:
    kinds = kinds_of(entries)
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
        axes.set_title(f"{precision}, {search_name(beam)}", loc="left", color=INK, fontsize=11)
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


def draw_parts(rows: list[dict[str, Any]], path: Path) -> None:
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
