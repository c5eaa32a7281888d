"""The subcommands that talk to a server: translate, score, models, health, alignment."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dragoman_cli.endpoint_options import (
    DEFAULT_ADDRESS,
    AddressOption,
    KeyOption,
    RootsOption,
    TimeoutOption,
    TlsOption,
    connected,
)
from dragoman_client._errors import ConfigurationError
from dragoman_client._options import Options

_LANGUAGES = "Languages and model"
_PICTURE = Path("alignment.png")

SourceOption = Annotated[
    str | None,
    typer.Option(
        "--source", "-s", envvar="DRAGOMAN_SOURCE", rich_help_panel=_LANGUAGES, help="As en."
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target", "-t", envvar="DRAGOMAN_TARGET", rich_help_panel=_LANGUAGES, help="As pt-BR."
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", envvar="DRAGOMAN_MODEL", rich_help_panel=_LANGUAGES, help="By its name."
    ),
]


def models(
    as_json: Annotated[bool, typer.Option("--json", help="A JSON array.")] = False,
    address: AddressOption = DEFAULT_ADDRESS,
    key: KeyOption = None,
    tls: TlsOption = False,
    root_certificates: RootsOption = None,
    timeout: TimeoutOption = 60.0,
) -> None:
    """Show the models that a server has loaded.

    Example: dragoman models --address localhost:50051
    """
    with connected(address, key, tls, root_certificates, timeout) as client:
        found = client.models()
    if as_json:
        typer.echo(json.dumps([asdict(model) for model in found], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("model", "version", "languages", "precision", "device", "longest", "beam", "rows")
    for model in found:
        table.add_row(
            model.name,
            model.version,
            f"{model.source_language} → {model.target_language}",
            model.precision,
            model.device,
            f"{model.max_source_tokens} tokens",
            str(model.max_beam_size),
            str(model.rows),
        )
    Console(highlight=False).print(table)


def health(
    address: AddressOption = DEFAULT_ADDRESS,
    key: KeyOption = None,
    tls: TlsOption = False,
    root_certificates: RootsOption = None,
    timeout: TimeoutOption = 5.0,
) -> None:
    """Say whether a server takes requests. For probes.

    Exit codes: 0, it does; 1, it says that it does not; 3, nobody answers there.

    Example: dragoman health --address localhost:50051
    """
    with connected(address, key, tls, root_certificates, timeout) as client:
        serving = client.health()
    typer.echo("serving" if serving else "not serving")
    if not serving:
        raise typer.Exit(1)


def score(
    source_text: Annotated[str, typer.Argument(metavar="SOURCE", help="A sentence.")],
    translations: Annotated[
        list[str], typer.Argument(metavar="TRANSLATION...", help="Translations of it.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="A JSON array, with tokens.")] = False,
    source: SourceOption = None,
    target: TargetOption = None,
    model: ModelOption = None,
    address: AddressOption = DEFAULT_ADDRESS,
    key: KeyOption = None,
    tls: TlsOption = False,
    root_certificates: RootsOption = None,
    timeout: TimeoutOption = 60.0,
) -> None:
    """Say how probable a model finds translations of a sentence; nearer to 0 is better.

    Example: dragoman score "Good morning." "Bom dia." "Boa noite."
    """
    pairs = [(source_text, translation) for translation in translations]
    with connected(address, key, tls, root_certificates, timeout) as client:
        scores = client.score(
            pairs, source=source, target=target, model=model, token_scores=as_json
        )
    if as_json:
        typer.echo(json.dumps([asdict(found) for found in scores], ensure_ascii=False, indent=2))
        return
    for found, translation in zip(scores, translations, strict=True):
        typer.echo(f"{found.score:8.3f}  {translation}")


def alignment(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A sentence.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A picture: PNG, SVG or PDF, by its name.")
    ] = _PICTURE,
    source: SourceOption = None,
    target: TargetOption = None,
    model: ModelOption = None,
    address: AddressOption = DEFAULT_ADDRESS,
    key: KeyOption = None,
    tls: TlsOption = False,
    root_certificates: RootsOption = None,
    timeout: TimeoutOption = 60.0,
) -> None:
    """Draw which words of a sentence its translation was made from, word by word.

    Example: dragoman alignment "Where is the station?" --output station.png
    """
    from dragoman_cli.heat_map import draw
    from dragoman_cli.pictures import check_picture

    check_picture(output)
    with connected(address, key, tls, root_certificates, timeout) as client:
        translated = client.translate(
            text, source=source, target=target, model=model, options=Options(alignment=True)
        )
    if len(translated.segments) != 1 or translated.segments[0].alignment is None:
        raise ConfigurationError(
            f"the text has {len(translated.segments)} sentences: an alignment is drawn of one"
        )
    draw(translated.segments[0].alignment, output)
    typer.echo(translated.text)
    typer.echo(str(output))
