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
    MaxTokensOption,
    NameOption,
    ReferenceOption,
    SentencesOption,
    SourceLanguageOption,
    TargetLanguageOption,
    VersionOption,
    export_settings,
    write_imported,
)

if TYPE_CHECKING:
    from dragoman_export.export import ExportSettings
    from dragoman_export.source import Origin


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
    source_language: SourceLanguageOption = "",
    target_language: TargetLanguageOption = "",
    max_tokens: MaxTokensOption = None,
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
    reference: ReferenceOption = None,
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

    from dragoman_export.errors import ExportError
    from dragoman_export.marian.importer import ImportSettings, read_origin
    from dragoman_export.texts import read_sample

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

    def read() -> "tuple[Origin, ExportSettings]":
        origin = read_origin(directory, wanted)
        if not precision and origin.quantization is None:
            return replace(origin, shortlist=None), settings_for("float32")
        return origin, settings

    write_imported(read, bundle, sample)
