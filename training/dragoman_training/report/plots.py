"""Pictures: the curves of a run, and where the decoder looked while it translated.

Drawn without a display; each goes to PNG for looking and SVG for print.
"""

import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

from dragoman_training.files import staged_file
from dragoman_training.report.records import StepRecord, ValidationRecord

COLOURS = ("#4c72b0", "#dd8452", "#55a868")
_TRAIN, _VALID, _EXTRA = COLOURS


def draw_curves(
    steps: Sequence[StepRecord], validations: Sequence[ValidationRecord], title: str
) -> Figure:
    """Perplexity, quality, learning rate and speed over the steps."""
    figure = Figure(figsize=(11, 7), layout="constrained")
    figure.suptitle(title, parse_math=False)
    (perplexity, quality), (rate, speed) = figure.subplots(2, 2)
    at = [record.step for record in steps]
    perplexity.plot(at, [r.perplexity for r in steps], color=_TRAIN, lw=1, label="training")
    valid_at = [record.step for record in validations]
    perplexity.plot(
        valid_at, [r.perplexity for r in validations], "o-", color=_VALID, ms=3, label="validation"
    )
    perplexity.set(yscale="log", xlabel="step")
    _title_and_legend(perplexity, "perplexity")
    _draw_quality(quality, validations)
    rate.plot(at, [r.learning_rate for r in steps], color=_TRAIN)
    rate.set_title("learning rate", loc="left")
    rate.set(xlabel="step", ylim=(0, None))
    speed.plot(at, [r.tokens_per_second for r in steps], color=_EXTRA, lw=1)
    speed.set_title("target tokens per second", loc="left")
    speed.set(xlabel="step", ylim=(0, None))
    for axes in (perplexity, quality, rate, speed):
        axes.grid(alpha=0.3)
    return figure


def _draw_quality(axes: Axes, validations: Sequence[ValidationRecord]) -> None:
    title = "translations of the validation text"
    axes.set(xlabel="step")
    measured = [r for r in validations if r.bleu is not None and r.chrf is not None]
    if not measured:
        axes.set_title(title, loc="left")
        axes.text(0.5, 0.5, "none measured", ha="center", transform=axes.transAxes)
        return
    at = [r.step for r in measured]
    axes.plot(at, [r.bleu or 0.0 for r in measured], "o-", color=_VALID, ms=3, label="BLEU")
    axes.plot(at, [r.chrf or 0.0 for r in measured], "o-", color=_EXTRA, ms=3, label="chrF")
    best = max(measured, key=lambda r: r.bleu or 0.0)
    axes.annotate(
        f"{best.bleu:.1f}",
        (best.step, best.bleu or 0.0),
        textcoords="offset points",
        xytext=(0, -14),
        ha="center",
    )
    axes.set_ylim(0, 100)
    _title_and_legend(axes, title)


def _title_and_legend(axes: Axes, title: str) -> None:
    """Write both above the axes, where no curve can be behind them."""
    axes.set_title(title, loc="left")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, ncols=2, frameon=False)


@dataclass(frozen=True, eq=False)
class HeatMap:
    """How much each target token (rows) looked at each source token (columns)."""

    weights_TS: npt.NDArray[np.float32]
    source: Sequence[str]
    target: Sequence[str]
    title: str


def draw_attention(*maps: HeatMap) -> Figure:
    """Heat maps side by side."""
    widths = [2.5 + 0.36 * len(heat_map.source) for heat_map in maps]
    height = 2.2 + 0.32 * max(len(heat_map.target) for heat_map in maps)
    figure = Figure(figsize=(sum(widths), height), layout="constrained")
    text: dict[str, Any] = {"parse_math": False, "family": _families()}
    (row,) = figure.subplots(1, len(maps), squeeze=False, width_ratios=widths)
    for axes, heat_map, width in zip(row, maps, widths, strict=True):
        image = axes.imshow(heat_map.weights_TS, cmap="magma", vmin=0.0, vmax=1.0, aspect="auto")
        axes.set_xticks(
            range(len(heat_map.source)),
            list(heat_map.source),
            rotation=60,
            ha="left",
            rotation_mode="anchor",
            **text,
        )
        axes.set_yticks(range(len(heat_map.target)), list(heat_map.target), **text)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        letters = int(10 * width)  # that fit above it
        lines = [textwrap.fill(line, letters) for line in heat_map.title.splitlines()]
        axes.set_title("\n".join(lines), fontsize=10, **text)
    figure.colorbar(image, ax=row, label="attention", shrink=0.8)
    return figure


def save_figure(figure: Figure, path: Path) -> tuple[Path, Path]:
    """Write PNG and SVG; the ending of the given path does not matter."""
    stem = path.with_suffix("") if path.suffix in (".png", ".svg") else path
    png, svg = (stem.with_name(stem.name + ending) for ending in (".png", ".svg"))
    path.parent.mkdir(parents=True, exist_ok=True)
    for path in (png, svg):
        with staged_file(path) as file, warnings.catch_warnings():
            # A script that no installed font has is drawn as boxes; the rest is still of use.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            figure.savefig(file, dpi=150, format=path.suffix.removeprefix("."))
    return png, svg


def _families() -> list[str]:
    """The default font, and those that have other scripts where they are installed."""
    installed = {font.name for font in fontManager.ttflist}
    wanted = ("Noto Sans CJK JP", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Noto Sans")
    return ["DejaVu Sans", *(name for name in wanted if name in installed)]
