"""Measure servers under load: latency, what overload does, and memory.

    python benchmarks/under_load.py latency                      # models/en-pt
    python benchmarks/under_load.py latency --model en-pt-wide   # a model of usual size
    python benchmarks/under_load.py overload
    python benchmarks/under_load.py memory

*latency* compares p95 with that of CTranslate2 behind a server with a batching window, at 70% of
what that server can do, and fails if ours is more than half of it. *overload* sends three times the
calls that our server can answer; it fails if less than 90% of its best rate is answered in time, or
if refused calls wait for longer than 0.1 s. *memory* shows the memory of both, all their processes
together, with 64 calls of 20 tokens under way; it fails if ours is above what is allowed for its
model, or grows by 3%.

Load is made as ``dragoman bench`` makes it: Poisson arrivals, and latency counted from the moment
at which a call was to be sent. Servers are processes of their own, in turns on the same machine.
The exit code is 1 where a mode fails.
"""

import argparse
import asyncio
import itertools
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman_cli.bench.load import Load, LoadSettings
from dragoman_cli.bench.statistics import Statistics
from dragoman_client import AsyncClient, Options, Retries
from measuring import machine
from measuring.servers import (
    Caller,
    MemoryWatch,
    Process,
    ctranslate2_server,
    dragoman_server,
)
from peers.served import options_for
from subjects import catalogue
from subjects.seeded import SOURCE_TOKENS, TARGET_TOKENS
from subjects.subject import Subject, Text

CLOSED = (16, 32, 64, 128)
"""Numbers of calls under way that are tried to find the most that a server can do."""
WINDOWS = (0.005, 0.02)
"""Seconds for which CTranslate2's server collects a batch; both are tried."""
LOAD = 0.7
"""Calls that arrive in *latency*, as a share of the most that CTranslate2's server can do."""
MAX_LATENCY_SHARE = 0.5
"""Most that our p95 may be, as a share of the p95 of CTranslate2's server."""
OVERLOAD = 3.0
"""Calls that arrive in *overload*, as a multiple of the most that our server can do."""
MIN_GOODPUT_SHARE = 0.9
"""Sentences to be answered in time under overload, as a share of the most that can be."""
MAX_REFUSAL_SECONDS = 0.1
"""Seconds within which 95% of refused calls have to be told so."""

MAX_MEMORY = {"base": 450 * 2**20, "en-pt": 220 * 2**20}
"""Most bytes in memory of all processes of our server, by model."""
MAX_GROWTH = 0.03
"""Most that memory may grow over many calls, as a share."""


def run_load(
    address: str, subject: Subject, settings: LoadSettings, timeout: float = 60.0
) -> Statistics:
    """Put a load on a server. Calls that fail are not sent again."""

    async def run() -> Statistics:
        once = Retries(attempts=1)
        async with AsyncClient(address, timeout=timeout, retries=once) as client:
            texts = (text.text for text in _texts(subject, settings.seed))
            asked = {"options": options_for(subject, beam=1)}
            return await Load(client, texts, asked, settings).run()

    return asyncio.run(run())


def _texts(subject: Subject, seed: int) -> Iterator[Text]:
    """Yield texts without end."""
    while True:
        yield from subject.texts(512, seed)
        seed += 1


def capacity(process: Process, subject: Subject, seconds: float) -> float:
    """Return the most sentences a second, over several numbers of calls under way."""
    rates = []
    for concurrency in CLOSED:
        settings = LoadSettings(
            concurrency=concurrency, seconds=seconds, warm_up=1.0, stream_share=0.0
        )
        statistics = run_load(process.address, subject, settings)
        rates.append(statistics.rate(statistics.sentences))
    if not any(rates):
        raise SystemExit(f"no call was answered within {seconds:g} s: give more --seconds")
    return max(rates)


@dataclass(frozen=True)
class Setting:
    """A server that can be started again and again."""

    name: str
    start: Callable[[], Any]


def ctranslate2_settings(subject: Subject, directory: Path) -> list[Setting]:
    """Return CTranslate2's server with each division of the cores and each window."""
    model = directory / "ctranslate2-int8"
    if not model.exists():
        from peers import ctranslate2_model

        ctranslate2_model.write_model(subject.model, model, "int8")
    tokenizer = directory / "tokenizer.spm"
    tokenizer.write_bytes(subject.tokenizer.model)
    found = []
    for workers, threads in machine.divisions():
        for window in WINDOWS:
            flags = ["--workers", str(workers), "--threads", str(threads)]
            flags += ["--window", str(window), "--batch", "32"]
            flags += [] if subject.forced is None else ["--forced", str(subject.forced)]

            def start(flags: list[str] = flags) -> Any:
                return ctranslate2_server(model, tokenizer, directory / "servers.log", *flags)

            name = f"{workers} × {threads}, window {1000 * window:g} ms"
            found.append(Setting(name, start))
    return found


@contextmanager
def ours(subject: Subject, directory: Path, *flags: str) -> Iterator[Process]:
    """Start ``dragoman serve`` with the int8 bundle of a model."""
    bundle = subject.bundle("int8", directory)
    with dragoman_server(bundle.path, directory / "servers.log", *flags) as process:
        yield process


def latency(
    wanted: argparse.Namespace, subject: Subject, directory: Path
) -> tuple[dict[str, Any], bool]:
    """Compare p95 of both servers at 70% of what CTranslate2's server can do."""
    best, most = None, 0.0
    for setting in ctranslate2_settings(subject, directory):
        with setting.start() as process:
            rate = capacity(process, subject, wanted.seconds / 4)
        print(f"CTranslate2's server, {setting.name}: {rate:.1f} sentences/s", flush=True)
        if rate > most:
            best, most = setting, rate
    assert best is not None
    with ours(subject, directory) as process:
        our_most = capacity(process, subject, wanted.seconds / 4)
    print(f"our server: {our_most:.1f} sentences/s, {our_most / most:.2f} of that", flush=True)
    rate = LOAD * most
    both: dict[str, list[Statistics]] = {"dragoman": [], "ctranslate2": []}
    for number in range(wanted.rounds):
        settings = LoadSettings(
            rate=rate, seconds=wanted.seconds, warm_up=2.0, stream_share=0.0, seed=number + 1
        )
        with ours(subject, directory) as process:
            both["dragoman"].append(run_load(process.address, subject, settings))
        with best.start() as process:
            both["ctranslate2"].append(run_load(process.address, subject, settings))
    figures: dict[str, Any] = {
        "subject": subject.name,
        "ctranslate2_setting": best.name,
        "ctranslate2_capacity": most,
        "our_capacity": our_most,
        "rate": rate,
    }
    for name, runs in both.items():
        p95s = [run.latency.percentile(95) for run in runs]
        figures[name] = {
            "p50": statistics.median(run.latency.percentile(50) for run in runs),
            "p95": statistics.median(p95s),
            "p95_least": min(p95s),
            "p95_most": max(p95s),
            "failed": sum(run.failed for run in runs),
            "unsent": sum(run.unsent for run in runs),
        }
        print(f"{name}: {_ms(figures[name])} at {rate:.1f} calls/s", flush=True)
    share = figures["dragoman"]["p95"] / figures["ctranslate2"]["p95"]
    figures["p95_share"] = share
    print(f"our p95 is {share:.2f} of CTranslate2's; it may be {MAX_LATENCY_SHARE}")
    return figures, share <= MAX_LATENCY_SHARE


def _ms(figures: dict[str, float]) -> str:
    return f"p50 {1000 * figures['p50']:.0f} ms, p95 {1000 * figures['p95']:.0f} ms"


def overload(
    wanted: argparse.Namespace, subject: Subject, directory: Path
) -> tuple[dict[str, Any], bool]:
    """Send three times what the server can do: it answers in time, or refuses at once."""
    with ours(subject, directory) as process:
        best = capacity(process, subject, wanted.seconds / 4)
        settings = LoadSettings(
            rate=OVERLOAD * best, seconds=wanted.seconds, warm_up=2.0, stream_share=0.0
        )
        found = run_load(process.address, subject, settings, timeout=wanted.deadline)
    goodput = found.rate(found.sentences)
    refused = {f"{code} {reason}".strip(): f for (code, reason), f in found.errors.items()}
    p95 = found.latency.percentile(95)
    figures: dict[str, Any] = {
        "capacity": best,
        "rate": OVERLOAD * best,
        "deadline": wanted.deadline,
        "goodput": goodput,
        "goodput_share": goodput / best if best else 0.0,
        "admitted_p95": p95,
        "answered": found.answered,
        "unsent": found.unsent,
        "client_lag_p95": found.lag.percentile(95),
        "errors": {
            name: {"count": f.count, "p95": f.after.percentile(95)} for name, f in refused.items()
        },
    }
    print(f"closed loop, the best: {best:.1f} sentences/s; asked for {OVERLOAD * best:.1f}")
    print(f"goodput {goodput:.1f} sentences/s, {figures['goodput_share']:.0%} of the best")
    print(f"admitted p95 {p95:.2f} s, deadline {wanted.deadline:g} s; unsent {found.unsent}")
    for name, one in figures["errors"].items():
        print(f"  {name}: {one['count']}, 95% told within {1000 * one['p95']:.0f} ms")
    # Those that run out of time in the queue were taken: only what is refused has to be fast.
    fast = all(
        one["p95"] <= MAX_REFUSAL_SECONDS
        for name, one in figures["errors"].items()
        if name.startswith("RESOURCE_EXHAUSTED") or "DEADLINE_UNREACHABLE" in name
    )
    held = figures["goodput_share"] >= MIN_GOODPUT_SHARE and p95 <= wanted.deadline and fast
    return figures, held


def memory(
    wanted: argparse.Namespace, subject: Subject, directory: Path
) -> tuple[dict[str, Any], bool]:
    """Watch the memory of both servers while the same calls are under way."""
    figures: dict[str, Any] = {}

    def note(name: str, process: Process) -> None:
        before = process.memory()
        with MemoryWatch(process) as watch:
            sentences_per_second = many_calls(process, subject, wanted.requests)
        tenth = max(1, len(watch.seen) // 10)
        early = statistics.median(watch.seen[tenth : 2 * tenth] or watch.seen)
        late = statistics.median(watch.seen[-tenth:])
        figures[name] = {
            "before": before,
            "peak": max(watch.seen),
            "growth": late / early - 1,
            "sentences_per_second": sentences_per_second,
        }
        print(
            f"{name}: {before / 2**20:.0f} MiB when ready, {max(watch.seen) / 2**20:.0f} MiB at "
            f"most, {late / early - 1:+.1%} from the second tenth of {wanted.requests} calls on, "
            f"{sentences_per_second:.1f} sentences/s",
            flush=True,
        )

    flags = [] if wanted.workers is None else ["--workers", str(wanted.workers), "--threads", "1"]
    with ours(subject, directory, *flags) as process:
        note("dragoman, 64 rows", process)
    (of_ours,) = figures.values()
    if not wanted.alone:
        for setting in ctranslate2_settings(subject, directory)[:: len(WINDOWS)]:
            with setting.start() as process:
                note(f"ctranslate2, {setting.name}", process)
    is_small = of_ours["peak"] <= MAX_MEMORY.get(subject.name, math.inf)
    return figures, is_small and of_ours["growth"] < MAX_GROWTH


def many_calls(process: Process, subject: Subject, count: int) -> float:
    """Send so many calls of 20 tokens, 64 at a time. Returns sentences a second."""
    made = (text for text in _texts(subject, 1) if abs(len(text.ids) + 1 - SOURCE_TOKENS) <= 1)
    texts = [text.text for text in itertools.islice(made, count)]
    options = Options(min_tokens=TARGET_TOKENS - 1, max_tokens=TARGET_TOKENS)
    with Caller(process.address) as caller:
        began = time.perf_counter()
        caller.translate(texts, 64, options)
        return count / (time.perf_counter() - began)


MODES = {"latency": latency, "overload": overload, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=MODES, help="what is measured")
    parser.add_argument(
        "--model",
        choices=("base", "en-pt", "en-pt-wide"),
        help="model to serve (default: en-pt for latency, base otherwise)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        help="seconds that each load lasts (default: %(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="rounds in which both servers take turns in latency (default: %(default)s)",
    )
    parser.add_argument(
        "--deadline",
        type=float,
        default=5.0,
        help="seconds that a call may take under overload (default: %(default)s)",
    )
    parser.add_argument(
        "--requests",
        type=int,
        default=5000,
        help="calls while memory is watched (default: %(default)s)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        help="workers of our server while memory is watched (default: to suit the cores)",
    )
    parser.add_argument("--alone", action="store_true", help="watch the memory of our server only")
    catalogue.add_arguments(parser)
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    wanted = parser.parse_args()
    about = machine.describe()
    machine.warn_if_busy(about)
    name = wanted.model or ("en-pt" if wanted.mode == "latency" else "base")
    subject = catalogue.named(name, wanted.preset, wanted.vocabulary)
    with tempfile.TemporaryDirectory() as temporary:
        figures, holds = MODES[wanted.mode](wanted, subject, Path(temporary))
    if wanted.json:
        what = {"machine": about, "what": subject.what, "holds": holds}
        content = {**what, wanted.mode: figures}
        wanted.json.write_text(json.dumps(content, indent=1) + "\n")
    sys.exit(not holds)


if __name__ == "__main__":
    main()
