"""``dragoman translate``: a filter from lines to lines, and texts from the command line."""

import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import repeat
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman_cli.endpoint_options import ModelOptions, ServerOptions
from dragoman_cli.grouped_options import grouped
from dragoman_cli.line_files import (
    ResumableOutput,
    StandardOutput,
    descriptor_lines,
    read_lines,
    sha256,
)
from dragoman_client._client import Client
from dragoman_client._errors import (
    CallError,
    ConfigurationError,
    InvalidRequestError,
    ServerError,
)
from dragoman_client._options import Options
from dragoman_client._results import Translation

SOME_FAILED = 5
"""Exit code where some lines have no translation."""
_HOW = "How to translate"

Sink = StandardOutput | ResumableOutput


@grouped
def translate(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEXT]...",
            help="Texts to translate; without any, the lines of standard input.",
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="File whose lines are translated.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write the translations to, in place of standard output."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on where a run with the same --file and --output was cut off."
        ),
    ] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show each translation while it grows.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object a line, with scores and segments.")
    ] = False,
    beam: Annotated[
        int | None,
        typer.Option(
            "--beam",
            "-b",
            rich_help_panel=_HOW,
            help="Hypotheses that the search keeps; 1 is greedy search.",
        ),
    ] = None,
    alternatives: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=_HOW,
            help="Translations of each sentence to show, with --json; at most --beam.",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(rich_help_panel=_HOW, help="Most tokens of each translated sentence."),
    ] = None,
    *,
    which: ModelOptions,
    server: ServerOptions,
) -> None:
    """Translate with a server: texts, standard input, or a file, line by line.

    A line stays a line, and an empty one empty. A file is translated with many lines under way, and
    --output has its name when it is complete.

    Examples:

      dragoman translate "Good morning."

      cat book.en | dragoman translate > book.pt

      dragoman translate --file book.en --output book.pt --resume

    Exit codes: 0, everything is translated; 1, a file can't be read or written; 2, something
    asked for is wrong; 3, no server, or it is full: try later; 4, the server failed; 5, some lines
    failed, and are empty; 130, Ctrl-C; 141, who read the output has gone.
    """
    if texts and file:
        raise ConfigurationError("texts and --file are both given: choose one")
    if resume and not (file and output):
        raise ConfigurationError("--resume needs --file and --output")
    if stream and (file or output or as_json):
        raise ConfigurationError("--stream is for the terminal: without --file, --output, --json")
    options = Options(beam_size=beam, alternatives=alternatives, max_tokens=max_tokens)
    asked = {**which.asked(), "options": options}
    with server.connected() as client:
        if stream:
            _stream(client, texts, asked)
        elif not _lines(client, texts, file, output, resume, as_json, asked):
            raise typer.Exit(SOME_FAILED)


def _stream(client: Client, texts: list[str] | None, asked: dict[str, Any]) -> None:
    output = StandardOutput()
    for text in _checked(texts) if texts else ["".join(_standard_input())]:
        for piece in client.stream(text, **asked):
            output.write(piece)
        if texts:
            output.write("\n")


def _lines(
    client: Client,
    texts: list[str] | None,
    file: Path | None,
    output: Path | None,
    resume: bool,
    as_json: bool,
    asked: dict[str, Any],
) -> bool:
    """Translate lines, and return whether every line has a translation."""
    with ExitStack() as stack:
        made_from = {"asked": repr(asked), "json": str(as_json)}
        if output and file and file.is_file():  # a pipe can be read only once
            made_from["text"] = sha256(file)
        elif resume and file and file.exists():
            raise ConfigurationError(f"{file}: not a regular file, so it can't be resumed")
        lines_of_file = stack.enter_context(file.open("rb")) if file else None
        sink: Sink
        if output:
            sink = stack.enter_context(ResumableOutput(output, made_from, resume=resume))
        else:
            sink = StandardOutput()
        if texts:
            results = _one_by_one(client, _checked(texts), asked)
            return _write_all(results, repeat("\n"), sink, lambda number: None, as_json)
        if file and lines_of_file:
            lines = read_lines(lines_of_file, str(file), sink.done)
        else:
            lines = _standard_input()
        is_shown = output or not sys.stdout.isatty()
        watch = stack.enter_context(_progress(file if is_shown else None, sink.done))
        ends: deque[str] = deque()  # of the lines under way
        results = client.translate_many(_without_ends(lines, ends), **asked)
        return _write_all(results, _taken(ends), sink, watch, as_json)


def _write_all(
    results: Iterable[Translation | CallError],
    ends: Iterator[str],
    sink: Sink,
    watch: Callable[[int], None],
    as_json: bool,
) -> bool:
    for number, result in enumerate(results, start=sink.done + 1):
        end = next(ends)
        if isinstance(result, CallError):
            if _concerns_all(result):
                raise result
            sink.fail(number)
            typer.echo(f"dragoman: line {number}: {result}", err=True)
        if as_json:
            sink.write(json.dumps(_as_json(result), ensure_ascii=False) + "\n")
        else:
            sink.write((result.text if isinstance(result, Translation) else "") + end)
        watch(number)
    return not sink.failed


def _without_ends(lines: Iterable[str], ends: deque[str]) -> Iterator[str]:
    for line in lines:
        body = line.removesuffix("\n")
        ends.append(line[len(body) :])
        yield body


def _taken(ends: deque[str]) -> Iterator[str]:
    while True:
        yield ends.popleft()


def _one_by_one(
    client: Client, texts: list[str], asked: dict[str, Any]
) -> Iterator[Translation | CallError]:
    """Translate each text in a call of its own: a call has a time-out, a stream of lines none."""
    for text in texts:
        try:
            yield client.translate(text, **asked)
        except CallError as error:
            yield error


def _checked(texts: list[str]) -> list[str]:
    for number, text in enumerate(texts, start=1):
        try:
            text.encode()
        except UnicodeEncodeError:  # so Python marks bytes of an argument that it can't decode
            raise ConfigurationError(f"text {number} is not UTF-8") from None
    return texts


def _standard_input() -> Iterator[str]:
    if sys.stdin is None:
        raise ConfigurationError("standard input is closed: give texts, or --file")
    return read_lines(descriptor_lines(sys.stdin.fileno()), "standard input")


def _concerns_all(error: CallError) -> bool:
    """Whether every other line would fail with the same error."""
    if isinstance(error, InvalidRequestError):
        return not error.field.startswith("text")
    return not isinstance(error, ServerError)


def _as_json(result: Translation | CallError) -> dict[str, Any]:
    if isinstance(result, CallError):
        return {"error": {"reason": result.reason, "message": result.message}}
    return asdict(result, dict_factory=_plain)


def _plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a table for JSON: without what is not there, and with spans as pairs."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if isinstance(value, slice):
            found[name] = [value.start, value.stop]
        elif hasattr(value, "value"):
            found[name] = value.value
        elif value is not None and value != ():
            found[name] = value
    return found


@contextmanager
def _progress(file: Path | None, done: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on the terminal's standard error, where a file is translated."""
    if file is None or not file.is_file() or not sys.stderr.isatty():
        yield lambda number: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with file.open("rb") as lines:
        total = sum(1 for _ in lines)
    columns = (
        TextColumn("translating"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} lines/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, completed=done, rate="…")

        def watch(number: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, completed=number, rate=f"{speed:,.0f}" if speed else "…")

        yield watch
