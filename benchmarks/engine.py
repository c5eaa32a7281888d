"""The engine against CTranslate2, in one process, on the same weights.

A seeded Transformer goes to both. Every translation is made to have the same length, so both do
the same work: encoder, decoder, search. Rounds alternate between the two, because the machine's
speed drifts; each has the setting of workers, threads and batches that suits it best, found in the
same run.

    python benchmarks/engine.py [--preset base] [--rounds 5] [--sentences 1 8 32 64] [--json FILE]

Ends with exit code 1 where the engine is slower than it is to be: int8 2.0 times CTranslate2 for
one sentence at a time, 1.2 times for 8, as fast for 32 and 64; float32 as fast everywhere; and
where Python takes more than a tenth of a step of 32 rows.
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
from dragoman_server.engine.settings import EngineSettings, available_cores
from dragoman_server.engine.translator import Translator
from dragoman_training.data.tokenizer import END
from peers import ctranslate2_calls, ctranslate2_model
from subjects.seeded import SOURCE, export, seeded_model

TOKENS = 24
"""Of every translation, the end token included."""
LEAST = {"int8": {1: 2.0, 8: 1.2, 32: 1.0, 64: 1.0}, "float32": {1: 1.0, 8: 1.0, 32: 1.0, 64: 1.0}}
PYTHON_SHARE, PYTHON_ROWS = 0.10, 32

Run = Callable[[list[list[int]]], list[tuple[int, ...]]]
"""Translates sentences, all at once. Returns their token ids."""


@dataclass(frozen=True)
class Contender:
    name: str
    run: Run


def sources(count: int, vocabulary: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return rng.integers(END + 1, vocabulary, (count, SOURCE - 1)).tolist()


@contextmanager
def engines(bundle: RunnableBundle, beam: int, most: int) -> Iterator[list[Contender]]:
    """The engine with each sensible division of the cores."""
    cores = available_cores()
    options = Options(beam=beam, min_tokens=TOKENS - 1, max_tokens=TOKENS)
    with ExitStack() as stack:
        contenders = []
        for lanes, threads in {(cores, 1), (1, cores)}:
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


def peers(directory: Path, compute_type: str, beam: int, count: int) -> list[Contender]:
    """CTranslate2 with each sensible division of the cores, and batches that suit it."""
    cores = available_cores()
    contenders = []
    for workers, threads in {(cores, 1), (1, cores), (1, 1)}:
        translator = ctranslate2_calls.load(directory, compute_type, workers, threads)
        for batch in {count, max(1, count // workers), max(1, count // (2 * workers))}:
            name = f"{workers}x{threads} by {batch}"
            contenders.append(Contender(name, _peer_run(translator, beam, batch)))
    return contenders


def _peer_run(translator: Any, beam: int, batch: int) -> Run:
    def run(texts: list[list[int]]) -> list[tuple[int, ...]]:
        results = translator.translate_batch(
            [[*(f"t{token}" for token in text), "</s>"] for text in texts],
            beam_size=beam,
            max_batch_size=batch,
            min_decoding_length=TOKENS,
            max_decoding_length=TOKENS,
            max_input_length=0,
        )
        return [
            tuple(int(token[1:]) if token[0] == "t" else -1 for token in result.hypotheses[0])
            for result in results
        ]

    return run


def seconds(run: Run, texts: list[list[int]]) -> float:
    began = time.perf_counter()
    run(texts)
    return time.perf_counter() - began


def best(contenders: list[Contender], texts: list[list[int]], tries: int) -> Contender:
    """The fastest of a few tries each, taken in turns."""
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
    pairs = [(seconds(ours.run, texts), seconds(theirs.run, texts)) for _ in range(rounds)]
    tokens = len(texts) * TOKENS
    return {
        "ours": tokens / statistics.median(mine for mine, _ in pairs),
        "theirs": tokens / statistics.median(other for _, other in pairs),
        "ratio": statistics.median(other / mine for mine, other in pairs),
    }


def python_share(bundle: RunnableBundle, rounds: int, vocabulary: int) -> float:
    """Of a lane's turns with 32 rows, the part that is not spent in a graph."""
    settings = EngineSettings(rows=PYTHON_ROWS, lanes=1, threads=1, max_encode_tokens=4096)
    options = Options(min_tokens=TOKENS - 1, max_tokens=TOKENS)
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
    parser.add_argument("--preset", default="base")
    parser.add_argument("--vocabulary", type=int, default=32_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--precisions", nargs="+", default=["int8", "float32"])
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    arguments = parser.parse_args()
    model = seeded_model(arguments.preset, arguments.vocabulary)
    figures: dict[str, Any] = {}
    shortfalls: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for precision in arguments.precisions:
            bundle = export(model, precision, directory / precision)
            peer = directory / f"ctranslate2-{precision}"
            ctranslate2_model.write_model(model, peer, precision)
            if precision == "int8":
                share = python_share(bundle, arguments.rounds, arguments.vocabulary)
                print(f"Python's share of a step, {PYTHON_ROWS} rows: {share:.1%}", flush=True)
                figures["python_share"] = share
                if share > PYTHON_SHARE:
                    shortfalls.append(f"Python takes {share:.1%} of a step")
            for beam in arguments.beams:
                with engines(bundle, beam, max(arguments.sentences)) as contenders:
                    for count in arguments.sentences:
                        texts = sources(count, arguments.vocabulary, count)
                        ours = best(contenders, texts, tries=2)
                        theirs = best(peers(peer, precision, beam, count), texts, tries=2)
                        same = _agreement(ours, theirs, texts)
                        row = compare(ours, theirs, texts, arguments.rounds)
                        print(
                            f"{precision:8s} beam {beam} {count:3d} sentences   "
                            f"engine ({ours.name}) {row['ours']:6.0f} tokens/s   "
                            f"CTranslate2 ({theirs.name}) {row['theirs']:6.0f} tokens/s   "
                            f"{row['ratio']:.2f}x   {same:.0%} of the tokens equal",
                            flush=True,
                        )
                        figures[f"{precision} beam {beam} {count}"] = row
                        least = LEAST[precision].get(count, 0.0)
                        if row["ratio"] < least:
                            shortfalls.append(
                                f"{precision} beam {beam}, {count} sentences: "
                                f"{row['ratio']:.2f}x, not {least}x"
                            )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2))
    if shortfalls:
        raise SystemExit("; ".join(shortfalls))


def _agreement(ours: Contender, theirs: Contender, texts: list[list[int]]) -> float:
    """The share of tokens that both chose alike: with float32 nearly all, or they differ."""
    pairs = zip(ours.run(texts), theirs.run(texts), strict=True)
    equal = [a == b for mine, other in pairs for a, b in zip(mine, other, strict=False)]
    return sum(equal) / len(equal)


if __name__ == "__main__":
    main()
