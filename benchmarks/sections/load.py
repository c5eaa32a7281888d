"""Servers under load: what the modes of ``under_load.py`` measured."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sections.markdown import sentence, table


def latency_section(found: dict[str, Any], images: Path) -> Iterator[str]:
    one = found["latency"]
    yield f"## How long people wait: {one['subject']}"
    yield ""
    yield sentence(found["what"])
    yield "CTranslate2 behind a plain gRPC server with a batching window"
    yield "([its code](../benchmarks/peers/ctranslate2_server.py); best:"
    yield f"{one['ctranslate2_setting']}),"
    yield "and `dragoman serve`. Poisson arrivals at 70% of what CTranslate2's server can do:"
    yield f"{one['rate']:.1f} calls a second. Our p95 is {one['p95_share']:.2f} of its."
    yield ""
    yield from table(
        ["milliseconds", "p50", "p95", "p95, least–most of rounds", "failed"],
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
    yield "## Three times too much"
    yield ""
    yield sentence(found["what"])
    yield f"A closed loop gets {one['capacity']:.1f} sentences a second at most;"
    yield f"{one['rate']:.1f} calls a second arrive, with a deadline of {one['deadline']:g} s."
    yield ""
    rows = [
        ["answered in time, sentences a second", f"{one['goodput']:.1f}"],
        ["of the most in a closed loop", f"{one['goodput_share']:.0%}"],
        ["p95 of what was answered", f"{one['admitted_p95']:.2f} s"],
    ]
    rows += [
        [f"{name}: {error['count']:,} calls, 95% told within", f"{1000 * error['p95']:.0f} ms"]
        for name, error in one["errors"].items()
    ]
    yield from table(["", ""], rows)


def memory_section(found: dict[str, Any], images: Path) -> Iterator[str]:
    yield "## Memory"
    yield ""
    yield sentence(f"{found['what']}; int8")
    yield "Resident, of the server's process, 64 calls under way."
    yield ""
    yield from table(
        ["MiB", "when ready", "at most"],
        [
            [name, f"{one['before'] / 2**20:.0f}", f"{one['peak'] / 2**20:.0f}"]
            for name, one in found["memory"].items()
        ],
    )
