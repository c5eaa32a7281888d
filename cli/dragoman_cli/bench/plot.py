"""A load as a picture: how long calls took, and how that went over time. Needs matplotlib."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman_cli.bench.statistics import PERCENTILES, Histogram, Statistics
from dragoman_cli.pictures import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, FAINT, GRID = "#1d2733", "#6b7785", "#e3e8ee"
BLUE, LIGHT, RED, GREEN = "#2166ac", "#92c5de", "#c0392b", "#3a923a"
_CURVE = (0, 10, 25, 50, 75, 90, 95, 97.5, 99, 99.5, 99.75, 99.9, 99.95, 99.99)


@dataclass(frozen=True)
class Tried:
    """A rate, in a search for the highest."""

    rate: float
    p95: float
    """Seconds."""
    met: bool


def draw(
    statistics: Statistics,
    title: str,
    path: Path,
    *,
    trials: Sequence[Tried] = (),
    target: float | None = None,
) -> None:
    """Write the picture of a load; ``target`` is in seconds."""
    save(figure_of(statistics, title, trials=trials, target=target), path)


def figure_of(
    statistics: Statistics,
    title: str,
    *,
    trials: Sequence[Tried] = (),
    target: float | None = None,
) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 8 if not trials else 11), layout="constrained", facecolor="white")
    grid = figure.add_gridspec(3 if trials else 2, 2)
    figure.suptitle(title, color=INK, fontsize=13, fontweight="bold", x=0.01, ha="left")
    if statistics.answered:
        _distribution(figure.add_subplot(grid[0, 0]), statistics.latency, target)
        _tail(figure.add_subplot(grid[0, 1]), statistics, target)
    else:
        axes = figure.add_subplot(grid[0, :])
        axes.text(0.5, 0.5, "no call was answered", ha="center", color=RED, fontsize=14)
        axes.set_axis_off()
    _timeline(figure.add_subplot(grid[1, :]), statistics, target)
    if trials:
        _search(figure.add_subplot(grid[2, :]), trials, target)
    return figure


def _plain(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", color=INK, fontsize=11)
    axes.tick_params(colors=FAINT, which="both")
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(GRID)


def _legend_above(axes: Any) -> None:
    """Write the legend above the axes, where nothing can be behind it."""
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1),
        borderaxespad=0.2,
        ncols=3,
        frameon=False,
        labelcolor=INK,
    )


def _milliseconds(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g} ms"))
    axis.set_minor_formatter(NullFormatter())


def _distribution(axes: Any, latency: Histogram, target: float | None) -> None:
    """Bars of equal width by ratio, and the percentiles as lines over them."""
    _plain(axes, "Latency of a call, from when it was to be sent")
    bars: dict[int, int] = {}
    for upper, count in latency.buckets():
        bar = math.floor(math.log(upper) / _BAR)
        bars[bar] = bars.get(bar, 0) + count
    lefts = [1000 * math.exp(bar * _BAR) for bar in bars]
    widths = [left * (math.exp(_BAR) - 1) for left in lefts]
    shares = [100 * count / latency.count for count in bars.values()]
    axes.set_xscale("log")
    axes.bar(lefts, shares, widths, align="edge", color=LIGHT, edgecolor="white", linewidth=0.6)
    top = max(shares)
    axes.set_ylim(0, 1.36 * top)
    heights = (1.29, 1.21, 1.13, 1.05)
    for percent, height in zip(PERCENTILES, heights, strict=True):
        at = 1000 * latency.percentile(percent)
        axes.axvline(at, color=BLUE, linewidth=1.2, ymax=height / 1.36)
        axes.annotate(
            f"p{percent} {at:,.3g} ms",
            (at, height * top),
            (4, 0),
            textcoords="offset points",
            color=BLUE,
            fontsize=8,
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8},
        )
    if target is not None:
        axes.axvline(1000 * target, color=RED, linewidth=1.2, linestyle="--")
    axes.set_ylabel("% of the calls", color=FAINT)
    _milliseconds(axes.xaxis)


_BAR = math.log(1.1)


def _tail(axes: Any, statistics: Statistics, target: float | None) -> None:
    """Percentiles against how rare they are: the end of the tail has room too."""
    _plain(axes, "Percentiles")
    rarest = 100 * (1 - 1 / max(2, statistics.latency.count))
    percents = [percent for percent in _CURVE if percent <= rarest]
    at = [1 / (1 - percent / 100) for percent in percents]
    lines = [
        ("whole call", statistics.latency, BLUE),
        ("first token", statistics.first_token, GREEN),
    ]
    for name, histogram, colour in lines:
        if histogram.count:
            values = [1000 * histogram.percentile(max(percent, 0.01)) for percent in percents]
            axes.plot(at, values, color=colour, marker="o", markersize=3, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    shown = [percent for percent in (0, 50, 90, 95, 99, 99.9, 99.99) if percent <= rarest]
    axes.set_xticks([1 / (1 - p / 100) for p in shown], [f"p{p:g}" for p in shown])
    axes.minorticks_off()
    if target is not None:
        axes.axhline(1000 * target, color=RED, linewidth=1.2, linestyle="--", label="target")
    _milliseconds(axes.yaxis)
    _legend_above(axes)


def _timeline(axes: Any, statistics: Statistics, target: float | None) -> None:
    """Calls a second as areas, latency as a band over them on an axis of its own."""
    _plain(axes, "Over time")
    width = statistics.timeline.width
    slots = statistics.timeline.slots
    moments = [(number + 0.5) * width for number in range(len(slots))]
    answered = [slot.answered / width for slot in slots]
    failed = [slot.failed / width for slot in slots]
    axes.stackplot(
        moments, answered, failed, colors=("#d9e2ec", "#f2c4be"), labels=("answered", "failed")
    )
    arrived = [slot.arrived / width for slot in slots]
    axes.plot(moments, arrived, color=FAINT, linewidth=0.9, linestyle=":", label="to be sent")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("calls a second", color=FAINT)
    axes.set_xlabel("seconds", color=FAINT)
    latency = axes.twinx()
    for side in ("top", "left"):
        latency.spines[side].set_visible(False)
    latency.spines["right"].set_color(GRID)
    latency.tick_params(colors=BLUE, which="both")
    middle, high, most = (
        [1000 * slot.latency.percentile(percent) for slot in slots] for percent in (50, 95, 99)
    )
    if any(slot.answered for slot in slots):
        latency.set_yscale("log")
        latency.fill_between(moments, middle, high, color=BLUE, alpha=0.25, label="p50 to p95")
        latency.plot(moments, middle, color=BLUE, linewidth=1.8, label="p50")
        latency.plot(moments, most, color=BLUE, linewidth=0.8, alpha=0.7, label="p99")
        _milliseconds(latency.yaxis)
    if target is not None:
        latency.axhline(1000 * target, color=RED, linewidth=1.2, linestyle="--", label="target")
    handles = [*axes.get_legend_handles_labels()[0], *latency.get_legend_handles_labels()[0]]
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=len(handles),
        frameon=False,
        labelcolor=INK,
    )


def _search(axes: Any, trials: Sequence[Tried], target: float | None) -> None:
    _plain(axes, "Rates that were tried")
    for met, colour, name in ((True, GREEN, "met"), (False, RED, "not met")):
        chosen = [trial for trial in trials if trial.met is met and not math.isnan(trial.p95)]
        if chosen:
            axes.scatter(
                [trial.rate for trial in chosen],
                [1000 * trial.p95 for trial in chosen],
                color=colour,
                s=60,
                zorder=3,
                label=name,
            )
    if target is not None:
        axes.axhline(1000 * target, color=RED, linewidth=1.2, linestyle="--", label="target")
    axes.set_yscale("log")
    axes.set_xlabel("calls a second", color=FAINT)
    axes.set_ylabel("p95", color=FAINT)
    _milliseconds(axes.yaxis)
    _legend_above(axes)
