"""Options of ``dragoman export`` and of the commands that import models, and how these end."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dragoman_export.export import ExportSettings
    from dragoman_export.source import Origin
    from dragoman_export.texts import LexiconText, ParallelSample

CheckpointArgument = Annotated[
    Path,
    typer.Argument(metavar="CHECKPOINT", help="The checkpoint, or the directory of its run."),
]
BundleArgument = Annotated[
    Path, typer.Argument(metavar="BUNDLE", help="The directory to write the bundle to.")
]
PrecisionOption = Annotated[
    str,
    typer.Option(help="Precision of the graphs: float32; int8 for CPUs; float16 for CUDA."),
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Matrix products that stay float32 in an int8 bundle, because quality suffers: a "
        "name or a pattern, as 'projection' or 'decoder.*'. May be repeated.",
    ),
]
SourceLanguageOption = Annotated[
    str,
    typer.Option(
        metavar="TAG",
        help="Language to translate from, as en.  \\[default: as the model's files say]",
        show_default=False,
    ),
]
TargetLanguageOption = Annotated[
    str,
    typer.Option(
        metavar="TAG",
        help="Language to translate into, as pt-BR.  \\[default: as the model's files say]",
        show_default=False,
    ),
]
MaxTokensOption = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Most tokens of a sentence. The server takes memory for as many, and splits what is "
        "longer.  \\[default: what the model takes, but at most 256]",
    ),
]
ReferenceOption = Annotated[
    Path | None, typer.Option(help="Right translations of the text to measure quality on.")
]
NameOption = Annotated[
    str | None,
    typer.Option(help="Name of the model.  \\[default: the name of the bundle's directory]"),
]
VersionOption = Annotated[str, typer.Option(help="Version of the model.")]
LicenceOption = Annotated[str, typer.Option(help="Licence of the model, as an SPDX identifier.")]
SentencesOption = Annotated[
    int, typer.Option(min=1, help="Number of sentences to measure quality on, from the first on.")
]
MaxBleuLostOption = Annotated[
    float,
    typer.Option(
        min=0,
        max=100,
        help="Most BLEU that int8 or float16 may lose against float32. More, with 95% confidence "
        "by a paired bootstrap over the sentences, leaves no bundle.",
    ),
]
GoldenOption = Annotated[
    Path | None,
    typer.Option(
        help="Sentences whose decodings the bundle keeps, for the server to check itself "
        "against.  \\[default: some of the text that quality is measured on]"
    ),
]
ShortlistSourceOption = Annotated[
    Path | None,
    typer.Option(
        help="Source side of parallel text to learn a shortlist from, for int8: which target "
        "tokens are likely for which source tokens. Searches look at no others, which is much "
        "faster, and quality is measured with it. May be gzip."
    ),
]
ShortlistTargetOption = Annotated[
    Path | None,
    typer.Option(help="Target side of the parallel text to learn a shortlist from. May be gzip."),
]
ShortlistLikelyOption = Annotated[
    int,
    typer.Option(min=1, help="Target tokens that the shortlist has for each source token."),
]


def export_settings(
    bundle: Path,
    name: str | None,
    version: str,
    precision: str,
    keep_float32: list[str] | None,
    licence: str,
    max_bleu_lost: float,
) -> "ExportSettings":
    """Return the settings that these options mean. Raises ``ExportError`` for a bad one."""
    from dragoman_export.errors import ExportError
    from dragoman_export.export import ExportSettings

    try:
        return ExportSettings(
            name=name or bundle.resolve().name,
            version=version,
            precision=precision,
            keep_float32=tuple(keep_float32 or ()),
            licence=licence,
            max_bleu_lost=max_bleu_lost,
        )
    except ValueError as error:
        raise ExportError(str(error)) from None


def write_imported(
    read: "Callable[[], tuple[Origin, ExportSettings]]",
    bundle: Path,
    sample: "ParallelSample | None",
    lexicon: "LexiconText | None" = None,
) -> None:
    """Read a model of others, write it as a bundle, and print what that is.

    ``read`` returns the model and the settings of its export.
    """
    from dataclasses import replace

    from rich.console import Console

    from dragoman_export.export import export_bundle
    from dragoman_server.cli.describe import describe
    from dragoman_training.report.terminal import stage_bar

    console = Console(stderr=True, highlight=False)
    with stage_bar(console) as watch:
        watch("reading the model", 0, 1)
        origin, settings = read()
        watch("reading the model", 1, 1)
        written = export_bundle(origin, bundle, settings, sample, watch, lexicon)
    console.print(describe(replace(written, path=bundle)))
