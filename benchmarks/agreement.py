"""Check that a bundle's graphs say what PyTorch says, and the same in every batch.

Translates sentences of a text greedily and with a beam of 4, with the graphs and in PyTorch, and
compares tokens and log-probabilities. Then decodes sentences alone and in random batches of up to
64 ragged rows, and compares every bit.

    python benchmarks/agreement.py CHECKPOINT BUNDLE --source test.en.gz [--sentences 200]

PyTorch is compared with float32 bundles only: int8 weights are others. Ends with exit code 1 on a
difference that is not a tie, that is, where log-probabilities differ by more than 1e-4; ties are
printed.
"""

import argparse
from itertools import islice
from pathlib import Path

import torch

from dragoman_export.proofs.batch_invariance import compare_batches
from dragoman_export.source import origin_of
from dragoman_server.bundle.reading import read_bundle
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import Decoded, beam, greedy
from dragoman_training.data.batch import pad_sources
from dragoman_training.data.text.corpus import read_lines
from dragoman_training.models.transformer import Transformer
from dragoman_training.train.checkpoint import Checkpoint, find_checkpoint
from dragoman_training.translate.search import Hypothesis, beam_search, default_limit

TIE = 1e-4
"""Difference of two log-probabilities up to which hypotheses are a tie."""
ROWS = 64
"""Most sentences that are decoded at once."""


def compare(name: str, ours: list[list[Decoded]], theirs: list[list[Hypothesis]]) -> int:
    """Print the hypotheses that differ, and return how many of them are no tie."""
    worst, ties, wrong = 0.0, 0, 0
    for number, (found, expected) in enumerate(zip(ours, theirs, strict=True), start=1):
        for a, b in zip(found, expected, strict=True):
            difference = abs(a.log_prob - b.log_prob)
            if a.ids == b.ids and difference <= TIE:
                worst = max(worst, difference)
                continue
            excused = difference <= TIE
            ties, wrong = ties + excused, wrong + (not excused)
            print(f"{name}, sentence {number}: {a.ids} {a.log_prob}, PyTorch {b.ids} {b.log_prob}")
    print(
        f"{name}: {len(ours)} sentences, {wrong} differ, {ties} ties, "
        f"log-probabilities within {worst:.1e}"
    )
    return wrong


def compare_search(model: Transformer, graphs: Graphs, sources: list[list[int]]) -> int:
    """Compare greedy and beam search with PyTorch's, and return how many hypotheses differ."""
    limits = [default_limit(len(s), model.settings.max_length) for s in sources]
    wrong = 0
    for size in (1, 4):
        ours, theirs = [], []
        for at in range(0, len(sources), ROWS):
            batch, ends = sources[at : at + ROWS], limits[at : at + ROWS]
            ids_BS, lengths_B = pad_sources(batch, torch.device("cpu"))
            theirs += beam_search(model, ids_BS, lengths_B, ends, size, n_best=size)
            if size == 1:
                ours += [[decoded] for decoded in greedy(graphs, batch, ends)]
            else:
                pairs = zip(batch, ends, strict=True)
                ours += [beam(graphs, s, limit, size, n_best=size) for s, limit in pairs]
        wrong += compare(f"beam {size}" if size > 1 else "greedy", ours, theirs)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path, help="run or checkpoint of the model in PyTorch")
    parser.add_argument("bundle", type=Path, help="directory of the bundle made from it")
    parser.add_argument(
        "--source", type=Path, required=True, help="source text, a sentence a line; may be gzip"
    )
    parser.add_argument(
        "--sentences",
        type=int,
        default=200,
        help="sentences of the text that are translated (default: %(default)s)",
    )
    parser.add_argument(
        "--batches",
        type=int,
        default=1000,
        help="random batches that sentences are decoded in (default: %(default)s)",
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of the graphs (default: %(default)s)"
    )
    arguments = parser.parse_args()
    checkpoint = Checkpoint.load(find_checkpoint(arguments.checkpoint))
    bundle = read_bundle(arguments.bundle)
    graphs = Graphs(bundle, GraphSettings(rows=ROWS, threads=arguments.threads))
    texts = list(islice(read_lines(arguments.source), arguments.sentences))
    sources = [s for s in checkpoint.tokenizers.source.encode_all(texts) if s]
    wrong = 0
    if bundle.manifest.precision == "float32":
        wrong += compare_search(origin_of(checkpoint).model.eval(), graphs, sources)
    compared, different = compare_batches(graphs, sources[:60], arguments.batches)
    print(
        f"{bundle.manifest.precision}, {arguments.threads} threads, {arguments.batches} random "
        f"batches: {compared} steps of a sentence compared with it alone, {different} differ"
    )
    if wrong or different:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
