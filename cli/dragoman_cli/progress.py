"""A progress bar for long runs, on the terminal's standard error."""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Watch = Callable[[int, int], None]
"""Told how many lines are done, and how many of them failed."""


@contextmanager
def progress(file: Path | None, done: int, *, is_written: bool) -> Iterator[Watch]:
    """Show a bar where somebody watches, and where translations don't go to the same terminal.

    Lines of standard input are counted too, where they are written to a file.
    """
    if not sys.stderr.isatty() or not _is_shown(file, is_written):
        yield lambda number, failed: None
        return
    from rich import progress as parts
    from rich.console import Console

    columns = (
        parts.TextColumn("translating"),
        parts.BarColumn(),
        parts.MofNCompleteColumn(),
        parts.TextColumn("{task.fields[rate]} lines/s{task.fields[failed]}"),
        parts.TimeElapsedColumn(),
        *((parts.TextColumn("left"), parts.TimeRemainingColumn()) if file else ()),
    )
    total = _count_lines(file) if file else None
    with parts.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, completed=done, rate="…", failed="")

        def watch(number: int, failed: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(
                task,
                completed=number,
                rate=f"{speed:,.0f}" if speed else "…",
                failed=f", {failed:,} failed" if failed else "",
            )

        yield watch


@contextmanager
def document_progress(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar of the texts of a document, where somebody watches."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich import progress as parts
    from rich.console import Console

    columns = (
        parts.TextColumn("{task.description}", markup=False),
        parts.BarColumn(),
        parts.MofNCompleteColumn(),
        parts.TimeElapsedColumn(),
        parts.TextColumn("left"),
        parts.TimeRemainingColumn(),
    )
    with parts.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=total)
        yield lambda done: bar.update(task, completed=done)


def _is_shown(file: Path | None, is_written: bool) -> bool:
    if file is not None:
        return file.is_file() and (is_written or not sys.stdout.isatty())
    goes_to_a_file = is_written or stat.S_ISREG(os.fstat(1).st_mode)
    return goes_to_a_file and sys.stdin is not None and not sys.stdin.isatty()


def _count_lines(file: Path) -> int:
    with file.open("rb") as lines:
        return sum(1 for _ in lines)
