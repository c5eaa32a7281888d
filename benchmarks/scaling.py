"""How many workers one front keeps busy: a machine of many cores, simulated on few.

    python benchmarks/scaling.py [--workers 32] [--rows 16] [--texts 1 16] [--json FILE]

First the time of a decoder step is measured here, by its rows, for a seeded Transformer-base and
for the repository's model, with one thread. Then a server runs whose workers sleep for that long
instead of computing, and take no core. Its front, its text, its queue and its messages are real.
Everything but the clients takes many times as long as it would, so that one core can play all of
them (``simulation/pace.py``). What is to come out is predicted with the formula of
``docs/scaling.md``, of what a front costs that has few workers.

Ends with exit code 1 where a model keeps fewer workers busy than it has to, or where the prediction
is off by more than 20%.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dragoman_server.runtime.graphs import Graphs, GraphSettings
from measuring import machine
from simulation.pace import Pace
from simulation.server import Found, Load, simulated
from subjects import catalogue
from subjects.seeded import SOURCE_TOKENS

STEP_ROWS = (1, 2, 4, 8, 16, 24, 32)
PAST = 12
"""Past tokens of the steps that are timed."""
MIN_BUSY = {"base": 0.75}
"""Share of the workers that have to be kept busy, by model."""
MAX_ERROR = 0.2
"""Most that a prediction may be off, as a share of what was measured."""


def _computing(call: Callable[[], object]) -> float:
    began = time.thread_time()
    call()
    return time.thread_time() - began


def measure_pace(graphs: Graphs, rounds: int) -> Pace:
    """Time the graphs of a model, which run in this thread.

    It is the time that they compute, and the best of several rounds: others may use the machine.
    """
    rows = graphs.settings.rows
    ids = np.full((rows, SOURCE_TOKENS), 5)
    lengths, places = np.full(rows, SOURCE_TOKENS), np.arange(rows)

    def best(call: Callable[[], object], times: int) -> float:
        return min(_computing(call) for _ in range(times))

    encode = best(lambda: graphs.encode(ids, lengths, places, places), rounds)
    steps = {}
    for n in STEP_ROWS:
        given = np.full(n, 5), np.full(n, PAST), np.full(n, SOURCE_TOKENS)
        steps[n] = best(partial(graphs.step, *given, candidates=2), 4 * rounds)
    return Pace(1.0, steps, encode / ids.size)


@dataclass(frozen=True)
class Prediction:
    """What ``docs/scaling.md`` says of a server, before it is tried."""

    worker_rate: float
    """Sentences a second of a worker whose rows are full."""
    front_rate: float
    """Sentences a second that the front can feed and answer."""
    workers: int

    @property
    def fed(self) -> float:
        """Workers that the front can keep full, if there were as many."""
        return self.front_rate / self.worker_rate

    @property
    def rate(self) -> float:
        """Sentences a second of the server."""
        return min(self.front_rate, self.workers * self.worker_rate)


def predict(pace: Pace, few: Found, workers: int, rows: int) -> Prediction:
    """Say what a front with many workers will do, of what one with few costs."""
    python = few.turn_seconds - pace.step(round(few.rows))
    a_sentence = few.tokens * ((pace.step(rows) + python) / rows + pace.encode_seconds)
    return Prediction(1 / a_sentence, 1 / few.loop_seconds, workers)


def try_model(name: str, pace: Pace, wanted: argparse.Namespace, log: Path) -> dict[str, Any]:
    """Simulate a model with few workers and with many, and compare with what was predicted."""
    steps = ", ".join(f"{n}: {1000 * s:.2f}" for n, s in pace.step_seconds.items())
    print(f"\n{name}: a step takes, by rows, {steps} ms; ", end="")
    print(f"the encoder {1e6 * pace.encode_seconds:.0f} µs a token; ", end="")
    print(f"time goes {pace.dilation:.0f} times as slowly", flush=True)
    results: dict[str, Any] = {"pace": asdict(pace), "calls": {}}
    for texts in wanted.texts:
        found = {}
        for workers in (wanted.few, wanted.workers):
            callers = math.ceil(workers * wanted.rows / texts)
            with simulated(pace, workers, wanted.rows, log) as server:
                found[workers] = server.put(Load(callers, texts, wanted.seconds))
            _show(workers, texts, found[workers])
        few, many = found[wanted.few], found[wanted.workers]
        said = predict(pace, few, wanted.workers, wanted.rows)
        full = many.rate / said.worker_rate
        print(
            f"  predicted {said.rate:.0f} sentences/s, measured {many.rate:.0f} "
            f"({said.rate / many.rate - 1:+.0%}); a full worker does {said.worker_rate:.0f}, so "
            f"this is the work of {full:.1f} full ones; the front can feed {said.fed:.1f}",
            flush=True,
        )
        results["calls"][texts] = {
            "few": asdict(few),
            "many": asdict(many),
            "predicted": {**asdict(said), "fed": said.fed, "rate": said.rate},
            "full_workers": full,
            "error": said.rate / many.rate - 1,
        }
    return results


def _show(workers: int, texts: int, found: Found) -> None:
    print(
        f"  {workers} workers, calls of {texts}: {found.rate:.0f} sentences/s of "
        f"{found.tokens:.1f} tokens, {found.busy:.1f} workers busy with {found.rows:.1f} rows each "
        f"({1000 * found.turn_seconds:.2f} ms a turn); the front's loop {found.loop_share:.0%} of "
        f"a core, {1000 * found.loop_seconds:.3f} ms a sentence, its other threads "
        f"{found.rest_share:.0%}",
        flush=True,
    )
    if found.again:
        print(f"  {found.again:.0f} sentences were translated again")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--models",
        nargs="+",
        choices=("base", "en-pt"),
        default=["base", "en-pt"],
        help="models whose steps are simulated (default: both)",
    )
    parser.add_argument("--workers", type=int, default=32, help="workers (default: %(default)s)")
    parser.add_argument(
        "--few",
        type=int,
        default=4,
        help="workers that the front's cost is measured with (default: %(default)s)",
    )
    parser.add_argument(
        "--rows", type=int, default=16, help="rows of each worker (default: %(default)s)"
    )
    parser.add_argument(
        "--texts", type=int, nargs="+", default=[1, 16], help="texts of a call (default: 1 16)"
    )
    parser.add_argument(
        "--step",
        type=float,
        default=0.1,
        help="seconds here that a step of full rows takes: time goes as slowly as that needs; "
        "more where others use the machine too (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=120.0,
        help="seconds here for which each load is measured (default: %(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=20, help="rounds in which steps are timed")
    catalogue.add_arguments(parser)
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    wanted = parser.parse_args()
    about = machine.describe()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for name in wanted.models:
            subject = catalogue.named(name, wanted.preset, wanted.vocabulary)
            bundle = subject.bundle("int8", directory)
            graphs = Graphs(bundle, GraphSettings(rows=max(STEP_ROWS)))
            pace = measure_pace(graphs, wanted.rounds)
            pace = replace(pace, dilation=max(1.0, wanted.step / pace.step(wanted.rows)))
            del graphs
            results[name] = try_model(name, pace, wanted, directory / "servers.log")
    if wanted.json:
        content = {"machine": about, "scaling": results}
        wanted.json.write_text(json.dumps(content, indent=1) + "\n")
    sys.exit(not _holds(results, wanted.workers))


def _holds(results: dict[str, Any], workers: int) -> bool:
    errors = [abs(one["error"]) for model in results.values() for one in model["calls"].values()]
    enough = all(
        one["many"]["busy"] >= MIN_BUSY.get(name, 0.0) * workers
        for name, model in results.items()
        for one in model["calls"].values()
    )
    return enough and max(errors) <= MAX_ERROR


if __name__ == "__main__":
    main()
