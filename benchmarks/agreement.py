"""Do a bundle's graphs say what PyTorch says, and the same in any company?

Searches greedily and with a beam of 4 over the graphs and in PyTorch, on sentences of a text; then
decodes sentences alone and in random batches of up to 64 ragged rows, and compares every bit.

    python benchmarks/agreement.py CHECKPOINT BUNDLE --source test.en.gz [--sentences 200]

The search is compared for float32 bundles. Ends with exit code 1 on a difference that is not a tie
to 1e-4 in log-probability; ties are printed.
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
ROWS = 64


def compare(name: str, ours: list[list[Decoded]], theirs: list[list[Hypothesis]]) -> int:
    """Print what differs. Returns how much of it is no tie."""
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
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--source", type=Path, required=True, help="sentences, one a line")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
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
