"""The command of ``dragoman`` that imports Argos packages; heavy imports only when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman_export.bundle_options import (
    BundleArgument,
    GoldenOption,
    KeepOption,
    MaxBleuLostOption,
    MaxTokensOption,
    NameOption,
    PrecisionOption,
    ReferenceOption,
    SentencesOption,
    ShortlistLikelyOption,
    ShortlistSourceOption,
    ShortlistTargetOption,
    SourceLanguageOption,
    TargetLanguageOption,
    VersionOption,
    export_settings,
    write_imported,
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
    source_language: SourceLanguageOption = "",
    target_language: TargetLanguageOption = "",
    max_tokens: MaxTokensOption = None,
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
    reference: ReferenceOption = None,
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
    from dragoman_export.argos.importer import ImportSettings, read_origin
    from dragoman_export.errors import ExportError
    from dragoman_export.texts import read_lexicon, read_sample

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
    write_imported(lambda: (read_origin(package, taken), settings), bundle, sample, lexicon)
