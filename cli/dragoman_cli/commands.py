"""The subcommands that ask a server one thing: score, models, health, alignment."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dragoman_cli.endpoint_options import ModelOptions, ProbeOptions, ServerOptions
from dragoman_cli.grouped_options import grouped
from dragoman_client._errors import ConfigurationError
from dragoman_client._options import Options

_PICTURE = Path("alignment.png")


@grouped
def models(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
    *,
    server: ServerOptions,
) -> None:
    """Show the models that a server has loaded, with the languages of each.

    Example: dragoman models --address localhost:50051
    """
    with server.connected() as client:
        found = client.models()
    if as_json:
        typer.echo(json.dumps([asdict(model) for model in found], indent=2))
        return
    from rich.console import Console

    from dragoman_cli.model_table import print_models

    print_models(found, Console(highlight=False))


@grouped
def health(
    *,
    server: ProbeOptions,
) -> None:
    """Say whether a server takes requests. For probes.

    Exit codes: 0, it does; 1, it says that it does not; 3, nobody answers there.

    Example: dragoman health --address localhost:50051
    """
    with server.connected() as client:
        serving = client.health()
    typer.echo("serving" if serving else "not serving")
    if not serving:
        raise typer.Exit(1)


@grouped
def score(
    source_text: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Sentence in the source language.")
    ],
    translations: Annotated[
        list[str], typer.Argument(metavar="TRANSLATION...", help="Translations of the sentence.")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array, with the score of each token.")
    ] = False,
    *,
    which: ModelOptions,
    server: ServerOptions,
) -> None:
    """Say how probable a model finds translations of a sentence; nearer to 0 is better.

    Example: dragoman score "Good morning." "Bom dia." "Boa noite."
    """
    pairs = [(source_text, translation) for translation in translations]
    with server.connected() as client:
        scores = client.score(pairs, **which.asked(), token_scores=as_json)
    if as_json:
        typer.echo(json.dumps([asdict(found) for found in scores], ensure_ascii=False, indent=2))
        return
    for found, translation in zip(scores, translations, strict=True):
        typer.echo(f"{found.score:8.3f}  {translation}")


@grouped
def alignment(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Sentence in the source language.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Picture to write: PNG, SVG or PDF, by its name.")
    ] = _PICTURE,
    *,
    which: ModelOptions,
    server: ServerOptions,
) -> None:
    """Draw which words of a sentence its translation was made from, word by word.

    Example: dragoman alignment "Where is the station?" --output station.png
    """
    from dragoman_cli.heat_map import draw
    from dragoman_cli.pictures import check_picture

    check_picture(output)
    with server.connected() as client:
        translated = client.translate(text, **which.asked(), options=Options(alignment=True))
    if len(translated.segments) != 1 or translated.segments[0].alignment is None:
        raise ConfigurationError(
            f"the text has {len(translated.segments)} sentences: an alignment is drawn of one"
        )
    draw(translated.segments[0].alignment, output)
    typer.echo(translated.text)
    typer.echo(str(output))
