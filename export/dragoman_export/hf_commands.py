"""The commands of ``dragoman`` to and from Hugging Face; heavy imports only when one is called."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman_export.bundle_options import (
    BundleArgument,
    CheckpointArgument,
    GoldenOption,
    KeepOption,
    LicenceOption,
    MaxBleuLostOption,
    MaxTokensOption,
    NameOption,
    PrecisionOption,
    ReferenceOption,
    SentencesOption,
    ShortlistLikelyOption,
    ShortlistSourceOption,
    ShortlistTargetOption,
    VersionOption,
    export_settings,
    write_imported,
)


def import_hf(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The Hugging Face directory of the model.")
    ],
    bundle: BundleArgument,
    precision: PrecisionOption = "float32",
    keep_float32: KeepOption = None,
    source_language: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TAG",
            help="Language to translate from, as en; may be repeated.  "
            "\\[default: all source languages that the model has]",
        ),
    ] = None,
    target_language: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TAG",
            help="Language to translate into, as pt-BR; may be repeated.  "
            "\\[default: all target languages that the model has]",
        ),
    ] = None,
    max_tokens: MaxTokensOption = None,
    name: NameOption = None,
    version: VersionOption = "1",
    licence: LicenceOption = "unknown",
    source: Annotated[
        Path | None,
        typer.Option(help="Text to measure quality on, in the first source language."),
    ] = None,
    reference: ReferenceOption = None,
    sentences: SentencesOption = 1000,
    max_bleu_lost: MaxBleuLostOption = 0.3,
    golden: GoldenOption = None,
    shortlist_source: ShortlistSourceOption = None,
    shortlist_target: ShortlistTargetOption = None,
    shortlist_likely: ShortlistLikelyOption = 50,
) -> None:
    """Write a MarianMT (OPUS-MT), M2M-100 or NLLB model as a bundle that the server runs.

    The directory is one that from_pretrained of transformers loads: config.json, the weights, and
    the tokenizer's files. transformers itself is not needed. The bundle is proved as any other is;
    what can't be imported is refused with the reason.

    Example: dragoman import-hf opus-mt-en-ROMANCE models/en-romance --source-language en
    --target-language pt --target-language es
    """
    from dragoman_export.errors import ExportError
    from dragoman_export.hf.importer import ImportSettings, read_origin
    from dragoman_export.texts import read_lexicon, read_sample

    settings = export_settings(
        bundle, name, version, precision, keep_float32, licence, max_bleu_lost
    )
    try:
        languages = ImportSettings(
            source_languages=tuple(source_language or ()),
            target_languages=tuple(target_language or ()),
            max_length=max_tokens,
        )
    except ValueError as error:
        raise ExportError(str(error)) from None
    sample = read_sample(source, reference, sentences, golden)
    lexicon = read_lexicon(shortlist_source, shortlist_target, shortlist_likely)
    write_imported(lambda: (read_origin(directory, languages), settings), bundle, sample, lexicon)


def export_hf(
    checkpoint: CheckpointArgument,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The Hugging Face directory to write.")
    ],
) -> None:
    """Write a checkpoint as a Hugging Face directory, for transformers, CTranslate2 and others.

    A model with the norm after each sublayer becomes a MarianMT; one with the norm before, and
    positions = "m2m100" in its recipe, an M2M-100. What fits neither is refused with the reason.

    Example: dragoman export-hf runs/my hf/my
    """
    from rich.console import Console
    from rich.markup import escape

    from dragoman_export.hf.exporter import write_directory
    from dragoman_training.train.checkpoint import Checkpoint, find_checkpoint

    loaded = Checkpoint.load(find_checkpoint(checkpoint))
    family = write_directory(loaded, directory)
    console = Console(stderr=True, highlight=False)
    console.print(f"[dim]{escape(str(directory))}: {family}[/]", soft_wrap=True)
