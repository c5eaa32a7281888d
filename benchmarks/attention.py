"""Measure what attention buys: BLEU by sentence length, of models with and without it.

Takes runs of a recurrent model without attention, of one with additive attention and of a
Transformer, all trained on the same text; translates the same test text with each, and measures
BLEU by the number of words of the source. A decoder that sees the source as one vector loses most
where there is most to remember.

    python benchmarks/attention.py runs/multi30k-gru runs/multi30k-gru-attention runs/multi30k \\
        --source test2016.en.gz test2017.en.gz --reference test2016.de.gz test2017.de.gz \\
        --sentence "Two young men are sitting on a bench in front of a large white building."

Prints a table (Markdown), and draws ``lengths.png`` and, of the models that have attention,
``maps.png`` into ``--output``. The ± are sacrebleu's 95% intervals by bootstrap: buckets of long
sentences are small. Tokens per second are the median of what each run logged, so they compare only
where the runs had the same machine to themselves.
"""

import argparse
import json
import statistics
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from matplotlib.figure import Figure
from sacrebleu.metrics.bleu import BLEU

from dragoman_training.data.text.corpus import Pair, ParallelText
from dragoman_training.errors import CheckpointError, CorpusError, TrainingError
from dragoman_training.models.base import AnyModel
from dragoman_training.models.settings import RecurrentSettings
from dragoman_training.report.logs import read_metrics
from dragoman_training.report.plots import COLOURS, HeatMap, draw_attention
from dragoman_training.train.checkpoint import Checkpoint, find_checkpoint
from dragoman_training.translate.alignment import cross_attention
from dragoman_training.translate.evaluation import translate

BUCKETS = (8, 11, 14, 17, 21)
"""Most words of a sentence in each bucket but the last, which has no bound."""


@dataclass(frozen=True)
class Bucket:
    """Test sentences of like length."""

    first: int
    last: int | None
    numbers: list[int]

    @property
    def label(self) -> str:
        if self.last is None:
            return f"{self.first}+"
        return f"{self.first}–{self.last}" if self.first < self.last else str(self.first)


@dataclass(frozen=True)
class Score:
    bleu: float
    within: float
    """Half the width of the 95% interval, in BLEU points."""


@dataclass(frozen=True)
class Measured:
    """What was measured of one model."""

    label: str
    parameters: int
    tokens_per_second: float | None
    whole: Score
    scores: list[Score]
    """Scores of the buckets, in their order."""


def by_length(pairs: list[Pair], ends: list[int]) -> list[Bucket]:
    """Return the buckets that have sentences."""
    words = [len(pair.source.split()) for pair in pairs]
    edges = [0, *ends, None]
    buckets = []
    for before, last in pairwise(edges):
        first = (before or 0) + 1
        numbers = [n for n, w in enumerate(words) if w >= first and (last is None or w <= last)]
        if numbers:
            buckets.append(Bucket(first, last, numbers))
    return buckets


def bleu(translations: list[str], references: list[str], *, tokenized: bool) -> Score:
    metric = BLEU(tokenize="none", force=True) if tokenized else BLEU()
    score = metric.corpus_score(translations, [references], n_bootstrap=1000)
    # What is public of the interval is its text.
    figures = json.loads(score.format(width=2, signature=str(metric.get_signature()), is_json=True))
    # There is none where all is 0.
    return Score(score.score, float(figures.get("confidence_var", 0.0)))


def label_of(model: AnyModel) -> str:
    if isinstance(model.settings, RecurrentSettings):
        return "GRU" if model.settings.attention == "none" else "GRU with attention"
    return "Transformer"


def speed_of(run: Path) -> float | None:
    try:
        steps, _ = read_metrics(run)
    except CheckpointError:  # a checkpoint by itself has no log
        return None
    return statistics.median(step.tokens_per_second for step in steps) if steps else None


def measure(
    run: Path, checkpoint: Checkpoint, pairs: list[Pair], buckets: list[Bucket], beam: int
) -> Measured:
    model = checkpoint.build_model()
    found = translate(model, checkpoint.tokenizers, [pair.source for pair in pairs], beam=beam)
    tokenized = checkpoint.config.get("recipe", {}).get("data", {}).get("tokenized", False)

    def score(numbers: list[int]) -> Score:
        return bleu(
            [found[n].text for n in numbers],
            [pairs[n].target for n in numbers],
            tokenized=tokenized,
        )

    return Measured(
        label=label_of(model),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        tokens_per_second=speed_of(run),
        whole=score(list(range(len(pairs)))),
        scores=[score(bucket.numbers) for bucket in buckets],
    )


def table(models: list[Measured], buckets: list[Bucket]) -> str:
    def row(name: str, *cells: str) -> str:
        return f"| {' | '.join((name, *cells))} |"

    def cell(score: Score) -> str:
        return f"{score.bleu:.1f} ± {score.within:.1f}"

    lines = [
        row("", *(model.label for model in models)),
        "|---|" + "--:|" * len(models),
        row("parameters", *(f"{model.parameters:,}" for model in models)),
        row(
            "training, target tokens/s",
            *(f"{m.tokens_per_second:,.0f}" if m.tokens_per_second else "–" for m in models),
        ),
        row("BLEU", *(cell(model.whole) for model in models)),
    ]
    for number, bucket in enumerate(buckets):
        name = f"BLEU, {bucket.label} words ({len(bucket.numbers)} sentences)"
        lines.append(row(name, *(cell(model.scores[number]) for model in models)))
    return "\n".join(lines)


def draw_lengths(models: list[Measured], buckets: list[Bucket]) -> Figure:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    at = range(len(buckets))
    for colour, model in zip(COLOURS, models, strict=False):
        axes.errorbar(
            at,
            [score.bleu for score in model.scores],
            [score.within for score in model.scores],
            fmt="o-",
            ms=4,
            capsize=3,
            color=colour,
            label=f"{model.label}, {model.parameters / 1e6:.1f} M parameters",
        )
    axes.set_xticks(at, [f"{bucket.label}\n({len(bucket.numbers)})" for bucket in buckets])
    axes.set(xlabel="words of the source (sentences)", ylabel="BLEU", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(loc="best")
    return figure


def heat_map(checkpoint: Checkpoint, sentence: str, layer: int | None) -> HeatMap | None:
    """Return a picture of the model's attention on a sentence; None if it has no attention."""
    model = checkpoint.build_model()
    layers = len(model.cross_attentions())
    if not layers:
        return None
    looked = cross_attention(
        model, checkpoint.tokenizers, sentence, layer=layer if layers > 1 else None
    )
    title = f"{label_of(model)}\n{looked.translation}"
    return HeatMap(looked.weights_TS, looked.source, looked.target, title)


def run(arguments: argparse.Namespace) -> None:
    pairs = list(ParallelText(tuple(arguments.source), tuple(arguments.reference)))
    buckets = by_length(pairs, sorted(set(arguments.buckets)))
    if not buckets:
        raise CorpusError(f"{arguments.source[0]}: no sentence has words")
    checkpoints = [Checkpoint.load(find_checkpoint(path)) for path in arguments.runs]
    maps: list[HeatMap] = []
    if arguments.sentence:
        found = [heat_map(c, arguments.sentence, arguments.layer) for c in checkpoints]
        maps = [drawn for drawn in found if drawn is not None]
        if not maps:
            raise CheckpointError("none of the models has attention to show")
    models = [
        measure(path, checkpoint, pairs, buckets, arguments.beam)
        for path, checkpoint in zip(arguments.runs, checkpoints, strict=True)
    ]
    print(table(models, buckets))
    arguments.output.mkdir(parents=True, exist_ok=True)
    lengths = arguments.output / "lengths.png"
    draw_lengths(models, buckets).savefig(lengths, dpi=150)
    print(f"\n{lengths}")
    if maps:
        draw_attention(*maps).savefig(arguments.output / "maps.png", dpi=150)
        print(arguments.output / "maps.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="runs or checkpoints that are compared"
    )
    parser.add_argument(
        "--source",
        nargs="+",
        type=Path,
        required=True,
        help="source texts of the test, a sentence a line; may be gzip",
    )
    parser.add_argument(
        "--reference",
        nargs="+",
        type=Path,
        required=True,
        help="reference translations of these texts, a sentence a line; may be gzip",
    )
    parser.add_argument(
        "--beam", type=int, default=5, help="beam size of the search (default: %(default)s)"
    )
    parser.add_argument(
        "--buckets",
        nargs="+",
        type=int,
        default=BUCKETS,
        metavar="WORDS",
        help="most words of a sentence in each bucket but the last (default: %(default)s)",
    )
    parser.add_argument("--sentence", help="sentence whose attention is drawn")
    parser.add_argument(
        "--layer", type=int, help="decoder layer of the Transformer to draw (default: the last)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("docs/images/attention"),
        help="directory for the pictures (default: %(default)s)",
    )
    arguments = parser.parse_args()
    if arguments.beam < 1 or min(arguments.buckets) < 1:
        parser.error("--beam and --buckets are above 0")
    if len(arguments.runs) > len(COLOURS):
        parser.error(f"at most {len(COLOURS)} runs")
    torch.manual_seed(0)
    try:
        run(arguments)
    except TrainingError as error:
        parser.exit(error.exit_code, f"{error}\n")


if __name__ == "__main__":
    main()
