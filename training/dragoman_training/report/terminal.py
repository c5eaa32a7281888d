"""What a person sees of a run: a progress bar on a terminal, now and then a line elsewhere."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from dragoman_training.report.records import Observer, StepRecord, ValidationRecord

_SECONDS_BETWEEN_LINES = 10.0


def progress_bar(console: Console) -> Progress:
    """The bar of all long work: what, how far, how long still, and how it goes."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("[dim]{task.fields[status]}"),
        console=console,
        disable=not console.is_terminal,
    )


@contextmanager
def stage_bar(console: Console) -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar for work in stages; call the result with the stage, what is done, and of how much."""
    tasks: dict[str, TaskID] = {}
    with progress_bar(console) as bar:

        def watch(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total, status="")
                if not console.is_terminal:
                    console.print(f"{stage} …", soft_wrap=True)
            bar.update(tasks[stage], completed=done, total=total)

        yield watch


def epoch_lines(corpora: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what an epoch holds, a line for each corpus."""
    tokens = sum(corpus["epoch_target_tokens"] for corpus in corpora)
    return [
        f"  {escape(corpus['name']):<20} {corpus['pairs']['kept']:>9,} pairs, in an epoch "
        f"{corpus['epoch_examples']:>9,} examples of {corpus['epoch_target_tokens']:>11,} target "
        f"tokens ({corpus['epoch_target_tokens'] / max(1, tokens):.0%})"
        for corpus in corpora
    ]


def machine_line(facts: Mapping[str, Any]) -> str:
    """Return what a run computes on, and in which precision."""
    parts = [f"on {facts['device']}"]
    if facts["processes"] > 1:
        parts.append(f"{facts['processes']} processes")
    if facts["threads"]:
        parts.append(f"{facts['threads']} thread{'s' if facts['threads'] > 1 else ''}")
    reason = facts["precision_reason"]
    parts.append(facts["precision"] + (f" ({reason})" if reason else ""))
    return ", ".join(parts)


class Terminal(Observer):
    """Shows a run on the console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = progress_bar(console)
        self._stage: TaskID | None = None
        self._stage_name = ""
        self._steps: TaskID | None = None
        self._validation: TaskID | None = None
        self._max_steps = 0
        self._last_line = 0.0

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        self._bar.start()  # again does nothing
        if self._stage is None or stage != self._stage_name:
            self._drop_stage()
            self._stage_name = stage
            self._stage = self._bar.add_task(stage, total=total, status="")
            if not self._console.is_terminal:
                self._print(f"{stage} …")
        self._bar.update(self._stage, completed=done, total=total)

    def prepared(self) -> None:
        self._drop_stage()
        self._bar.stop()

    def started(self, facts: dict[str, Any], step: int, max_steps: int) -> None:
        self._bar.start()
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in facts["dropped"].items())
        self._print(
            f"[bold]{facts['pairs']:,}[/] sentence pairs ({facts['source_tokens']:,} source and "
            f"{facts['target_tokens']:,} target tokens); dropped: {dropped or 'none'}"
        )
        if len(facts["corpora"]) > 1:
            for line in epoch_lines(facts["corpora"]):
                self._print(line)
        if facts["joined"]:
            self._print(f"[bold]{facts['joined']:,}[/] longer examples of several pairs joined")
        self._print(
            f"[bold]{facts['parameters']:,}[/] parameters, vocabulary of {facts['vocabulary']:,}"
        )
        self._print(escape(machine_line(facts)))
        self._max_steps = max_steps
        self._steps = self._bar.add_task("training", total=max_steps, completed=step, status="")

    def stepped(self, step: int, record: StepRecord | None) -> None:
        if self._steps is None:
            return
        self._bar.update(self._steps, completed=step)
        if record is None:
            return
        status = (
            f"epoch {record.epoch + 1}  loss {record.loss:.3f}  "
            f"{record.tokens_per_second:,.0f} tokens/s"
        )
        self._bar.update(self._steps, status=status)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._last_line > _SECONDS_BETWEEN_LINES:
            self._last_line = now
            self._print(f"step {step}/{self._max_steps}  {status}")

    def validating(self, done: int, total: int) -> None:
        if self._validation is None:
            self._validation = self._bar.add_task("validating", total=total, status="")
        self._bar.update(self._validation, completed=done, total=total)

    def validated(self, record: ValidationRecord) -> None:
        if self._validation is not None:
            self._bar.remove_task(self._validation)
            self._validation = None
        best = "  [green]best so far[/]" if record.is_best else ""
        self._print(f"step {record.step}: {record.summary()}{best}")
        for source, _, translation in record.samples:
            self._print(f"  [dim]{escape(source)} → {escape(translation)}[/]")

    def saved(self, path: Path) -> None:
        if path.name == "final":
            self._print(f"the final model is in [bold]{escape(str(path))}[/]")

    def noted(self, message: str) -> None:
        self._print(escape(message))

    def close(self) -> None:
        self._bar.stop()

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)  # a log keeps its lines whole

    def _drop_stage(self) -> None:
        if self._stage is not None:
            self._bar.remove_task(self._stage)
            self._stage = None
