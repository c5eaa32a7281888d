"""The commands of ``dragoman`` that belong to export; heavy imports only when they are called."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_export.bundle_options import (
    BundleArgument,
    CheckpointArgument,
    GoldenOption,
    KeepOption,
    LicenceOption,
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

if TYPE_CHECKING:
    from dragoman_export.texts import ParallelSample


def export(
    checkpoint: CheckpointArgument,
    bundle: BundleArgument,
    precision: PrecisionOption = "float32",
    keep_float32: KeepOption = None,
    name: NameOption = None,
    version: VersionOption = "1",
    licence: LicenceOption = "unknown",
    source: Annotated[
        Path | None,
        typer.Option(
            help="Text to measure quality on.  \\[default: the validation text of the run]"
        ),
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
    """Write a checkpoint as a bundle that the server runs, and prove that it computes the same.

    The graphs are compared with PyTorch step by step; int8 and float16 also by translating text.
    A check that fails leaves no bundle.

    Example: dragoman export runs/my models/my --precision int8
    """
    from dataclasses import replace

    from rich.console import Console

    from dragoman_export.export import export_bundle
    from dragoman_export.source import origin_of
    from dragoman_export.texts import read_lexicon
    from dragoman_server.cli.describe import describe
    from dragoman_training.report.terminal import stage_bar
    from dragoman_training.train.checkpoint import Checkpoint, find_checkpoint

    settings = export_settings(
        bundle, name, version, precision, keep_float32, licence, max_bleu_lost
    )
    sample = _sample(checkpoint, source, reference, sentences, golden)
    lexicon = read_lexicon(shortlist_source, shortlist_target, shortlist_likely)
    loaded = Checkpoint.load(find_checkpoint(checkpoint))
    console = Console(stderr=True, highlight=False)
    with stage_bar(console) as watch:
        written = export_bundle(origin_of(loaded), bundle, settings, sample, watch, lexicon)
    console.print(describe(replace(written, path=bundle)))


def _sample(
    checkpoint: Path,
    source: Path | None,
    reference: Path | None,
    sentences: int,
    golden: Path | None,
) -> "ParallelSample | None":
    """Read the text to measure on; by default, the validation text of the run."""
    from dragoman_export.texts import read_sample, read_sample_of_run

    if source is None and reference is None:
        return read_sample_of_run(checkpoint, sentences, golden)
    return read_sample(source, reference, sentences, golden)


def distil(
    teachers: Annotated[
        list[Path], typer.Argument(metavar="BUNDLE...", help="Bundles of the teachers.")
    ],
    source: Annotated[
        Path, typer.Option(help="Source side of the training text, a sentence a line; may be gzip.")
    ],
    reference: Annotated[
        Path, typer.Option(help="Target side of the training text: its right translations.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="File to write the teachers' translations to; gzip if it ends with .gz.",
        ),
    ],
    beam: Annotated[
        int,
        typer.Option(
            "--beam-size",
            "-b",
            min=1,
            max=8,
            help="Hypotheses that the search of each teacher keeps at a time.",
        ),
    ] = 4,
    min_chrf: Annotated[
        float,
        typer.Option(
            min=0,
            max=100,
            help="Keep the right translation if no teacher's has at least this chrF against it.",
        ),
    ] = 0.0,
    source_language: Annotated[
        str,
        typer.Option(
            metavar="TAG",
            help="Language of the source, as en; needed for teachers of several languages.",
        ),
    ] = "",
    target_language: Annotated[
        str,
        typer.Option(
            metavar="TAG",
            help="Language to translate into, as pt-BR; needed for teachers of several languages.",
        ),
    ] = "",
) -> None:
    """Translate training text with teachers, so that a smaller model can learn from them.

    Of all translations in the teachers' beams, the one nearest to the right translation is taken.
    Train on both texts: the right ones and these.

    Example: dragoman distil models/a models/b --source train.en --reference train.pt -o train.abpt
    """
    from rich.console import Console
    from rich.markup import escape

    from dragoman_export.distil import distil
    from dragoman_export.errors import ExportError
    from dragoman_training.data.text.corpus import ParallelText
    from dragoman_training.files import staged_text
    from dragoman_training.report.terminal import progress_bar

    if output.is_dir() or not output.parent.is_dir():
        raise ExportError(f"{output}: not a file in a directory that exists")
    console = Console(stderr=True, highlight=False)
    with progress_bar(console) as bar, staged_text(output) as file:
        task = bar.add_task("translating", total=None, status="")
        report = distil(
            teachers,
            ParallelText((source,), (reference,)),
            lambda text: file.write(f"{text}\n".encode()),
            beam=beam,
            min_chrf=min_chrf,
            source_language=source_language,
            target_language=target_language,
            watch=lambda done: bar.update(task, completed=done),
        )
    kept = f", {report.kept:,} of them as they were" if report.kept else ""
    console.print(f"[dim]{report.lines:,} lines{kept} in {escape(str(output))}[/]", soft_wrap=True)
