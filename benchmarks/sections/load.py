"""Servers under load: what the modes of ``under_load.py`` measured."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sections.markdown import paragraph, sentence, table


def latency_section(found: dict[str, Any], images: Path) -> Iterator[str]:
    one = found["latency"]
    yield f"## Latency under load: {one['subject']}"
    yield ""
    yield from paragraph(
        sentence(found["what"]),
        "`dragoman serve` beside CTranslate2 behind a plain gRPC server with a batching window",
        "([code](../benchmarks/peers/ctranslate2_server.py)), at its fastest setting:",
        f"{one['ctranslate2_setting']}. Calls arrive at random moments (Poisson), at 70% of the",
        f"rate that CTranslate2's server can answer: {one['rate']:.1f} calls a second. Dragoman's",
        f"p95 is {one['p95_share']:.2f} times that of CTranslate2's server.",
    )
    yield ""
    yield from table(
        ["milliseconds", "p50", "p95", "p95, lowest–highest round", "calls that failed"],
        [
            [
                name,
                f"{1000 * one[name]['p50']:.0f}",
                f"{1000 * one[name]['p95']:.0f}",
                f"{1000 * one[name]['p95_least']:.0f}–{1000 * one[name]['p95_most']:.0f}",
                f"{one[name]['failed'] + one[name]['unsent']}",
            ]
            for name in ("dragoman", "ctranslate2")
        ],
    )


def overload_section(found: dict[str, Any], images: Path) -> Iterator[str]:
    one = found["overload"]
    yield "## Overload"
    yield ""
    yield from paragraph(
        sentence(found["what"]),
        f"Clients that wait for each answer (a closed loop) get {one['capacity']:.1f} sentences a",
        f"second at most. Here three times as many calls arrive, {one['rate']:.1f} a second, each",
        f"with a deadline of {one['deadline']:g} s.",
    )
    yield ""
    rows = [
        ["answered in time, sentences a second", f"{one['goodput']:.1f}"],
        ["share of the closed loop's rate", f"{one['goodput_share']:.0%}"],
        ["p95 of the answered calls", f"{one['admitted_p95']:.2f} s"],
    ]
    rows += [
        [
            f"{name}: {error['count']:,} calls, 95% of them told within",
            f"{1000 * error['p95']:.0f} ms",
        ]
        for name, error in one["errors"].items()
    ]
    yield from table(["", ""], rows)


def memory_section(found: dict[str, Any], images: Path) -> Iterator[str]:
    yield "## Memory"
    yield ""
    yield from paragraph(
        sentence(f"{found['what']}; int8"),
        "The table has the memory of all processes of a server (proportional set size), with 64",
        "calls under way.",
    )
    yield ""
    yield from table(
        ["MiB", "when ready", "peak"],
        [
            [name, f"{one['before'] / 2**20:.0f}", f"{one['peak'] / 2**20:.0f}"]
            for name, one in found["memory"].items()
        ],
    )
