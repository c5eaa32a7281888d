"""The command of ``dragoman`` that imports Marian's models; heavy imports only when called."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_export.bundle_options import (
    BundleArgument,
    GoldenOption,
    KeepOption,
    LicenceOption,
    MaxBleuLostOption,
    NameOption,
    SentencesOption,
    VersionOption,
    export_settings,
)

if TYPE_CHECKING:
    from dragoman_export.export import ExportSettings


def import_marian(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The directory of the model, or the YAML file in it that is meant."
        ),
    ],
    bundle: BundleArgument,
    precision: Annotated[
        str,
        typer.Option(
            help="Precision of the graphs: float32; int8 for CPUs; float16 for CUDA.  "
            "\\[default: int8 if the model has 8-bit weights, otherwise float32]",
            show_default=False,
        ),
    ] = "",
    keep_float32: KeepOption = None,
    source_language: Annotated[
        str,
        typer.Option(
            metavar="TAG",
            help="Language to translate from, as en.  \\[default: as the files' names say]",
            show_default=False,
        ),
    ] = "",
    target_language: Annotated[
        str,
        typer.Option(
            metavar="TAG",
            help="Language to translate into, as pt-BR.  \\[default: as the files' names say]",
            show_default=False,
        ),
    ] = "",
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Most tokens of a sentence. The server takes memory for as many, and splits what "
            "is longer.  \\[default: 256]",
        ),
    ] = None,
    shortlist: Annotated[
        bool,
        typer.Option(help="Take the model's lexical shortlist over, if it has one, into int8."),
    ] = True,
    name: NameOption = None,
    version: VersionOption = "1",
    licence: LicenceOption = "unknown",
    source: Annotated[
        Path | None,
        typer.Option(
            help="Text to measure quality on. int8 needs it only if the model does not say how "
            "large activations become."
        ),
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Right translations of the text to measure quality on.")
    ] = None,
    sentences: SentencesOption = 1000,
    max_bleu_lost: MaxBleuLostOption = 0.3,
    golden: GoldenOption = None,
) -> None:
    """Write a model of Marian, Bergamot, Firefox or translateLocally as a bundle.

    The directory has the model (.npz, or .bin with float32 or 8-bit weights), one or two
    SentencePiece vocabularies, and perhaps a lexical shortlist. Decoders with self-attention and
    with SSRUs can be imported; what can't is refused with the reason. Marian itself is not needed.

    Example: dragoman import-marian firefox/enpt models/en-pt-firefox --licence MPL-2.0
    """
    from dataclasses import replace

    from rich.console import Console

    from dragoman_export.errors import ExportError
    from dragoman_export.export import export_bundle
    from dragoman_export.marian.importer import ImportSettings, read_origin
    from dragoman_export.texts import read_sample
    from dragoman_server.cli.describe import describe
    from dragoman_training.report.terminal import stage_bar

    def settings_for(precision: str) -> "ExportSettings":
        return export_settings(
            bundle, name, version, precision, keep_float32, licence, max_bleu_lost
        )

    settings = settings_for(precision or "int8")  # now, so that a bad option is told at once
    try:
        wanted = ImportSettings(
            source_language=source_language,
            target_language=target_language,
            max_length=max_tokens,
            with_shortlist=shortlist and settings.precision == "int8",
        )
    except ValueError as error:
        raise ExportError(str(error)) from None
    sample = read_sample(source, reference, sentences, golden)
    console = Console(stderr=True, highlight=False)
    with stage_bar(console) as watch:
        watch("reading the model", 0, 1)
        origin = read_origin(directory, wanted)
        watch("reading the model", 1, 1)
        if not precision and origin.quantization is None:
            settings, origin = settings_for("float32"), replace(origin, shortlist=None)
        written = export_bundle(origin, bundle, settings, sample, watch)
    console.print(describe(replace(written, path=bundle)))
