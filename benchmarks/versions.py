"""Compare how fast two bundles are served: a new version of a model beside the one before it.

    python benchmarks/versions.py old/en-pt models/en-pt --source test.en.gz

Each has a server of its own; they take turns, round by round, with the same texts. Prints for each
number of calls at a time the sentences a second of the new bundle divided by those of the old one:
the median of the rounds, and the smallest and largest.
"""

import argparse
import statistics
import tempfile
import time
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from dragoman_client import Options
from dragoman_training.data.text.corpus import read_lines
from measuring import machine
from measuring.servers import Caller, dragoman_server


def rate(caller: Caller, texts: list[str], concurrent: int, options: Options) -> float:
    """Return the texts that are translated in a second, so many calls under way at a time."""
    began = time.perf_counter()
    caller.translate(texts, concurrent, options)
    return len(texts) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, help="directory of the bundle to compare with")
    parser.add_argument("new", type=Path, help="directory of the bundle that is compared")
    parser.add_argument(
        "--source", type=Path, required=True, help="text to translate, a sentence a line"
    )
    parser.add_argument(
        "--concurrent",
        type=int,
        nargs="+",
        default=[1, 8, 32, 64],
        help="calls that are under way at a time (default: %(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: %(default)s)")
    parser.add_argument("--beam-size", type=int, default=1, help="beam size (default: greedy)")
    arguments = parser.parse_args()
    machine.warn_if_busy(machine.describe())
    texts = list(islice(read_lines(arguments.source), 64 * arguments.rounds))
    options = Options(beam_size=arguments.beam_size)
    with ExitStack() as stack:
        log = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "log"
        old, new = (
            stack.enter_context(Caller(stack.enter_context(dragoman_server(bundle, log)).address))
            for bundle in (arguments.old, arguments.new)
        )
        for concurrent in arguments.concurrent:
            count = 24 if concurrent == 1 else 64
            found = []
            for number in range(arguments.rounds):
                some = texts[number * 64 : number * 64 + count] * (1 + concurrent // 32)
                pair = [rate(each, some, concurrent, options) for each in (old, new)]
                found.append(pair[1] / pair[0])
            print(
                f"{concurrent:3} at a time: {statistics.median(found):.2f} times as fast "
                f"({min(found):.2f} to {max(found):.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
