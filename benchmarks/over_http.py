"""Compare how many calls a second one server answers over HTTP and over gRPC.

    python benchmarks/over_http.py models/en-pt --source test.en.gz

The clients are plain: gRPC's own channel, and for HTTP asyncio's sockets, one for each call that is
under way. Both protocols take turns, round by round, with the same texts and the same server.
Prints the calls a second of HTTP divided by those of gRPC, the median of the rounds, and ends with
exit code 1 below 0.9.
"""

import argparse
import asyncio
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from pathlib import Path

import grpc.aio

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_training.data.text.corpus import read_lines
from measuring import machine
from measuring.servers import dragoman_server

MIN_RATIO = 0.9
"""Calls a second over HTTP, divided by those over gRPC, that there have to be at least."""
HTTP_PORT = 18_080

Person = Callable[[Iterator[str]], Awaitable[None]]
"""Sends a call for each text, one after the other."""


async def over_grpc(stub: TranslationServiceStub, texts: Iterator[str]) -> None:
    for text in texts:
        await stub.Translate(pb.TranslateRequest(texts=[text]))


async def over_http(texts: Iterator[str]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", HTTP_PORT)
    for text in texts:
        body = json.dumps({"texts": [text]}).encode()
        head = (
            "POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer)
        if not answer.startswith(b"HTTP/1.1 200") or length is None:
            raise SystemExit(f"the server answered {answer!r}")
        await reader.readexactly(int(length[1]))
    writer.close()
    await writer.wait_closed()


async def rate(person: Person, texts: list[str], concurrent: int) -> float:
    """Return the calls that are answered in a second, so many under way at a time."""
    left = iter(texts)
    began = time.perf_counter()
    await asyncio.gather(*(person(left) for _ in range(concurrent)))
    return len(texts) / (time.perf_counter() - began)


async def compare(address: str, texts: list[str], concurrent: int, rounds: int) -> list[float]:
    """Return the ratio of each round."""
    found: list[float] = []
    async with grpc.aio.insecure_channel(address) as channel:
        stub = TranslationServiceStub(channel)
        for number in range(rounds + 1):
            grpc_rate = await rate(lambda some: over_grpc(stub, some), texts, concurrent)
            http_rate = await rate(over_http, texts, concurrent)
            if number:  # the first round warms up
                found.append(http_rate / grpc_rate)
                print(f"gRPC {grpc_rate:.1f} calls/s, HTTP {http_rate:.1f} calls/s", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path, help="directory of the bundle")
    parser.add_argument(
        "--source", type=Path, required=True, help="text to translate, a sentence a line"
    )
    parser.add_argument("--calls", type=int, default=256, help="calls in a round (%(default)s)")
    parser.add_argument("--concurrent", type=int, default=64, help="at a time (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: %(default)s)")
    arguments = parser.parse_args()
    machine.warn_if_busy(machine.describe())
    texts = list(islice(read_lines(arguments.source), arguments.calls))
    with tempfile.TemporaryDirectory() as directory:
        flags = ("--http", f"127.0.0.1:{HTTP_PORT}")
        with dragoman_server(arguments.bundle, Path(directory) / "log", *flags) as server:
            found = asyncio.run(
                compare(server.address, texts, arguments.concurrent, arguments.rounds)
            )
    median = statistics.median(found)
    print(f"HTTP is {median:.2f} times as fast ({min(found):.2f} to {max(found):.2f})")
    sys.exit(median < MIN_RATIO)


if __name__ == "__main__":
    main()
