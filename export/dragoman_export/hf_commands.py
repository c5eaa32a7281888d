"""The commands of ``dragoman`` to and from Hugging Face; heavy imports only when one is called."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman_export.bundle_options import (
    BundleArgument,
    KeepOption,
    LicenceOption,
    NameOption,
    PrecisionOption,
    ShortlistLikelyOption,
    ShortlistSourceOption,
    ShortlistTargetOption,
    VersionOption,
)


def import_hf(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A Hugging Face directory of a model.")
    ],
    bundle: BundleArgument,
    precision: PrecisionOption = "float32",
    keep_float32: KeepOption = None,
    source_language: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TAG",
            help="What it translates from, as en; repeat it for several.  "
            "\\[default: what the directory says, all that a model of several has]",
        ),
    ] = None,
    target_language: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TAG",
            help="What it translates into, as pt-BR; repeat it for several.  "
            "\\[default: as for the source]",
        ),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Tokens of the longest sentence: memory is taken for as many.  "
            "\\[default: what the model takes, at most 512]",
        ),
    ] = None,
    name: NameOption = None,
    version: VersionOption = "1",
    licence: LicenceOption = "unknown",
    source: Annotated[
        Path | None,
        typer.Option(help="Text to measure quality on, in the first of the source languages."),
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Its right translations, in the first target language.")
    ] = None,
    sentences: Annotated[int, typer.Option(min=1, help="How many of them to use.")] = 1000,
    golden: Annotated[
        Path | None,
        typer.Option(
            help="Sentences whose decodings the bundle keeps, for the server to check itself "
            "against.  \\[default: some of the text to measure on]"
        ),
    ] = None,
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
    from dataclasses import replace

    from rich.console import Console

    from dragoman_export.commands import read_lexicon, read_sample
    from dragoman_export.errors import ExportError
    from dragoman_export.export import ExportSettings, export_bundle
    from dragoman_export.hf.importer import ImportSettings, read_origin
    from dragoman_server.cli.describe import describe
    from dragoman_training.terminal import stage_bar

    try:
        settings = ExportSettings(
            name=name or bundle.resolve().name,
            version=version,
            precision=precision,
            keep_float32=tuple(keep_float32 or ()),
            licence=licence,
        )
        languages = ImportSettings(
            source_languages=tuple(source_language or ()),
            target_languages=tuple(target_language or ()),
            max_length=max_length,
        )
    except ValueError as error:
        raise ExportError(str(error)) from None
    sample = read_sample(source, reference, sentences, golden)
    lexicon = read_lexicon(shortlist_source, shortlist_target, shortlist_likely)
    console = Console(stderr=True, highlight=False)
    with stage_bar(console) as watch:
        watch("reading the model", 0, 1)
        origin = read_origin(directory, languages)
        watch("reading the model", 1, 1)
        written = export_bundle(origin, bundle, settings, sample, watch, lexicon)
    console.print(describe(replace(written, path=bundle)))


def export_hf(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="A checkpoint, or the directory of a run.")
    ],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory to write.")],
) -> None:
    """Write a checkpoint as a Hugging Face directory, for transformers, CTranslate2 and others.

    A model with the norm after each sublayer becomes a MarianMT; one with the norm before, and
    positions = "m2m100" in its recipe, an M2M-100. What fits neither is refused with the reason.

    Example: dragoman export-hf runs/my hf/my
    """
    from rich.console import Console
    from rich.markup import escape

    from dragoman_export.hf.exporter import write_directory
    from dragoman_training.checkpoint import Checkpoint, find_checkpoint

    loaded = Checkpoint.load(find_checkpoint(checkpoint))
    family = write_directory(loaded, directory)
    console = Console(stderr=True, highlight=False)
    console.print(f"[dim]{escape(str(directory))}: {family}[/]", soft_wrap=True)
