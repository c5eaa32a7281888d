"""The subcommands that look at bundles; heavy imports only when they are called."""

from pathlib import Path
from typing import Annotated

import typer

BundleArgument = Annotated[Path, typer.Argument(metavar="BUNDLE", help="Directory of a bundle.")]


def inspect(
    bundle: BundleArgument,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the manifest as it is, in JSON.")
    ] = False,
) -> None:
    """Show what a bundle holds: sizes, limits, languages, quality, memory per row.

    Example: dragoman inspect models/my
    """
    from rich.console import Console

    from dragoman_server.bundle.reading import read_bundle
    from dragoman_server.cli.describe import describe

    checked = read_bundle(bundle)
    if as_json:
        typer.echo(checked.manifest.to_json(), nl=False)
    else:
        Console(highlight=False).print(describe(checked))


def verify(
    bundle: BundleArgument,
    device: Annotated[str, typer.Option(help="Device to decode on: cpu or cuda.")] = "cpu",
) -> None:
    """Check a bundle's files, load its graphs, and replay its golden decodings on this machine.

    The golden sentences are decoded alone and side by side: what a sentence gets must not depend
    on the others.

    Example: dragoman verify models/my
    """
    from dragoman_server.bundle.reading import read_bundle
    from dragoman_server.errors import BundleError
    from dragoman_server.runtime.checks.machine import check_machine
    from dragoman_server.runtime.graphs import Graphs, GraphSettings

    checked = read_bundle(bundle)
    try:
        settings = GraphSettings(rows=max(2, len(checked.golden)), device=device)
    except ValueError as error:
        raise BundleError(str(error)) from None
    graphs = Graphs(checked, settings)
    found = check_machine(checked, graphs)
    typer.echo(
        f"{bundle}: {len(checked.manifest.files)} files as the manifest says; "
        f"{len(checked.golden)} golden sentences decoded to the same tokens, "
        f"log-probabilities within {found.golden_error:.1e}"
        + (
            "; the last bits of alignments depend on the batch on this CPU"
            if found.alignments_depend
            else ""
        )
    )
