"""``dragoman translate``: a filter from lines to lines, texts from the command line, documents."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman_cli.documents.arguments import documents_among, hint
from dragoman_cli.documents.segments import concerns_all
from dragoman_cli.endpoint_options import ModelOptions, ServerOptions
from dragoman_cli.grouped_options import grouped
from dragoman_cli.line_files import (
    ResumableOutput,
    StandardOutput,
    check_distinct,
    descriptor_lines,
    read_lines,
    sha256,
)
from dragoman_cli.progress import Watch, progress
from dragoman_cli.rendering import Render, Result, as_json, as_line, with_alternatives
from dragoman_cli.translation_options import TranslationOptions
from dragoman_client._client import Client
from dragoman_client._errors import CallError, ConfigurationError

SOME_FAILED = 5
"""Exit code where some lines have no translation."""

Sink = StandardOutput | ResumableOutput


@grouped
def translate(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT",
            help="Texts to translate, or documents; without any, the lines of standard input.",
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="File whose lines are translated.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write the translations to, in place of standard output. It gets this "
            "name once it is complete. Of documents: a file or a folder, in place of files beside "
            "them.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on where a run with the same files and --output was cut off."
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Begin anew, and replace what --output or a run that was cut off has written.",
        ),
    ] = False,
    bilingual: Annotated[
        Path | None,
        typer.Option(
            "--bilingual",
            help="File to write the segments of documents to, beside their translations: .xlf or "
            ".tmx.",
            metavar="FILE",
        ),
    ] = None,
    memory: Annotated[
        Path | None,
        typer.Option(
            "--memory",
            help="Translation memory whose segments are used as they are, in documents: a .tmx "
            "file, as --bilingual writes it.",
            metavar="FILE",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="Column of csv and tsv files to translate, by its name or number; all columns of "
            "text by default. May be repeated.",
        ),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show each translation while it grows.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object a line, with scores and segments.")
    ] = False,
    *,
    how: TranslationOptions,
    which: ModelOptions,
    server: ServerOptions,
) -> None:
    """Translate with a server: texts, documents, standard input, or a file, line by line.

    A document is an argument that names a file of a known format, as report.docx; its translation
    is written beside it, as report.pt.docx. A folder is written with a slash at its end.

    A line stays a line, and an empty one empty. A file is translated with many lines under way, by
    all servers that --address names. Its translations are kept beside --output while it runs, so
    that --resume can go on with them.

    Examples:

      dragoman translate "Good morning."

      dragoman translate --alternatives 3 "Good morning."

      cat book.en | dragoman translate > book.pt

      dragoman translate --file book.en --output book.pt --resume

      dragoman translate report.docx site/ --output translated/

    Exit codes: 0, everything is translated; 1, a file can't be read or written; 2, something
    asked for is wrong; 3, no server, or it is full: try later; 4, the server failed; 5, some lines
    failed, and are empty, or some of a document is as it was; 130, Ctrl-C; 141, the reader of the
    output has closed it.
    """
    documents = documents_among(texts or [])
    if documents:
        if file or stream or json or how.alternatives or how.markup:
            raise ConfigurationError(
                "documents are translated without --file, --stream, --json, --alternatives and "
                "--markup"
            )
    elif bilingual or column or memory:
        raise ConfigurationError("--bilingual, --memory and --column are for documents: name one")
    if texts and file:
        raise ConfigurationError("texts and --file are both given: choose one")
    if resume and overwrite:
        raise ConfigurationError("--resume and --overwrite are both given: choose one")
    if resume and not documents and not (file and output):
        raise ConfigurationError("--resume needs --file and --output")
    if overwrite and not documents and not output:
        raise ConfigurationError("--overwrite needs --output")
    if stream and (file or output or json):
        raise ConfigurationError("--stream is for the terminal: without --file, --output, --json")
    if how.alternatives and not json and (stream or output):
        raise ConfigurationError(
            "--alternatives are shown with --json, or without --stream and --output"
        )
    if file and output:
        check_distinct(file, output)
    asked = {**which.asked(), "options": how.options(as_json=json)}
    render = as_json if json else with_alternatives if how.alternatives else as_line
    if documents:
        from dragoman_cli.documents.run import DocumentOptions, DocumentRun

        options = DocumentOptions(
            output=output,
            resume=resume,
            overwrite=overwrite,
            bilingual=bilingual,
            memory=memory,
            columns=tuple(column or ()),
        )
        with server.connected() as client:
            if not DocumentRun(client, asked, options).translate(documents):
                raise typer.Exit(SOME_FAILED)
        return
    for text in texts or []:
        if said := hint(text):
            typer.echo(f"dragoman: {said}", err=True)
    with server.connected() as client:
        if stream:
            _stream(client, texts, asked)
        elif not _Run(client, asked, render, file, output, resume, overwrite).translate(texts):
            raise typer.Exit(SOME_FAILED)


def _stream(client: Client, texts: list[str] | None, asked: dict[str, Any]) -> None:
    output = StandardOutput()
    for text in _checked(texts) if texts else ["".join(_standard_input())]:
        for piece in client.stream(text, **asked):
            output.write(piece)
        if texts:
            output.write("\n")


@dataclass(frozen=True)
class _Run:
    """Lines on their way from where they come from to where they go."""

    client: Client
    asked: dict[str, Any]
    """Arguments of the SDK's calls."""
    render: Render
    file: Path | None
    output: Path | None
    resume: bool
    overwrite: bool

    def translate(self, texts: list[str] | None) -> bool:
        """Translate texts or lines; return whether each has a translation."""
        with ExitStack() as stack:
            made_from = {"asked": repr(self.asked), "render": self.render.__name__}
            if self.output and self.file and self.file.is_file():  # a pipe can be read only once
                made_from["text"] = sha256(self.file)
            elif self.resume and self.file and self.file.exists():
                raise ConfigurationError(f"{self.file}: not a regular file, so it can't be resumed")
            lines_of_file = stack.enter_context(self.file.open("rb")) if self.file else None
            sink = self._sink(made_from, stack)
            if texts:
                results = _one_by_one(self.client, _checked(texts), self.asked)
                return self._write_all(results, repeat("\n"), sink, lambda number, failed: None)
            if self.file and lines_of_file:
                lines = read_lines(lines_of_file, str(self.file), sink.done)
            else:
                lines = _standard_input()
            watch = stack.enter_context(
                progress(self.file, sink.done, is_written=self.output is not None)
            )
            ends: deque[str] = deque()  # of the lines under way
            results = self.client.translate_many(_without_ends(lines, ends), **self.asked)
            return self._write_all(results, _taken(ends), sink, watch)

    def _sink(self, made_from: dict[str, str], stack: ExitStack) -> Sink:
        if self.output is None:
            if self.file is not None:
                check_distinct(self.file, None)
            return StandardOutput()
        return stack.enter_context(
            ResumableOutput(self.output, made_from, resume=self.resume, overwrite=self.overwrite)
        )

    def _write_all(
        self, results: Iterable[Result], ends: Iterator[str], sink: Sink, watch: Watch
    ) -> bool:
        for number, result in enumerate(results, start=sink.done + 1):
            end = next(ends)
            if isinstance(result, CallError):
                if concerns_all(result):
                    raise self.client._explain(result, address=0)
                sink.fail(number)
                typer.echo(f"dragoman: line {number}: {result}", err=True)
            sink.write(self.render(result, end))
            watch(number, sink.failed)
        return not sink.failed


def _without_ends(lines: Iterable[str], ends: deque[str]) -> Iterator[str]:
    for line in lines:
        body = line.removesuffix("\n")
        ends.append(line[len(body) :])
        yield body


def _taken(ends: deque[str]) -> Iterator[str]:
    while True:
        yield ends.popleft()


def _one_by_one(client: Client, texts: list[str], asked: dict[str, Any]) -> Iterator[Result]:
    """Translate each text in a call of its own: a call has a time-out, a stream of lines none."""
    for text in texts:
        try:
            yield client.translate(text, **asked)
        except CallError as error:
            if concerns_all(error):  # and says already what to do about it
                raise
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
