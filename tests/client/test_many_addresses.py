"""``translate_many`` over several addresses: they share the work, and one that dies is replaced."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from grpc import StatusCode

from dragoman_client import (
    AsyncClient,
    AuthenticationError,
    CallError,
    Client,
    Retries,
    Translation,
    UnavailableError,
)
from support.client_servers import Scripted, listening, nobody, status
from support.service_process import SMALL, started

QUICK = Retries(first_delay=0.01, max_delay=0.1, outage=1.0)
PATIENT = Retries(first_delay=0.05, max_delay=0.3, outage=60.0)
ENOUGH = 50_000
"""Texts after which a server that got none will get none."""

Watch = Callable[[int], None]
"""Told how many results there were."""
Many = Callable[[Sequence[str], Iterable[str], Retries, Watch], list[str]]


def nothing(count: int) -> None:
    pass


def plain(
    addresses: Sequence[str], texts: Iterable[str], retries: Retries, watch: Watch = nothing
) -> list[str]:
    found = []
    with Client(*addresses, retries=retries) as client:
        for each in client.translate_many(texts):
            found.append(text_of(each))
            watch(len(found))
    return found


def with_a_loop(
    addresses: Sequence[str], texts: Iterable[str], retries: Retries, watch: Watch = nothing
) -> list[str]:
    async def run() -> list[str]:
        found = []
        async with AsyncClient(*addresses, retries=retries) as client:
            async for each in client.translate_many(texts):
                found.append(text_of(each))
                watch(len(found))
        return found

    return asyncio.run(run())


def text_of(result: Translation | CallError) -> str:
    assert isinstance(result, Translation), result
    return result.text


both = pytest.mark.parametrize("many", [plain, with_a_loop])


class Counting(Scripted):
    """A peer that counts the texts that it answers, and can be told to go away."""

    def __init__(self, *statuses: Status) -> None:
        super().__init__(*statuses)
        self.texts = 0
        self.is_to_go = threading.Event()

    def TranslateBulk(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        for response in super().TranslateBulk(requests, context):
            if self.is_to_go.is_set():
                self._end(context, status(StatusCode.UNAVAILABLE, reason="DRAINING"))
            self.texts += 1
            yield response


def numbered(count: int) -> Iterator[str]:
    for number in range(count):
        yield f"https://example.org/{number}"


@both
def test_all_addresses_get_texts(many: Many) -> None:
    peers = [Counting(), Counting(), Counting()]
    sent: list[str] = []

    def texts() -> Iterator[str]:
        for text in numbered(ENOUGH):
            if all(peer.texts for peer in peers):
                return
            sent.append(text)
            yield text

    with ExitStack() as stack:
        addresses = [stack.enter_context(listening(peer)) for peer in peers]
        assert many(addresses, texts(), QUICK, nothing) == sent
    assert all(peer.texts for peer in peers), [peer.texts for peer in peers]


@both
def test_one_that_goes_away_leaves_its_texts_to_the_other(many: Many) -> None:
    stays, goes = Counting(), Counting()
    sent: list[str] = []

    def texts() -> Iterator[str]:
        after = 100
        for text in numbered(ENOUGH):
            if goes.texts:
                goes.is_to_go.set()
                after -= 1
            if not after:
                return
            sent.append(text)
            yield text

    with listening(goes) as one, listening(stays) as other:
        assert many([one, other], texts(), QUICK, nothing) == sent
    assert goes.is_to_go.is_set()
    assert stays.texts + goes.texts == len(sent)


@both
def test_one_that_was_never_there_is_left_out_and_all_of_them_are_an_error(
    many: Many,
) -> None:
    with nobody() as dead, nobody() as gone:
        with listening(Counting()) as alive:
            assert many([dead, alive, gone], numbered(300), QUICK, nothing) == list(numbered(300))
        with pytest.raises(UnavailableError):
            many([dead, gone], numbered(300), QUICK, nothing)


@both
def test_a_key_that_one_of_them_does_not_know_is_an_error(many: Many) -> None:
    """And not passed over: half of the servers would do nothing, in silence."""
    # At every call, as a server does: where a stream ends while the client writes to it, gRPC's
    # asyncio client may give its own error instead of the server's, and the call is tried again.
    wrong = Counting(*[status(StatusCode.UNAUTHENTICATED, reason="WRONG_KEY")] * 1000)
    with (
        listening(wrong) as one,
        listening(Counting()) as other,
        pytest.raises(AuthenticationError),
    ):
        many([one, other], numbered(ENOUGH), QUICK, nothing)


@both
def test_a_real_server_that_dies_midway_loses_nothing(many: Many, tmp_path: Path) -> None:
    count = 400
    with ExitStack() as servers:
        goes, stays = (
            servers.enter_context(started(directory, *SMALL))
            for directory in (tmp_path, tmp_path_of(tmp_path, "other"))
        )

        def watch(results: int) -> None:
            if results == count // 4:
                goes.signal(signal.SIGKILL)

        found = many([goes.address, stays.address], numbered(count), PATIENT, watch)
        assert found == list(numbered(count))
        assert goes.wait() == -signal.SIGKILL


def tmp_path_of(directory: Path, name: str) -> Path:
    (directory / name).mkdir()
    return directory / name
