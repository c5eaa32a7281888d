"""The command of ``dragoman`` that imports Argos packages; heavy imports only when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman_export.bundle_options import (
    BundleArgument,
    GoldenOption,
    KeepOption,
    MaxBleuLostOption,
    NameOption,
    PrecisionOption,
    SentencesOption,
    ShortlistLikelyOption,
    ShortlistSourceOption,
    ShortlistTargetOption,
    VersionOption,
    export_settings,
)


def import_argos(
    package: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The package, as translate-en_es-1_9.argosmodel, or its directory."
        ),
    ],
    bundle: BundleArgument,
    precision: PrecisionOption = "float32",
    keep_float32: KeepOption = None,
    source_language: Annotated[
        str,
        typer.Option(
            metavar="TAG",
            help="Language to translate from, as en.  \\[default: as the package says]",
            show_default=False,
        ),
    ] = "",
    target_language: Annotated[
        str,
        typer.Option(
            metavar="TAG",
            help="Language to translate into, as pt-BR.  \\[default: as the package says]",
            show_default=False,
        ),
    ] = "",
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Most tokens of a sentence. The server takes memory for as many, and splits what "
            "is longer.  \\[default: what the model takes, but at most 256]",
        ),
    ] = None,
    name: NameOption = None,
    version: VersionOption = "1",
    licence: Annotated[
        str,
        typer.Option(
            help="Licence of the model, as an SPDX identifier. Needed where the package does not "
            "say.  \\[default: as the package says]",
            show_default=False,
        ),
    ] = "",
    source: Annotated[
        Path | None, typer.Option(help="Text to measure quality on, in the source language.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Right translations of the text to measure quality on.")
    ] = None,
    sentences: SentencesOption = 1000,
    max_bleu_lost: MaxBleuLostOption = 0.3,
    golden: GoldenOption = None,
    shortlist_source: ShortlistSourceOption = None,
    shortlist_target: ShortlistTargetOption = None,
    shortlist_likely: ShortlistLikelyOption = 50,
) -> None:
    """Write a package of Argos Translate, as LibreTranslate has them, as a bundle.

    Its CTranslate2 model may be of float32, float16, bfloat16, int16 or int8; neither Argos
    Translate nor CTranslate2 is needed. The bundle is proved as any other is; what can't be
    imported is refused with the reason.

    Example: dragoman import-argos translate-zh_en-1_9.argosmodel models/zh-en
    """
    from dataclasses import replace

    from rich.console import Console

    from dragoman_export.argos.importer import ImportSettings, read_origin
    from dragoman_export.errors import ExportError
    from dragoman_export.export import export_bundle
    from dragoman_export.texts import read_lexicon, read_sample
    from dragoman_server.cli.describe import describe
    from dragoman_training.report.terminal import stage_bar

    settings = export_settings(
        bundle, name, version, precision, keep_float32, licence, max_bleu_lost
    )
    try:
        taken = ImportSettings(
            source_language=source_language,
            target_language=target_language,
            licence=licence,
            max_tokens=max_tokens,
        )
    except ValueError as error:
        raise ExportError(str(error)) from None
    sample = read_sample(source, reference, sentences, golden)
    lexicon = read_lexicon(shortlist_source, shortlist_target, shortlist_likely)
    console = Console(stderr=True, highlight=False)
    with stage_bar(console) as watch:
        watch("reading the package", 0, 1)
        origin = read_origin(package, taken)
        watch("reading the package", 1, 1)
        written = export_bundle(origin, bundle, settings, sample, watch, lexicon)
    console.print(describe(replace(written, path=bundle)))
