"""Compare the engine with CTranslate2, in one process, on the same weights.

Both get the same seeded Transformer, and every translation is made to have the same length, so
both do the same work: encoder, decoder, search. First the fastest setting of workers, threads and
batches is found for each; then they take turns, because the machine's speed drifts.

    python benchmarks/engine.py [--preset base] [--rounds 5] [--sentences 1 8 32 64] [--json FILE]

Ends with exit code 1 where the engine is too slow: with int8 it has to be 2.0 times as fast as
CTranslate2 for one sentence at a time, 1.2 times for 8, and as fast for 32 and 64; with float32 as
fast for all of them; and Python may take no more than a tenth of a step of 32 rows.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragoman_server.bundle.reading import RunnableBundle
from dragoman_server.engine.core import Options, Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from dragoman_training.data.tokenizer import END
from measuring.contenders import share_alike
from measuring.machine import divisions
from peers import ctranslate2_calls, ctranslate2_model
from subjects import catalogue
from subjects.seeded import SOURCE_TOKENS, TARGET_TOKENS, export, seeded_model

MIN_RATIOS = {
    "int8": {1: 2.0, 8: 1.2, 32: 1.0, 64: 1.0},
    "float32": {1: 1.0, 8: 1.0, 32: 1.0, 64: 1.0},
}
"""Ratio to CTranslate2 that the engine has to reach, by precision and sentences at a time."""
MAX_PYTHON_SHARE, PYTHON_ROWS = 0.10, 32
"""Share of a step with so many rows that may be spent outside the graphs."""

Run = Callable[[list[list[int]]], list[tuple[int, ...]]]
"""Translates sentences, all at once, and returns the ids of their translations."""


@dataclass(frozen=True)
class Contender:
    """One engine with one setting."""

    name: str
    run: Run


def sources(count: int, vocabulary: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return rng.integers(END + 1, vocabulary, (count, SOURCE_TOKENS - 1)).tolist()


@contextmanager
def engines(bundle: RunnableBundle, beam: int, most: int) -> Iterator[list[Contender]]:
    """Yield the engine with each sensible division of the cores."""
    options = Options(beam=beam, min_tokens=TARGET_TOKENS - 1, max_tokens=TARGET_TOKENS)
    with ExitStack() as stack:
        contenders = []
        for lanes, threads in divisions():
            settings = EngineSettings(
                rows=beam * most, lanes=lanes, threads=threads, max_encode_tokens=1024
            )
            translator = stack.enter_context(Translator(bundle, settings))
            contenders.append(Contender(f"{lanes}x{threads}", _engine_run(translator, options)))
        yield contenders


def _engine_run(translator: Translator, options: Options) -> Run:
    def run(texts: list[list[int]]) -> list[tuple[int, ...]]:
        answers = translator.translate([Sentence(tuple(text)) for text in texts], options)
        return [answer.hypotheses[0].ids for answer in answers]

    return run


def peers(
    directory: Path, compute_type: str, beam: int, count: int, vocabulary: int
) -> list[Contender]:
    """Return CTranslate2 with each sensible division of the cores, and batches that suit it."""
    names = ctranslate2_calls.tokens(vocabulary)
    contenders = []
    for workers, threads in {*divisions(), (1, 1)}:
        translator = ctranslate2_calls.load(directory, compute_type, workers, threads)
        for batch in {count, max(1, count // workers), max(1, count // (2 * workers))}:
            name = f"{workers}x{threads} by {batch}"
            contenders.append(Contender(name, _peer_run(translator, names, beam, batch)))
    return contenders


def _peer_run(translator: Any, names: list[str], beam: int, batch: int) -> Run:
    options = ctranslate2_calls.decoding_options(TARGET_TOKENS, beam)

    def run(texts: list[list[int]]) -> list[tuple[int, ...]]:
        named = [ctranslate2_calls.named(text, names) for text in texts]
        results = translator.translate_batch(named, max_batch_size=batch, **options)
        return [ctranslate2_calls.ids_of(result.hypotheses[0]) for result in results]

    return run


def seconds(run: Run, texts: list[list[int]]) -> float:
    began = time.perf_counter()
    run(texts)
    return time.perf_counter() - began


def best(contenders: list[Contender], texts: list[list[int]], tries: int) -> Contender:
    """Return the fastest, by the best of a few tries of each, taken in turns."""
    times: dict[str, list[float]] = {c.name: [] for c in contenders}
    for contender in contenders:
        contender.run(texts)
    for _ in range(tries):
        for contender in contenders:
            times[contender.name].append(seconds(contender.run, texts))
    return min(contenders, key=lambda c: min(times[c.name]))


def compare(
    ours: Contender, theirs: Contender, texts: list[list[int]], rounds: int
) -> dict[str, float]:
    """Return tokens a second of both, and the ratio: medians of rounds taken in turns."""
    pairs = [(seconds(ours.run, texts), seconds(theirs.run, texts)) for _ in range(rounds)]
    tokens = len(texts) * TARGET_TOKENS
    return {
        "ours": tokens / statistics.median(mine for mine, _ in pairs),
        "theirs": tokens / statistics.median(other for _, other in pairs),
        "ratio": statistics.median(other / mine for mine, other in pairs),
    }


def python_share(bundle: RunnableBundle, rounds: int, vocabulary: int) -> float:
    """Return the share of a lane's turns with 32 rows that is not spent in a graph."""
    settings = EngineSettings(rows=PYTHON_ROWS, lanes=1, threads=1, max_encode_tokens=4096)
    options = Options(min_tokens=TARGET_TOKENS - 1, max_tokens=TARGET_TOKENS)
    with Translator(bundle, settings) as translator:
        run = _engine_run(translator, options)
        texts = sources(PYTHON_ROWS, vocabulary, 9)
        run(texts)
        translator.reports = []
        for _ in range(rounds):
            run(texts)
        full = [r for r in translator.reports if r.rows == PYTHON_ROWS]
        turns = sum(r.turn_seconds for r in full)
        return (turns - sum(r.graph_seconds for r in full)) / turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    catalogue.add_arguments(parser)
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="rounds in which both take turns to be timed (default: %(default)s)",
    )
    parser.add_argument(
        "--sentences",
        type=int,
        nargs="+",
        default=[1, 8, 32, 64],
        help="numbers of sentences that are translated at a time (default: %(default)s)",
    )
    parser.add_argument(
        "--beams",
        type=int,
        nargs="+",
        default=[1, 4],
        help="beam sizes; 1 is greedy search (default: %(default)s)",
    )
    parser.add_argument(
        "--precisions",
        nargs="+",
        choices=("int8", "float32"),
        default=["int8", "float32"],
        help="precisions of the weights, for both (default: %(default)s)",
    )
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    arguments = parser.parse_args()
    vocabulary = arguments.vocabulary
    model = seeded_model(arguments.preset, vocabulary)
    figures: dict[str, Any] = {}
    shortfalls: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for precision in arguments.precisions:
            bundle = export(model, precision, directory / precision)
            peer = directory / f"ctranslate2-{precision}"
            ctranslate2_model.write_model(model, peer, precision)
            if precision == "int8":
                share = python_share(bundle, arguments.rounds, vocabulary)
                print(f"Python's share of a step, {PYTHON_ROWS} rows: {share:.1%}", flush=True)
                figures["python_share"] = share
                if share > MAX_PYTHON_SHARE:
                    shortfalls.append(f"Python takes {share:.1%} of a step")
            for beam in arguments.beams:
                with engines(bundle, beam, max(arguments.sentences)) as contenders:
                    for count in arguments.sentences:
                        texts = sources(count, vocabulary, count)
                        ours = best(contenders, texts, tries=2)
                        theirs = best(
                            peers(peer, precision, beam, count, vocabulary), texts, tries=2
                        )
                        same = share_alike(ours.run(texts), theirs.run(texts))
                        row = compare(ours, theirs, texts, arguments.rounds)
                        print(
                            f"{precision:8s} beam {beam} {count:3d} sentences   "
                            f"engine ({ours.name}) {row['ours']:6.0f} tokens/s   "
                            f"CTranslate2 ({theirs.name}) {row['theirs']:6.0f} tokens/s   "
                            f"{row['ratio']:.2f}x   {same:.0%} of the tokens equal",
                            flush=True,
                        )
                        figures[f"{precision} beam {beam} {count}"] = row
                        least = MIN_RATIOS[precision].get(count, 0.0)
                        if row["ratio"] < least:
                            shortfalls.append(
                                f"{precision} beam {beam}, {count} sentences: "
                                f"{row['ratio']:.2f}x, not {least}x"
                            )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2))
    if shortfalls:
        raise SystemExit("; ".join(shortfalls))


if __name__ == "__main__":
    main()
