"""``dragoman translate``: a filter from lines to lines, and texts from the command line."""

import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman_client._client import Client
from dragoman_client._endpoint_options import (
    DEFAULT_ADDRESS,
    AddressOption,
    RootsOption,
    TimeoutOption,
    TlsOption,
    TokenOption,
    connected,
)
from dragoman_client._errors import (
    CallError,
    ConfigurationError,
    InvalidRequestError,
    ServerError,
    TimedOutError,
)
from dragoman_client._line_files import ResumableOutput, read_lines, sha256
from dragoman_client._options import Options
from dragoman_client._results import Translation
from dragoman_client.commands import ModelOption, SourceOption, TargetOption

SOME_FAILED = 5
"""Exit code where some lines have no translation."""
_HOW = "How to translate"


def translate(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]...", help="Texts; without any, lines of standard input."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Translate the lines of this file.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here, and not to the terminal.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an --output that was interrupted.")
    ] = False,
    stream: Annotated[bool, typer.Option("--stream", help="Show each text as it grows.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object a line, with scores and segments.")
    ] = False,
    beam: Annotated[
        int | None, typer.Option("--beam", "-b", rich_help_panel=_HOW, help="1 is greedy search.")
    ] = None,
    alternatives: Annotated[
        int | None, typer.Option(rich_help_panel=_HOW, help="Of each sentence, with --json.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(rich_help_panel=_HOW, help="Of each sentence.")
    ] = None,
    source: SourceOption = None,
    target: TargetOption = None,
    model: ModelOption = None,
    address: AddressOption = DEFAULT_ADDRESS,
    token: TokenOption = None,
    tls: TlsOption = False,
    root_certificates: RootsOption = None,
    timeout: TimeoutOption = 60.0,
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
    failed, and are empty.
    """
    if texts and file:
        raise ConfigurationError("texts and --file are both given: choose one")
    if resume and not (file and output):
        raise ConfigurationError("--resume needs --file and --output")
    if stream and (file or output or as_json):
        raise ConfigurationError("--stream is for the terminal: without --file, --output, --json")
    options = Options(beam_size=beam, alternatives=alternatives, max_tokens=max_tokens)
    asked = {"source": source, "target": target, "model": model, "options": options}
    with connected(address, token, tls, root_certificates, timeout) as client:
        if stream:
            _stream(client, texts, asked)
        elif not _lines(client, texts, file, output, resume, as_json, asked):
            raise typer.Exit(SOME_FAILED)


def _stream(client: Client, texts: list[str] | None, asked: dict[str, Any]) -> None:
    for text in texts or [sys.stdin.read()]:
        for piece in client.stream(text, **asked):
            sys.stdout.write(piece)
            sys.stdout.flush()
        if texts:
            sys.stdout.write("\n")


def _lines(
    client: Client,
    texts: list[str] | None,
    file: Path | None,
    output: Path | None,
    resume: bool,
    as_json: bool,
    asked: dict[str, Any],
) -> bool:
    """Returns whether every line has a translation."""
    with ExitStack() as stack:
        made_from = {"asked": repr(asked), "json": str(as_json)}
        if file:
            made_from["text"] = sha256(file)
        write, done = _to_stdout, 0
        if output:
            target = stack.enter_context(ResumableOutput(output, made_from, resume=resume))
            write, done = target.write, target.done
        if texts:
            lines: Iterable[str] = [f"{text}\n" for text in texts]
        elif file:
            lines = read_lines(stack.enter_context(file.open("rb")), str(file), done)
        else:
            lines = read_lines(sys.stdin.buffer, "standard input")
        watch = stack.enter_context(_progress(file if output or not sys.stdout.isatty() else None))
        return _translate_lines(client, lines, write, watch, as_json, asked, done)


def _translate_lines(
    client: Client,
    lines: Iterable[str],
    write: Any,
    watch: Any,
    as_json: bool,
    asked: dict[str, Any],
    done: int,
) -> bool:
    failed = 0
    ends: deque[str] = deque()  # of the lines under way

    def bodies() -> Iterator[str]:
        for line in lines:
            body = line.removesuffix("\n")
            ends.append(line[len(body) :])
            yield body

    for number, result in enumerate(client.translate_many(bodies(), **asked), start=done + 1):
        end = ends.popleft()
        if isinstance(result, CallError):
            if _concerns_all(result):
                raise result
            failed += 1
            typer.echo(f"dragoman: line {number}: {result}", err=True)
        if as_json:
            write(json.dumps(_as_json(result), ensure_ascii=False) + "\n")
        else:
            write((result.text if isinstance(result, Translation) else "") + end)
        watch(number)
    return not failed


def _concerns_all(error: CallError) -> bool:
    """Whether every other line would fail with it too."""
    if isinstance(error, InvalidRequestError):
        return error.field != "text"
    return not isinstance(error, ServerError | TimedOutError)


def _as_json(result: Translation | CallError) -> dict[str, Any]:
    if isinstance(result, CallError):
        return {"error": {"reason": result.reason, "message": result.message}}
    return asdict(result, dict_factory=_plain)


def _plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Without what is not there, and spans as pairs."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if isinstance(value, slice):
            found[name] = [value.start, value.stop]
        elif hasattr(value, "value"):
            found[name] = value.value
        elif value is not None and value != ():
            found[name] = value
    return found


def _to_stdout(line: str) -> None:
    sys.stdout.buffer.write(line.encode())
    sys.stdout.buffer.flush()


@contextmanager
def _progress(file: Path | None) -> Iterator[Any]:
    """A bar on the terminal's standard error, where a file is translated."""
    if file is None or not sys.stderr.isatty():
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
        task = bar.add_task("", total=total, rate="…")

        def watch(number: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, completed=number, rate=f"{speed:,.0f}" if speed else "…")

        yield watch
