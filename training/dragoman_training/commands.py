"""The subcommands of ``dragoman`` that come with this package.

Only what describes the commands is imported at the top: ``dragoman --help`` must be quick, and
must work where PyTorch is not installed.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman_training.train.checkpoint import Checkpoint

CheckpointArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CHECKPOINT", help="A checkpoint, or the directory of a run: then its final model."
    ),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="CPU threads of each process. Beside another process that keeps a core busy, two "
        "threads are slower than one: each product waits for the later of them.  "
        "\\[default: PyTorch's choice]",
        show_default=False,
    ),
]


def train(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="What to train.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Directory of the run.  \\[default: runs/RECIPE]"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a setting, as in --set training.max_steps=500; may be repeated.",
        ),
    ] = None,
    threads: ThreadsOption = None,
) -> None:
    """Train a model on parallel text, or go on with a run that was stopped.

    Everything about the run is in the recipe. Ctrl-C or SIGTERM saves and stops; the same command
    goes on from there, exactly as if it had never stopped. Several processes:
    torchrun --nproc-per-node 2 --no-python dragoman train RECIPE.toml

    Example: dragoman train recipes/reverse.toml --output /tmp/reverse
    """
    from dragoman_training.config.recipe import load_recipe
    from dragoman_training.data.initial import with_initial_model
    from dragoman_training.report.logs import MetricsLog, TensorBoardLog
    from dragoman_training.report.records import Several
    from dragoman_training.report.terminal import Terminal
    from dragoman_training.train.run import train as run_training

    run = output or Path("runs") / recipe.stem
    loaded = load_recipe(recipe, settings or [], lambda table: with_initial_model(table, run))
    observers = Several(Terminal(_console()), MetricsLog(run), TensorBoardLog(run))
    run_training(loaded, run, observers, threads)


def data(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="Whose text to look at.")],
    show: Annotated[int, typer.Option(min=0, help="Print this many examples.")] = 20,
    corpus: Annotated[
        str | None, typer.Option(help="Show examples of this corpus only, by its name.")
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(help="Show examples of this form only, as in upper or placeholders."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated."),
    ] = None,
) -> None:
    """Show what training sees: examples drawn from a recipe's corpora, after filters and rules.

    Nothing is trained or written. Examples are drawn as often as training would draw them, and the
    same ones every time; behind each stands its corpus, its label, and how it was made.

    Example: dragoman data recipes/en-pt.toml --set data.directory=/data --show 50
    """
    from dragoman_training.config.recipe import load_recipe
    from dragoman_training.data.initial import with_initial_model
    from dragoman_training.data.preview import draw_examples
    from dragoman_training.report.terminal import stage_bar

    loaded = load_recipe(recipe, settings or [], with_initial_model)
    with stage_bar(_console()) as watch:
        preview = draw_examples(loaded, show, watch, corpus=corpus, variant=variant)
    for drawn in preview.examples:
        origin = " ".join(filter(None, (drawn.corpus, drawn.label, drawn.variant)))
        typer.echo(f"{drawn.pair.source}\n    {drawn.pair.target}\n    [{origin}]")
    for line in preview.summary():
        typer.echo(line)


def evaluate(
    checkpoint: CheckpointArgument,
    source: Annotated[Path, typer.Option(help="Sentences to translate, one a line; may be gzip.")],
    reference: Annotated[Path, typer.Option(help="Their right translations.")],
    beam: Annotated[
        int,
        typer.Option(
            "--beam-size",
            "-b",
            min=1,
            help="Hypotheses that the search keeps at a time; 1 is greedy search.",
        ),
    ] = 1,
    length_penalty: Annotated[
        float, typer.Option(min=0.0, max=10.0, help="Scores are divided by length to this power.")
    ] = 1.0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the translations to this file.")
    ] = None,
    tokenized: Annotated[
        bool | None,
        typer.Option(
            help="The text is tokenized: BLEU takes its words as they are.  "
            "\\[default: as the model was trained]",
            show_default=False,
        ),
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="Print this many translations.")] = 3,
    threads: ThreadsOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures as JSON, and nothing else.")
    ] = False,
) -> None:
    """Translate a test set and measure BLEU and chrF against its references.

    Example: dragoman evaluate runs/reverse --source runs/reverse/data/toy/test.source
    --reference runs/reverse/data/toy/test.target --beam-size 4
    """
    import json
    import time
    from dataclasses import asdict

    import torch
    from rich.markup import escape

    from dragoman_training.data.text.corpus import ParallelText
    from dragoman_training.errors import CorpusError, StorageError
    from dragoman_training.files import write_text
    from dragoman_training.report.terminal import progress_bar
    from dragoman_training.translate.evaluation import measure, pick_device, translate

    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        raise StorageError(f"{output}: not a file in a directory that exists")
    pairs = list(ParallelText((source,), (reference,)))
    if not pairs:
        raise CorpusError(f"{source}: empty")
    loaded = _load(checkpoint)
    if threads is not None:
        torch.set_num_threads(threads)
    console = _console()
    began = time.perf_counter()
    with progress_bar(console) as bar:
        task = bar.add_task("translating", total=len(pairs), status="")

        def watch(done: int) -> None:
            rate = done / (time.perf_counter() - began)
            bar.update(task, completed=done, status=f"{rate:.0f} sentences/s")

        translations = [
            translation.text
            for translation in translate(
                loaded.build_model().to(pick_device()),
                loaded.tokenizers,
                [pair.source for pair in pairs],
                beam=beam,
                alpha=length_penalty,
                watch=watch,
            )
        ]
    seconds = time.perf_counter() - began
    if output is not None:
        write_text(output, "".join(text + "\n" for text in translations))
    quality = measure(
        translations,
        [pair.target for pair in pairs],
        loaded.config.get("target_language", ""),
        tokenized=_was_tokenized(loaded) if tokenized is None else tokenized,
    )
    if as_json:
        figures = {"sentences": len(pairs), "beam": beam, "length_penalty": length_penalty}
        took = {"seconds": round(seconds, 2), "threads": torch.get_num_threads()}
        typer.echo(json.dumps({**figures, **took, **asdict(quality)}))
        return
    for pair, text in list(zip(pairs, translations, strict=True))[:show]:
        typer.echo(f"  {pair.source}\n    → {text}\n    = {pair.target}")
    typer.echo(f"BLEU   {quality.bleu:.2f}   {quality.bleu_signature}")
    typer.echo(f"chrF   {quality.chrf:.2f}   {quality.chrf_signature}")
    typer.echo(f"exact  {quality.exact:.1f}%")
    console.print(
        f"[dim]{len(pairs)} sentences in {seconds:.1f} s, beam {beam}, {escape(str(checkpoint))}[/]"
    )


def _was_tokenized(checkpoint: "Checkpoint") -> bool:
    """Whether the recipe said so; those of the first versions could not."""
    return bool(checkpoint.config.get("recipe", {}).get("data", {}).get("tokenized", False))


def tokenize(
    text: Annotated[Path, typer.Argument(metavar="IN", help="Sentences, one a line; may be gzip.")],
    output: Annotated[
        Path, typer.Argument(metavar="OUT", help="Where to write them; gzip if it ends with .gz.")
    ],
    language: Annotated[str, typer.Option(help="The language of the text, as in en or pt-BR.")],
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Lower-case it, too.")] = False,
) -> None:
    """Normalise punctuation and split text into words, by the rules of Moses.

    For comparing with published figures of such text. Our own models take text as it is.

    Example: dragoman tokenize --language de --lowercase train.de.gz train.tok.de
    """
    from rich.markup import escape

    from dragoman_training.data.text.moses import MosesWords, tokenize_file
    from dragoman_training.errors import StorageError
    from dragoman_training.report.terminal import progress_bar

    if output.is_dir() or not output.parent.is_dir():
        raise StorageError(f"{output}: not a file in a directory that exists")
    words = MosesWords(language, lowercase=lowercase)
    console = _console()
    with progress_bar(console) as bar:
        task = bar.add_task("tokenizing", total=None, status="")
        lines = tokenize_file(text, output, words, lambda done: bar.update(task, completed=done))
    console.print(f"[dim]{lines:,} lines in {escape(str(output))}[/]", soft_wrap=True)


def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Where to draw, as PNG and SVG.  \\[default: RUN/curves.png]"
        ),
    ] = None,
) -> None:
    """Draw the curves of a run: perplexity, BLEU and chrF, learning rate, speed.

    Works while the run goes on, too.

    Example: dragoman plot runs/my
    """
    from dragoman_training.errors import CheckpointError
    from dragoman_training.report.logs import read_metrics
    from dragoman_training.report.plots import draw_curves, save_figure

    steps, validations = read_metrics(run)
    if not steps:
        raise CheckpointError(f"{run}: nothing is logged yet")
    figure = draw_curves(steps, validations, title=run.resolve().name)
    for path in save_figure(figure, output or run / "curves.png"):
        typer.echo(path)


def attention(
    checkpoint: CheckpointArgument,
    text: Annotated[str, typer.Argument(help="The sentence to translate.")],
    target: Annotated[
        str | None, typer.Option(help="Show the attention for this translation instead.")
    ] = None,
    layer: Annotated[
        int | None,
        typer.Option(min=1, help="Decoder layer, from 1.  \\[default: the last]"),
    ] = None,
    head: Annotated[
        int | None,
        typer.Option(min=1, help="Attention head, from 1.  \\[default: the mean of all]"),
    ] = None,
    beam: Annotated[
        int,
        typer.Option(
            "--beam-size",
            "-b",
            min=1,
            help="Hypotheses that the search keeps at a time; 1 is greedy search.",
        ),
    ] = 1,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to draw, as PNG and SVG.")
    ] = Path("attention.png"),
) -> None:
    """Translate a sentence and draw where the decoder looked for each of its tokens.

    Example: dragoman attention runs/reverse "a b c d e f"
    """
    from dragoman_training.report.plots import HeatMap, draw_attention, save_figure
    from dragoman_training.translate.alignment import cross_attention

    loaded = _load(checkpoint)
    looked = cross_attention(
        loaded.build_model(), loaded.tokenizers, text, target, layer=layer, head=head, beam=beam
    )
    typer.echo(looked.translation)
    title = f"{text}\n→ {looked.translation}"
    figure = draw_attention(HeatMap(looked.weights_TS, looked.source, looked.target, title))
    for path in save_figure(figure, output):
        typer.echo(path)


def _load(path: Path) -> "Checkpoint":
    from dragoman_training.train.checkpoint import Checkpoint, find_checkpoint

    return Checkpoint.load(find_checkpoint(path))


def _console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False)
