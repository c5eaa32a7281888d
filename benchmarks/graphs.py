"""Time steps and encodings of the exported graphs, beside what the machine can do.

A seeded Transformer is exported in float32 and in int8, and both take turns, because the machine's
speed drifts. In the same run a large matrix product and the reading of a large array tell what the
machine can do at most.

    python benchmarks/graphs.py [--preset base] [--rounds 7] [--threads 1 2] [--json FILE]

Ends with exit code 1 if a step of int8 is not at least 2 times as fast as one of float32 with 1 row
and 1.15 times with 64, or if a longer past costs more than twice the time of reading its caches.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dragoman_server.runtime.graphs import Graphs, GraphSettings
from measuring import machine
from subjects import catalogue
from subjects.seeded import SOURCE_TOKENS, export, seeded_model

ROWS = (1, 8, 32, 64)
STEPS = 12
"""Steps that are timed together."""
SHORT, LONG, LONG_ROWS = 10, 250, 32
"""Past tokens of a short and of a long past, and the rows that have them."""
MIN_RATIOS = {1: 2.0, 64: 1.15}
"""Times that a step of int8 has to be as fast as one of float32, by rows."""
PRECISIONS = ("float32", "int8")


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


class Timer:
    """Times the graphs of one precision."""

    def __init__(self, graphs: Graphs, vocabulary: int) -> None:
        self._graphs = graphs
        self._rng = np.random.default_rng(2)
        self._vocabulary = vocabulary

    def encode(self, rows: int) -> float:
        """Return the seconds of encoding so many sentences at once."""
        ids = self._rng.integers(4, self._vocabulary, (rows, SOURCE_TOKENS))
        lengths, places = np.full(rows, SOURCE_TOKENS), np.arange(rows)
        return seconds(lambda: self._graphs.encode(ids, lengths, places, places))

    def step(self, rows: int, past: int) -> float:
        """Return the mean seconds of a few steps, the first of which has so many past tokens."""
        tokens, lengths = np.full(rows, 5), np.full(rows, SOURCE_TOKENS)

        def steps() -> None:
            for n in range(STEPS):
                at = min(past + n, self._graphs.manifest.max_target_tokens - 1)
                self._graphs.step(tokens, np.full(rows, at), lengths, candidates=8)

        return seconds(steps) / STEPS


def compare(timers: dict[str, Timer], rounds: int) -> dict[str, dict[int, dict[str, float]]]:
    """Return seconds of encoding and of a step by rows and precision, and their ratio.

    All are medians of rounds in which the precisions take turns.
    """
    figures: dict[str, dict[int, dict[str, float]]] = {"encode": {}, "step": {}}
    for rows in ROWS:
        times: dict[tuple[str, str], list[float]] = {}
        for _ in range(rounds):
            for name, timer in timers.items():
                times.setdefault(("encode", name), []).append(timer.encode(rows))
                times.setdefault(("step", name), []).append(timer.step(rows, 1))
        for kind, by_rows in figures.items():
            by_rows[rows] = {name: statistics.median(times[kind, name]) for name in timers}
            ratios = zip(times[kind, "float32"], times[kind, "int8"], strict=True)
            by_rows[rows]["ratio"] = statistics.median(plain / fast for plain, fast in ratios)
    return figures


def long_past(timers: dict[str, Timer], rounds: int) -> dict[str, float]:
    """Return the seconds that a step takes longer with a long past, by precision."""
    extra: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, timer in timers.items():
            far = timer.step(LONG_ROWS, LONG - STEPS)
            extra[name].append(far - timer.step(LONG_ROWS, SHORT))
    return {name: statistics.median(values) for name, values in extra.items()}


def run(arguments: argparse.Namespace, threads: int, directory: Path) -> list[str]:
    """Print the figures for a number of threads, and return what falls short."""
    vocabulary = arguments.vocabulary
    limits = machine.limits(threads)
    model = seeded_model(arguments.preset, vocabulary)
    settings = model.settings
    timers = {
        name: Timer(
            Graphs(
                export(model, name, directory / f"{name}-{threads}"),
                GraphSettings(rows=max(ROWS), threads=threads),
            ),
            vocabulary,
        )
        for name in PRECISIONS
    }
    print(
        f"\n{arguments.preset}, vocabulary {vocabulary}, {threads} threads; this machine: "
        f"{limits.float32_rate / 1e9:.0f} GFLOPS, reads {limits.read_rate / 1e9:.1f} GB/s"
    )
    figures = compare(timers, arguments.rounds)
    shortfalls = []
    for kind, by_rows in figures.items():
        for rows, row in by_rows.items():
            tokens = rows * (SOURCE_TOKENS if kind == "encode" else 1)
            parts = "   ".join(
                f"{name} {row[name] * 1e3:7.2f} ms {tokens / row[name]:6.0f} tokens/s"
                for name in PRECISIONS
            )
            print(f"{kind:6s} {rows:3d} rows   {parts}   {row['ratio']:.2f}×")
            if kind == "step" and row["ratio"] < MIN_RATIOS.get(rows, 0.0):
                shortfalls.append(f"int8 at {rows} rows is {row['ratio']:.2f}×, {threads} threads")
    positions = LONG - STEPS - SHORT
    cache_bytes = 2 * settings.decoder_layers * positions * settings.width * 4 * LONG_ROWS
    reading = cache_bytes / limits.read_rate
    extra = long_past(timers, arguments.rounds)
    for name, value in extra.items():
        print(
            f"past {LONG - STEPS} to {SHORT}, {LONG_ROWS} rows, {name}: {value * 1e3:.1f} ms more; "
            f"reading the longer caches takes {reading * 1e3:.1f} ms: {value / reading:.2f}×"
        )
        if value > 2 * reading:
            shortfalls.append(f"{name}: a longer past costs {value / reading:.2f}× its reading")
    arguments.figures[threads] = {"machine": vars(limits), **figures, "long_past": extra}
    return shortfalls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    catalogue.add_arguments(parser)
    parser.add_argument(
        "--rounds",
        type=int,
        default=7,
        help="rounds in which precisions take turns to be timed (default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=[os.cpu_count() or 1],
        help="numbers of threads of the graphs, each measured by itself (default: %(default)s)",
    )
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    arguments = parser.parse_args()
    arguments.figures = {}
    shortfalls = []
    with tempfile.TemporaryDirectory() as directory:
        for threads in arguments.threads:
            shortfalls += run(arguments, threads, Path(directory))
    if arguments.json:
        arguments.json.write_text(json.dumps(arguments.figures, indent=2))
    if shortfalls:
        raise SystemExit("; ".join(shortfalls))


if __name__ == "__main__":
    main()
