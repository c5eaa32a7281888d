"""Measure where the time of a served sentence goes, and a step beside the machine's limits.

    python benchmarks/served_sentence.py [--preset base] [--concurrent 1 8 64] [--json FILE]

The parts come from the server's own timing, which a client asks for with ``Options(timing=True)``:

    tokenise    from the call's arrival until the engine has it: splitting, masking, tokenising
    queue       waiting for free rows
    encode      the encoder, with what the sentence had to wait for in the same turn
    steps       the decoder, one step for each token
    detokenise  from the last token to the response: way to the event loop, text, message
    wire        the rest of what the client saw: both ends of gRPC, and the SDK

Then the time of a step is compared with the least that it can take: reading every weight and every
cache once, and multiplying, at the rates that this machine reaches in the same run.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from dragoman_client import AsyncClient, Translation
from dragoman_server.bundle.reading import Bundle
from dragoman_server.engine.settings import available_cores
from measuring import machine
from measuring.servers import PATIENCE, dragoman_server
from peers.served import options_for
from subjects import catalogue
from subjects.seeded import SOURCE_TOKENS
from subjects.subject import Subject


@dataclass(frozen=True)
class Parts:
    """Seconds that the parts of a sentence's time took."""

    tokenise: float
    queue: float
    encode: float
    steps: float
    detokenise: float
    wire: float
    total: float
    """Seconds from the client's call to its answer."""

    @classmethod
    def of(cls, made: Translation, seen: float) -> "Parts":
        """Return the parts of a translation that took the client so many seconds."""
        timing = made.timing
        assert timing is not None
        steps = timing.first_token - timing.encode + timing.decode
        known = timing.prepare + timing.queue + timing.encode + steps
        return cls(
            timing.prepare,
            timing.queue,
            timing.encode,
            steps,
            timing.total - known,
            seen - timing.total,
            seen,
        )


def sentences(address: str, subject: Subject, concurrent: int, count: int) -> list[Parts]:
    """Return the parts of so many calls, sent by so many callers. The first of each is left out."""
    texts = iter(subject.texts(count + concurrent, seed=concurrent))
    options = replace(options_for(subject, beam=1), timing=True)
    found: list[Parts] = []

    async def run() -> None:
        async with AsyncClient(address, timeout=PATIENCE) as client:

            async def caller() -> None:
                is_first = True
                for text in texts:
                    began = time.perf_counter()
                    made = await client.translate(text.text, options=options)
                    if not is_first:
                        found.append(Parts.of(made, time.perf_counter() - began))
                    is_first = False

            await asyncio.gather(*(caller() for _ in range(concurrent)))

    asyncio.run(run())
    return found


@dataclass(frozen=True)
class Floor:
    """The least seconds that a step can take."""

    read: float
    """Seconds to read every weight of the decoder, and the caches of all rows, once."""
    multiply: float
    """Seconds to multiply them."""

    @property
    def step(self) -> float:
        """Seconds of both, as reading and multiplying go on at once."""
        return max(self.read, self.multiply)


def floor(bundle: Bundle, rows: int, past: int, source: int, limits: machine.Limits) -> Floor:
    """Return the floor of a decoder step with rows of so many past and source tokens."""
    manifest, sizes = bundle.manifest, bundle.manifest.dimensions
    width, layers = sizes.width, sizes.decoder_layers
    # A layer has six square matrices (query, key, value and output of self-attention, query and
    # output of cross-attention) and two of the feed-forward network.
    weights = layers * (6 * width * width + 2 * width * sizes.feed_forward)
    weights += width * sizes.target_vocabulary
    is_int8 = manifest.precision == "int8"
    caches = rows * 2 * layers * width * (past + source) * 4
    rate = limits.int8_rate if is_int8 else limits.float32_rate
    attention = rows * 4 * layers * width * (past + source)
    return Floor(
        read=(weights * (1 if is_int8 else 4) + caches) / limits.read_rate,
        multiply=2 * weights * rows / rate + attention / limits.float32_rate,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--subject",
        choices=("base", "en-pt"),
        default="base",
        help="model to serve: seeded, or the repository's (default: %(default)s)",
    )
    parser.add_argument(
        "--precision",
        choices=("int8", "float32"),
        default="int8",
        help="precision of the weights (default: %(default)s)",
    )
    parser.add_argument(
        "--concurrent",
        type=int,
        nargs="+",
        default=[1, 8, 64],
        help="numbers of calls under way at a time (default: %(default)s)",
    )
    parser.add_argument(
        "--sentences",
        type=int,
        default=200,
        help="sentences for each number of calls under way (default: %(default)s)",
    )
    catalogue.add_arguments(parser)
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    wanted = parser.parse_args()
    about = machine.describe()
    machine.warn_if_busy(about)
    subject = catalogue.named(wanted.subject, wanted.preset, wanted.vocabulary)
    cores = available_cores()
    limits = machine.limits(1)
    print(
        f"one thread: {limits.float32_rate / 1e9:.0f} G float32 and {limits.int8_rate / 1e9:.0f} G "
        f"int8 operations/s, {limits.read_rate / 1e9:.1f} GB/s read"
    )
    with tempfile.TemporaryDirectory() as temporary:
        bundle = subject.bundle(wanted.precision, Path(temporary))
        log = Path(temporary) / "server.log"
        flags = ("--lanes", str(cores), "--threads", "1")
        with dragoman_server(bundle.path, log, *flags) as process:
            results = [
                _one(process.address, subject, bundle, concurrent, wanted, limits)
                for concurrent in wanted.concurrent
            ]
    if wanted.json:
        content = {"machine": about, "limits": asdict(limits), "served_sentence": results}
        wanted.json.write_text(json.dumps(content, indent=1) + "\n")


def _one(
    address: str,
    subject: Subject,
    bundle: Bundle,
    concurrent: int,
    wanted: argparse.Namespace,
    limits: machine.Limits,
) -> dict[str, Any]:
    found = sentences(address, subject, concurrent, wanted.sentences)
    medians = {
        field.name: statistics.median(getattr(one, field.name) for one in found)
        for field in fields(Parts)
    }
    print(f"\n{concurrent} at a time, {subject.name} {wanted.precision}: medians")
    for name, seconds in medians.items():
        share = seconds / medians["total"]
        print(f"  {name:10s} {1000 * seconds:9.3f} ms  {share:6.1%}  {'█' * round(40 * share)}")
    row: dict[str, Any] = {"concurrent": concurrent, "parts": medians}
    if subject.forced is not None:
        # There is a lane for each core, and rows are spread over the lanes.
        rows = max(1, round(concurrent / available_cores()))
        step = medians["steps"] / subject.forced
        least = floor(bundle, rows, subject.forced // 2, SOURCE_TOKENS, limits)
        row |= {
            "step": step,
            "rows": rows,
            "least_read": least.read,
            "least_product": least.multiply,
        }
        print(
            f"  a step of {rows} rows takes {1000 * step:.2f} ms; reading takes at least "
            f"{1000 * least.read:.2f} ms, multiplying {1000 * least.multiply:.2f} ms: "
            f"{step / least.step:.1f} times the limit"
        )
    return row


if __name__ == "__main__":
    main()
