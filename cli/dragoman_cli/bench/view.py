"""A load for people: a live view while it runs, and what it came to. Needs rich."""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dragoman_cli.bench.load import Load
from dragoman_cli.bench.statistics import PERCENTILES, Histogram, Statistics

_BARS = "▁▂▃▄▅▆▇█"
_SPARKS = 60
_LATE = 0.1
"""Where this process sends later than so much of the median latency, its figures are doubtful."""


class Watch(Protocol):
    def __call__(self, load: Load, title: str) -> None: ...


@contextmanager
def live_view() -> Iterator[Watch]:
    """Shows a load on the terminal's standard error; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda load, title: None
        return
    with Live(console=Console(stderr=True), refresh_per_second=8, transient=True) as live:
        yield lambda load, title: live.update(_live(load, title))


def _live(load: Load, title: str) -> RenderableType:
    statistics, now = load.statistics, load.now
    slots = statistics.timeline.slots[-_SPARKS:]
    width = statistics.timeline.width
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", justify="right")
    grid.add_column(justify="right", min_width=12)
    grid.add_column()
    grid.add_row(
        "answered/s",
        f"{statistics.rate(statistics.in_time):,.1f}",
        Text(sparks([slot.answered / width for slot in slots]), style="green"),
    )
    grid.add_row(
        "p95",
        milliseconds(statistics.latency.percentile(95)),
        Text(sparks([slot.latency.percentile(95) for slot in slots]), style="cyan"),
    )
    grid.add_row(
        "failed",
        f"{statistics.failed:,}",
        Text(sparks([slot.failed / width for slot in slots]), style="red"),
    )
    grid.add_row("under way", f"{load.under_way:,}", "")
    if now < statistics.warm_up:
        state: RenderableType = Text("warming up", style="dim")
    elif load.settings.calls is not None:
        state = Text(f"{statistics.answered + statistics.failed:,} calls", style="dim")
    else:
        state = ProgressBar(total=load.settings.end, completed=now, width=_SPARKS + 26)
    return Panel(Group(grid, state), title=title, title_align="left", border_style="dim")


def sparks(values: list[float]) -> str:
    """A line of bars; a gap where there is no value."""
    known = [value for value in values if not math.isnan(value)]
    highest = max(known, default=0.0)
    return "".join(
        " "
        if math.isnan(value)
        else _BARS[min(len(_BARS) - 1, int(value / highest * len(_BARS)))]
        if highest
        else _BARS[0]
        for value in values
    )


def milliseconds(seconds: float) -> str:
    if math.isnan(seconds):
        return "–"
    digits = 2 if seconds < 0.01 else 1 if seconds < 0.1 else 0
    return f"{1000 * seconds:,.{digits}f} ms"


def summary(load: Load, title: str) -> RenderableType:
    statistics = load.statistics
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="dim", justify="right")
    lines.add_column()
    lines.add_row(
        "throughput",
        f"[bold]{statistics.rate(statistics.sentences):,.1f}[/] sentences/s   "
        f"[bold]{statistics.rate(statistics.target_tokens):,.0f}[/] tokens/s written   "
        f"{statistics.rate(statistics.source_tokens):,.0f} read",
    )
    unsent = f"   [yellow]{statistics.unsent:,} not sent in time[/]" if statistics.unsent else ""
    lines.add_row(
        "calls",
        f"{statistics.answered:,} answered   {statistics.failed:,} failed{unsent}   in "
        f"{statistics.seconds:,.1f} s",
    )
    parts: list[RenderableType] = [Text(title, style="bold"), lines, _latencies(statistics)]
    if statistics.errors:
        parts.append(_errors(statistics))
    parts += [Text(remark, style="yellow") for remark in remarks(load)]
    return Group(*parts)


def _latencies(statistics: Statistics) -> Table:
    table = Table("", *(f"p{percent}" for percent in PERCENTILES), "mean", "max", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    rows: list[tuple[str, Histogram]] = [
        ("whole call", statistics.latency),
        ("first token", statistics.first_token),
        ("each further token", statistics.per_token),
    ]
    for name, histogram in rows:
        if histogram.count:
            values = [histogram.percentile(percent) for percent in PERCENTILES]
            values += [histogram.mean, histogram.max]
            table.add_row(name, *map(milliseconds, values))
    return table


def _errors(statistics: Statistics) -> Table:
    table = Table("failed with", "reason", "calls", "told after, p50", "p95", box=None)
    for column in table.columns[2:]:
        column.justify = "right"
    for (code, reason), failures in sorted(statistics.errors.items()):
        after = [milliseconds(failures.after.percentile(percent)) for percent in (50, 95)]
        table.add_row(code, reason, f"{failures.count:,}", *after, style="red")
    return table


def remarks(load: Load) -> list[str]:
    """What makes the figures less than they seem."""
    statistics, found = load.statistics, []
    if load.abandoned:
        found.append(f"stopped early, with {load.abandoned:,} calls under way, which do not count")
    if statistics.unsent:
        found.append(
            "this process had as many calls under way as it may: what it could not send counts as "
            "late"
        )
    elif statistics.lag.percentile(95) > _LATE * statistics.latency.percentile(50):
        found.append(
            f"this process sent late (p95 {milliseconds(statistics.lag.percentile(95))}), which "
            "the latencies include: run it on another machine, or ask for less"
        )
    return found


def print_report(*parts: RenderableType) -> None:
    Console(highlight=False).print(*parts)
