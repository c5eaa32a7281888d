"""``translate_many``: order, window, errors in their places, and servers that go and come back."""

import asyncio
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Any

import pytest

from dragoman_client import (
    AsyncClient,
    CallError,
    Client,
    InvalidRequestError,
    NotFoundError,
    Options,
    Retries,
    Translation,
    UnavailableError,
)
from support.client_servers import sentences
from support.service_process import SMALL, started
from support.service_running import PATIENCE, Running, wait_until

PATIENT = Retries(first_delay=0.05, max_delay=0.3, outage=60.0)
WINDOW = 16


def plain(address: str, texts: Any, **more: Any) -> list[Translation | CallError]:
    with Client(address, retries=PATIENT) as client:
        return list(client.translate_many(texts, **more))


def with_a_loop(address: str, texts: Any, **more: Any) -> list[Translation | CallError]:
    async def run() -> list[Translation | CallError]:
        async with AsyncClient(address, retries=PATIENT) as client:
            return [each async for each in client.translate_many(texts, **more)]

    return asyncio.run(run())


@pytest.fixture(params=[plain, with_a_loop])
def many(request: pytest.FixtureRequest) -> Any:
    """The results of either client, as a list."""
    return request.param


def texts_of(results: list[Translation | CallError]) -> list[str]:
    assert all(isinstance(each, Translation) for each in results), results
    return [each.text for each in results if isinstance(each, Translation)]


def test_any_iterable_in_its_order(many: Any, running: Running) -> None:
    address, texts = running.server.address, sentences(40)
    with Client(address) as client:
        expected = [each.text for each in client.translate_batch(texts)]
    assert texts_of(many(address, texts)) == expected
    assert texts_of(many(address, iter(texts), window=1)) == expected
    assert texts_of(many(address, (each for each in texts), window=7)) == expected
    assert many(address, []) == []


def test_an_async_iterable_too(running: Running) -> None:
    async def texts() -> AsyncIterator[str]:
        for text in ("Hello.", "Good night."):
            await asyncio.sleep(0)
            yield text

    async def run() -> list[Translation | CallError]:
        async with AsyncClient(running.server.address) as client:
            return [each async for each in client.translate_many(texts())]

    assert texts_of(asyncio.run(run())) == ["Olá.", "Boa noite."]


def test_an_item_that_fails_keeps_its_place_and_the_others_go_on(
    many: Any, running: Running
) -> None:
    """A sentence too long, half a character, and more than gRPC takes, which ends a stream."""
    huge = "x" * (4_400_000)
    large = "x" * (4 * 1024 * 1024)
    texts = ["Hello.", "word " * 400, "half: \ud83d", huge, "Hello.", large, huge, "Hello."]
    results = many(running.server.address, texts, options=Options(overlong="error"))
    kinds = [type(each) for each in results]
    wrong = InvalidRequestError
    assert kinds == [Translation, wrong, wrong, wrong, Translation, wrong, wrong, Translation]
    reasons = [each.reason for each in results if isinstance(each, CallError)]
    assert reasons == ["SENTENCE_TOO_LONG", "INVALID_UTF8", *["TOO_LARGE"] * 3]
    assert all(each.field == "text" for each in results if isinstance(each, CallError))


def test_what_is_wrong_with_all_items_is_said_of_each(many: Any, running: Running) -> None:
    results = many(running.server.address, ["Hello."] * 3, model="nobody")
    assert [type(each) for each in results] == [NotFoundError] * 3


class BrokenError(Exception):
    pass


def test_an_exception_of_the_iterable_comes_out_after_what_was_read(running: Running) -> None:
    def texts() -> Iterator[str]:
        yield "Hello."
        yield "Good night."
        raise BrokenError

    with Client(running.server.address) as client:
        results = client.translate_many(texts())
        assert texts_of([next(results), next(results)]) == ["Olá.", "Boa noite."]
        with pytest.raises(BrokenError):
            next(results)
    with Client(running.server.address) as client, pytest.raises(TypeError, match="int"):
        list(client.translate_many(["Hello.", 7]))  # type: ignore[list-item]


def test_the_same_with_an_event_loop(running: Running) -> None:
    async def texts() -> AsyncIterator[str]:
        yield "Hello."
        raise BrokenError

    async def run() -> None:
        async with AsyncClient(running.server.address) as client:
            results = client.translate_many(texts())
            assert texts_of([await anext(results)]) == ["Olá."]
            with pytest.raises(BrokenError):
                await anext(results)
            results = client.translate_many(["Hello.", 7])  # type: ignore[list-item]
            assert texts_of([await anext(results)]) == ["Olá."]
            with pytest.raises(TypeError, match="int"):
                await anext(results)

    asyncio.run(run())


class Counted:
    """More texts than anybody takes; how far they were read is known."""

    def __init__(self) -> None:
        self.read = 0

    def __iter__(self) -> Iterator[str]:
        for number in range(2000):
            self.read = number + 1
            yield "Hello."


def test_a_slow_reader_of_results_stops_the_reading_of_texts(running: Running) -> None:
    texts = Counted()
    with Client(running.server.address) as client:
        results = client.translate_many(texts, window=WINDOW)
        for taken in range(1, 101):
            assert isinstance(next(results), Translation)
            assert texts.read <= taken + WINDOW + 1
        wait_until(lambda: texts.read >= 100 + WINDOW - 1, "texts to be read ahead")
        wait_until(lambda: not running.engine.used_rows, "the last row")
        assert texts.read <= 100 + WINDOW + 1  # though nothing is left to do but to wait
        results.close()
    running.wait_until_idle()


def test_a_slow_reader_with_an_event_loop_stops_it_too(running: Running) -> None:
    texts = Counted()

    async def run() -> None:
        async with AsyncClient(running.server.address) as client:
            many = client.translate_many(texts, window=WINDOW)
            async with aclosing(many) as results:
                for taken in range(1, 101):
                    assert isinstance(await anext(results), Translation)
                    assert texts.read <= taken + WINDOW + 1
                until = time.monotonic() + PATIENCE
                while running.engine.used_rows:
                    assert time.monotonic() < until
                    await asyncio.sleep(0.01)
                assert texts.read <= 100 + WINDOW + 1

    asyncio.run(run())
    running.wait_until_idle()


def test_a_result_is_handed_on_before_the_next_text_is_there(running: Running) -> None:
    """As in a conversation: each answer is waited for before the next line is typed."""
    lines: queue.Queue[str | None] = queue.Queue()
    with Client(running.server.address) as client:
        results = client.translate_many(iter(lines.get, None))
        for line, answer in (("Hello.", "Olá."), ("Good night.", "Boa noite.")):
            lines.put(line)
            assert texts_of([next(results)]) == [answer]
        lines.put(None)
        assert list(results) == []


def test_the_same_conversation_with_an_event_loop(running: Running) -> None:
    async def run() -> None:
        lines: asyncio.Queue[str] = asyncio.Queue()

        async def texts() -> AsyncIterator[str]:
            while line := await lines.get():
                yield line

        async with AsyncClient(running.server.address) as client:
            results = client.translate_many(texts())
            for line, answer in (("Hello.", "Olá."), ("Good night.", "Boa noite.")):
                lines.put_nowait(line)
                assert texts_of([await anext(results)]) == [answer]
            lines.put_nowait("")
            assert [each async for each in results] == []

    asyncio.run(run())


def test_results_that_are_not_read_to_the_end_leave_nothing_behind(running: Running) -> None:
    def feeders() -> list[str]:
        return [each.name for each in threading.enumerate() if each.name == "dragoman-feed"]

    with Client(running.server.address) as client:
        for _ in range(3):
            next(client.translate_many(Counted()))
    wait_until(lambda: not feeders(), "the end of what reads texts")
    running.wait_until_idle()


@pytest.mark.parametrize("closes", [True, False])
def test_a_program_ends_though_its_texts_never_do(running: Running, closes: bool) -> None:
    """The thread that waits for the next text does not keep the program."""
    script = f"""
import sys, threading
from dragoman_client import Client
def texts():
    yield "Hello."
    threading.Event().wait()
client = Client({running.server.address!r})
results = client.translate_many(texts())
print(next(results).text)
if {closes}:
    results.close()
    client.close()
"""
    command = [sys.executable, "-W", "error", "-c", script]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (run.returncode, run.stdout, run.stderr) == (0, "Olá.\n", "")


def test_a_server_that_was_never_there_is_not_waited_for_long(many: Any) -> None:
    began = time.monotonic()
    with pytest.raises(UnavailableError):
        many("127.0.0.1:1", ["Hello."])
    assert time.monotonic() - began < 10.0


def numbered(count: int) -> Iterator[str]:
    """What comes back as it was, so that each answer names its question."""
    for number in range(count):
        yield f"https://example.org/{number}"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_is_restarted_loses_nothing_and_repeats_nothing(
    tmp_path: Path, number: int
) -> None:
    """Under both clients at a time, each in the midst of its texts."""
    count = 400
    midway = [threading.Event(), threading.Event()]

    def texts(event: threading.Event) -> Iterator[str]:
        for each, text in enumerate(numbered(count)):
            if each == count // 2:
                event.set()
            yield text

    with ThreadPoolExecutor(2) as threads, ExitStack() as servers:
        first = servers.enter_context(started(tmp_path, *SMALL))
        found = [
            threads.submit(many, first.address, texts(event), window=WINDOW)
            for many, event in zip((plain, with_a_loop), midway, strict=True)
        ]
        assert all(event.wait(PATIENCE) for event in midway)
        first.signal(number)
        first.wait()
        servers.enter_context(started(tmp_path, *SMALL, "--listen", first.address))
        for each in found:
            assert texts_of(each.result(PATIENCE)) == list(numbered(count))
