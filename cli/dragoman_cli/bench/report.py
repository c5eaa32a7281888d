"""What a run of ``dragoman bench`` came to, as JSON and for people."""

from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from dragoman_cli.bench.run import Run
from dragoman_cli.bench.view import milliseconds, print_report, summary

FORMAT = 1
"""Changes where a name of the JSON goes or gets another meaning."""


def as_json(run: Run) -> dict[str, Any]:
    load = run.shown
    found: dict[str, Any] = {
        "format": FORMAT,
        "loop": "closed" if load.settings.rate is None else "open",
        "load": asdict(load.settings),
        "where": run.where,
        "interrupted": run.is_interrupted,
        "abandoned": load.abandoned,
        "measured": load.statistics.to_json(),
    }
    if run.target is not None:
        found["find_rate"] = {
            "target_p95_ms": round(1000 * run.target, 3),
            "rate": run.best,
            "trials": [
                {
                    "rate": trial.rate,
                    "met": trial.met,
                    "in_time": round(trial.load.statistics.share_within(run.target), 4),
                    "latency_ms": trial.load.statistics.latency.to_json(),
                }
                for trial in run.trials
            ],
        }
    return found


def print_run(run: Run) -> None:
    if run.target is not None:
        print_report(_trials(run, run.target))
    print_report(summary(run.shown, run.title(run.shown.settings)))
    if run.target is not None:
        says = f"met {milliseconds(run.target)} for 95% of all calls"
        found = (
            f"no rate that was tried {says}"
            if run.best is None
            else f"{run.best:,.4g} calls a second is the highest rate that {says}"
        )
        print_report(Text(found, style="bold"))


def _trials(run: Run, target: float) -> Table:
    table = Table("calls a second", "p95", "in time", "", box=None)
    for column in table.columns[:3]:
        column.justify = "right"
    for trial in sorted(run.trials, key=lambda trial: trial.rate):
        statistics = trial.load.statistics
        table.add_row(
            f"{trial.rate:,.4g}",
            milliseconds(statistics.latency.percentile(95)),
            f"{statistics.share_within(target):.1%}",
            "met" if trial.met else "not met",
            style="green" if trial.met else "red",
        )
    return table
