"""Step and encode time of the exported graphs, beside what the machine can do.

A seeded Transformer is exported in each precision; rounds alternate between precisions, because the
machine's speed drifts. In the same run a large matrix product and a read of a large array give the
machine's rates, so that a step can be held against them.

    python benchmarks/graphs.py [--preset base] [--rounds 7] [--threads 1 2] [--json FILE]

Ends with exit code 1 when int8 is not at least 2 times as fast as float32 at 1 row and 1.15 times
at 64, or when a longer past costs more than twice the reading of its caches.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_training.models.settings import PRESETS
from subjects.seeded import SOURCE, export, seeded_model

ROWS = (1, 8, 32, 64)
STEPS = 12
SHORT, LONG, LONG_ROWS = 10, 250, 32
LEAST = {1: 2.0, 64: 1.15}
PRECISIONS = ("float32", "int8")


@dataclass(frozen=True)
class Machine:
    gflops: float
    """float32 matrix product."""
    read_rate: float
    """Bytes a second, read from memory."""


def best_of(call: Callable[[], object], times: int = 5) -> float:
    return min(seconds(call) for _ in range(times))


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def measure_machine(threads: int) -> Machine:
    torch.set_num_threads(threads)
    a = torch.randn(2048, 2048)
    large = torch.ones(128 << 20)
    product = best_of(lambda: a @ a)
    read = best_of(lambda: large.sum())
    return Machine(2 * 2048**3 / product / 1e9, large.numel() * 4 / read)


class Timer:
    """Times the graphs of one precision."""

    def __init__(self, graphs: Graphs, vocabulary: int) -> None:
        self._graphs = graphs
        self._rng = np.random.default_rng(2)
        self._vocabulary = vocabulary

    def encode(self, rows: int) -> float:
        ids = self._rng.integers(4, self._vocabulary, (rows, SOURCE))
        lengths, places = np.full(rows, SOURCE), np.arange(rows)
        return seconds(lambda: self._graphs.encode(ids, lengths, places, places))

    def step(self, rows: int, past: int) -> float:
        """The mean of a few steps that begin at this past length."""
        tokens, lengths = np.full(rows, 5), np.full(rows, SOURCE)

        def steps() -> None:
            for n in range(STEPS):
                at = min(past + n, self._graphs.manifest.max_target_tokens - 1)
                self._graphs.step(tokens, np.full(rows, at), lengths, candidates=8)

        return seconds(steps) / STEPS


def compare(timers: dict[str, Timer], rounds: int) -> dict[str, dict[int, dict[str, float]]]:
    """Medians of alternating rounds: of encoding, of steps, and of the ratio of both."""
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
    """The extra seconds of a step far into a translation."""
    extra: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, timer in timers.items():
            far = timer.step(LONG_ROWS, LONG - STEPS)
            extra[name].append(far - timer.step(LONG_ROWS, SHORT))
    return {name: statistics.median(values) for name, values in extra.items()}


def run(arguments: argparse.Namespace, threads: int, directory: Path) -> list[str]:
    """Print the figures for a number of threads. Returns what falls short."""
    vocabulary = arguments.vocabulary
    machine = measure_machine(threads)
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
        f"{machine.gflops:.0f} GFLOPS, reads {machine.read_rate / 1e9:.1f} GB/s"
    )
    figures = compare(timers, arguments.rounds)
    shortfalls = []
    for kind, by_rows in figures.items():
        for rows, row in by_rows.items():
            tokens = rows * (SOURCE if kind == "encode" else 1)
            parts = "   ".join(
                f"{name} {row[name] * 1e3:7.2f} ms {tokens / row[name]:6.0f} tokens/s"
                for name in PRECISIONS
            )
            print(f"{kind:6s} {rows:3d} rows   {parts}   {row['ratio']:.2f}×")
            if kind == "step" and row["ratio"] < LEAST.get(rows, 0.0):
                shortfalls.append(f"int8 at {rows} rows is {row['ratio']:.2f}×, {threads} threads")
    positions = LONG - STEPS - SHORT
    cache_bytes = 2 * settings.decoder_layers * positions * settings.width * 4 * LONG_ROWS
    reading = cache_bytes / machine.read_rate
    extra = long_past(timers, arguments.rounds)
    for name, value in extra.items():
        print(
            f"past {LONG - STEPS} to {SHORT}, {LONG_ROWS} rows, {name}: {value * 1e3:.1f} ms more; "
            f"reading the longer caches takes {reading * 1e3:.1f} ms: {value / reading:.2f}×"
        )
        if value > 2 * reading:
            shortfalls.append(f"{name}: a longer past costs {value / reading:.2f}× its reading")
    arguments.figures[threads] = {"machine": vars(machine), **figures, "long_past": extra}
    return shortfalls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="base", choices=PRESETS)
    parser.add_argument("--vocabulary", type=int, default=32_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count() or 1])
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
