"""``dragoman bench``: load on a server, and what it came to."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman_cli.endpoint_options import ModelOptions, ServerOptions
from dragoman_cli.grouped_options import grouped
from dragoman_cli.main import INTERRUPTED
from dragoman_cli.translation_options import SearchOptions
from dragoman_client._errors import ConfigurationError

if TYPE_CHECKING:  # what it needs is imported when it is called
    from dragoman_cli.bench.run import Run
    from dragoman_client._async_client import AsyncClient

NONE_MET = 5
"""Exit code where no rate meets the target."""
_MIN_TRIAL = 4
"""Least length of a trial of a rate, in targets: before, a queue that grows can look like one that
does not."""
_LOAD, _WHAT, _SHOWN = "Load", "What is translated", "What is shown"


@grouped
def bench(
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            "-r",
            rich_help_panel=_LOAD,
            help="Open loop: calls sent a second, at random moments, however the server does.",
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            "-c",
            rich_help_panel=_LOAD,
            help="Closed loop: calls that are always under way; 8 by default.",
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            "-n",
            rich_help_panel=_LOAD,
            help="Seconds for which calls are sent and counted.",
        ),
    ] = 10.0,
    calls: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=_LOAD, help="Calls to send in a closed loop, in place of --seconds."
        ),
    ] = None,
    warm_up: Annotated[
        float, typer.Option(rich_help_panel=_LOAD, help="Seconds of calls before those that count.")
    ] = 1.0,
    find_rate: Annotated[
        bool,
        typer.Option(
            "--find-rate",
            rich_help_panel=_LOAD,
            help="Look for the highest rate that meets --target-p95; each try takes --seconds.",
        ),
    ] = False,
    target_p95: Annotated[
        float | None,
        typer.Option(
            "--target-p95",
            rich_help_panel=_LOAD,
            help="Seconds in which 95% of all calls are to be answered; a failed call is not.",
        ),
    ] = None,
    max_under_way: Annotated[
        int,
        typer.Option(
            rich_help_panel=_LOAD,
            help="Most calls under way in an open loop; beyond, calls are sent late, and wait.",
        ),
    ] = 2048,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            rich_help_panel=_WHAT,
            help="File whose lines are sent, a call each; without it, everyday English sentences.",
        ),
    ] = None,
    stream_share: Annotated[
        float,
        typer.Option(
            rich_help_panel=_WHAT,
            help="Share of the calls that are streamed, 0 to 1: only they show the first token.",
        ),
    ] = 0.1,
    seed: Annotated[
        int,
        typer.Option(
            rich_help_panel=_WHAT,
            help="Number that settles the texts and moments: the same one repeats them.",
        ),
    ] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", rich_help_panel=_SHOWN, help="Print one JSON object.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(rich_help_panel=_SHOWN, help="Picture to draw: PNG, SVG or PDF, by its name."),
    ] = None,
    *,
    how: SearchOptions,
    which: ModelOptions,
    server: ServerOptions,
) -> None:
    """Put load on a server, and measure how it does.

    A closed loop has --concurrency calls under way and sends one when one is answered: it finds how
    much a server can do. An open loop sends --rate calls a second at random (Poisson) moments,
    whether the server keeps up or not, as many people who don't know of each other would: it finds
    how long they wait. Latency counts from the moment at which a call was to be sent. Nothing is
    tried again: what is refused is counted. Ctrl-C ends it early and shows what was measured.

    Examples:

      dragoman bench --concurrency 64 --seconds 30

      dragoman bench --rate 50 --plot load.png

      dragoman bench --find-rate --target-p95 0.25

      dragoman bench --file questions.en --rate 20 --timeout 2 --json > load.json

    Exit codes: 0, measured, with whatever failures; 1, a file can't be read or written; 2,
    something asked for is wrong; 3, no server, or all calls were refused; 4, the server failed all
    calls; 5, no rate meets the target; 130, Ctrl-C.
    """
    from dragoman_cli.bench.load import LoadSettings
    from dragoman_cli.bench.run import Run
    from dragoman_cli.bench.texts import everyday_sentences, lines_of
    from dragoman_cli.pictures import check_picture

    _check(target_p95, file)
    if concurrency is not None and (rate is not None or find_rate):
        raise ConfigurationError(
            "--concurrency is for a closed loop: leave it out, or leave out --rate and --find-rate"
        )
    if find_rate:
        _check_search(rate, calls, target_p95, seconds)
    settings = LoadSettings(
        rate=rate,
        concurrency=8 if concurrency is None else concurrency,
        seconds=seconds,
        calls=calls,
        warm_up=warm_up,
        stream_share=stream_share,
        max_under_way=max_under_way,
        seed=seed,
    )
    if plot:
        check_picture(plot)
    asked: dict[str, Any] = {**which.asked(), "options": how.options()}
    texts = lines_of(file) if file else everyday_sentences(seed)
    with server.connected() as client:
        # What is wrong with all calls is said at once, and not counted a thousand times.
        answering = client.translate(next(texts), **asked).model

    def connect() -> "AsyncClient":
        from dragoman_client._retries import Retries

        return server.open_async(Retries(attempts=1))

    where = f"{answering} at {server.address}"
    run = Run(connect, texts, asked, settings, where, target_p95 if find_rate else None)
    asyncio.run(run.measure())
    _show(run, target_p95, as_json, plot)
    if run.is_interrupted:
        raise typer.Exit(INTERRUPTED)
    if not any(load.statistics.answered for load in run.loads):
        if (error := run.loads[-1].last_error) is not None:
            raise server.explain(error)
        raise ConfigurationError(
            "no call came to its time: ask for more --seconds, or a higher --rate"
        )
    if find_rate and run.best is None:
        raise typer.Exit(NONE_MET)


def _show(run: "Run", target: float | None, as_json: bool, picture: Path | None) -> None:
    from dragoman_cli.bench import plot, report

    if as_json:
        typer.echo(json.dumps(report.as_json(run), indent=2))
    else:
        report.print_run(run)
    if picture:
        trials = [
            plot.Tried(trial.rate, trial.load.statistics.latency.percentile(95), trial.met)
            for trial in run.trials
        ]
        load = run.shown
        plot.draw(load.statistics, run.title(load.settings), picture, trials=trials, target=target)
        if not as_json:
            typer.echo(str(picture))


def _check(target_p95: float | None, file: Path | None) -> None:
    if target_p95 is not None and not 0 < target_p95 < float("inf"):
        raise ConfigurationError(f"--target-p95 is {target_p95}: it must be above 0 seconds")
    if file is not None and file.exists() and not file.is_file():
        raise ConfigurationError(f"{file}: not a regular file, so it can't be read over and over")


def _check_search(
    rate: float | None, calls: int | None, target_p95: float | None, seconds: float
) -> None:
    if target_p95 is None:
        raise ConfigurationError("--find-rate needs a target, as --target-p95 0.25")
    if rate is not None or calls is not None:
        raise ConfigurationError("--find-rate chooses the rate: leave out --rate and --calls")
    if seconds < _MIN_TRIAL * target_p95:
        raise ConfigurationError(
            f"--seconds is {seconds:g}: a rate that is too high shows after at least "
            f"{_MIN_TRIAL} times the target, {_MIN_TRIAL * target_p95:g}"
        )
