"""When a call is tried again, after how long, and where; and what every status becomes."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.rpc.status_pb2 import Status
from grpc import StatusCode

import dragoman_client
from dragoman_client import (
    AsyncClient,
    CallError,
    Client,
    ConfigurationError,
    DragomanError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    Retries,
    ServerError,
    TimedOutError,
    UnavailableError,
)
from dragoman_client._errors import BY_CODE
from dragoman_client._retries import Interruptions
from dragoman_client._statuses import from_rpc_error, from_status
from support.client_servers import Scripted, listening, nobody, status

QUICK = Retries(first_delay=0.001, max_delay=0.002)
FULL = status(StatusCode.RESOURCE_EXHAUSTED, reason="QUEUE_FULL", retry_after=0.2)
DRAINING = status(StatusCode.UNAVAILABLE, reason="DRAINING", retry_after=0.0)
LOST = status(StatusCode.INTERNAL, reason="INTERNAL")

Call = Callable[..., str]


def call(address: str, **settings: Any) -> str:
    with Client(address, **settings) as client:
        return client.translate("Hello.").text


def call_async(address: str, **settings: Any) -> str:
    async def run() -> str:
        async with AsyncClient(address, **settings) as client:
            return (await client.translate("Hello.")).text

    return asyncio.run(run())


both = pytest.mark.parametrize("translate", [call, call_async])


def test_every_status_but_ok_becomes_an_exception() -> None:
    assert set(BY_CODE) == set(dragoman_client.StatusCode)
    codes = {(code.name, code.value) for code in dragoman_client.StatusCode}
    assert codes == {(code.name, code.value[0]) for code in StatusCode} - {("OK", 0)}
    exceptions = {
        value
        for name in dragoman_client.__all__
        if isinstance(value := getattr(dragoman_client, name), type)
        and issubclass(value, CallError)
    }
    assert set(BY_CODE.values()) == exceptions - {CallError}
    assert all(issubclass(each, DragomanError) for each in exceptions)


@pytest.mark.parametrize("code", list(StatusCode)[1:])
def test_a_status_over_the_wire_has_all_its_fields(code: StatusCode) -> None:
    said = status(code, reason="WHY", field="text", retry_after=1.25)
    with listening(Scripted(said)) as address, pytest.raises(CallError) as raised:
        call(address, retries=Retries(attempts=1))
    error = raised.value
    assert type(error) is BY_CODE[dragoman_client.StatusCode[code.name]]
    assert (error.code.name, error.reason, error.field) == (code.name, "WHY", "text")
    assert (error.retry_after, error.request_id) == (1.25, "id-7")
    assert str(error) == error.message == "so it is"


@pytest.mark.parametrize("number", [0, 17, 99, -1])
def test_a_status_that_gRPC_does_not_have_is_the_servers_fault(number: int) -> None:
    error = from_status(Status(code=number))
    assert type(error) is ServerError
    assert error.message


class Raised:
    """As gRPC raises it."""

    def __init__(self, code: StatusCode, text: str, *metadata: tuple[str, str | bytes]) -> None:
        self.code, self.details = lambda: code, lambda: text
        self.trailing_metadata = lambda: metadata


def test_details_that_are_none_do_not_hide_the_status() -> None:
    garbage = ("grpc-status-details-bin", b"\xff\xff\xff")
    error = from_rpc_error(Raised(StatusCode.NOT_FOUND, "no", garbage, ("x-request-id", "id-9")))
    assert (type(error), error.message, error.request_id) == (NotFoundError, "no", "id-9")
    well = ("grpc-status-details-bin", Status(code=0).SerializeToString())
    assert type(from_rpc_error(Raised(StatusCode.NOT_FOUND, "no", well))) is NotFoundError


@both
def test_a_full_server_is_asked_again_when_it_said(translate: Call) -> None:
    peer = Scripted(FULL, FULL)
    with listening(peer) as address:
        began = time.monotonic()
        assert translate(address, retries=QUICK) == "Hello."
        assert time.monotonic() - began >= 0.4
    assert peer.calls == 3
    assert len({each["x-request-id"] for each in peer.metadata}) == 3


@both
def test_a_server_that_says_when_is_not_asked_where_the_deadline_is_before_that(
    translate: Call,
) -> None:
    peer = Scripted(status(StatusCode.UNAVAILABLE, reason="STARTING", retry_after=30.0))
    with listening(peer) as address:
        began = time.monotonic()
        with pytest.raises(UnavailableError) as raised:
            translate(address, timeout=10.0)
        assert time.monotonic() - began < 8.0
    assert (peer.calls, raised.value.retry_after) == (1, 30.0)


@both
@pytest.mark.parametrize(
    "code",
    sorted(
        set(StatusCode) - {StatusCode.OK, StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED},
        key=str,
    ),
)
def test_what_a_retry_does_not_mend_is_not_tried_again(translate: Call, code: StatusCode) -> None:
    peer = Scripted(status(code, retry_after=0.0))
    with listening(peer) as address, pytest.raises(BY_CODE[dragoman_client.StatusCode[code.name]]):
        translate(address, retries=QUICK)
    assert peer.calls == 1


@both
def test_attempts_have_an_end(translate: Call) -> None:
    peer = Scripted(*[DRAINING] * 9)
    with listening(peer) as address, pytest.raises(UnavailableError):
        translate(address, retries=Retries(attempts=4, first_delay=0.001, max_delay=0.002))
    assert peer.calls == 4


@both
def test_without_retry_info_a_full_peer_is_not_asked_again(translate: Call) -> None:
    peer = Scripted(status(StatusCode.RESOURCE_EXHAUSTED))
    with listening(peer) as address, pytest.raises(OverloadedError):
        translate(address, retries=QUICK)
    assert peer.calls == 1


@both
def test_a_timeout_ends_a_call(translate: Call) -> None:
    class Slow(Scripted):
        def Translate(self, request: Any, context: Any) -> Any:
            while context.is_active():
                time.sleep(0.01)

    with listening(Slow()) as address, pytest.raises(TimedOutError):
        translate(address, timeout=0.3)


def test_delays_are_jittered_between_half_and_all_of_a_doubling_step() -> None:
    retries = Retries(attempts=20, first_delay=0.1, max_delay=1.0)
    error = UnavailableError("")
    for attempt, step in [(1, 0.1), (2, 0.2), (4, 0.8), (5, 1.0), (19, 1.0)]:
        delays = [retries.delay(error, attempt, 1e9) or 0.0 for _ in range(300)]
        assert step / 2 <= min(delays) < 0.6 * step
        assert 0.9 * step < max(delays) <= step
    said = OverloadedError("", retry_after=3.0)
    assert all(3.05 <= (retries.delay(said, 1, 1e9) or 0) <= 3.1 for _ in range(100))
    assert retries.delay(error, 20, 1e9) is None
    assert retries.delay(error, 1, 0.04) is None


def test_an_outage_is_waited_out_by_time_where_a_server_was_there() -> None:
    retries = Retries(attempts=2, first_delay=0.1, max_delay=1.0, outage=30.0)
    error = UnavailableError("")
    unknown = Interruptions(retries)
    assert unknown.delay(error, 0.0) is not None
    assert unknown.delay(error, 0.1) is None  # its attempts are used up
    known = Interruptions(retries)
    known.answered()
    delays = [known.delay(error, float(now)) for now in range(1000, 1029)]
    assert all(delay is not None and delay <= 1.0 for delay in delays)
    assert known.delay(error, 1030.0) is None
    known.answered()
    assert known.delay(error, 5000.0) is not None
    assert Interruptions(Retries(attempts=1)).delay(DRAINED, 0.0) is None


DRAINED = UnavailableError("", reason="DRAINING")


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"first_delay": 0.0}, {"first_delay": 11.0}, {"outage": -1.0}]
)
def test_settings_of_retries_are_checked(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ConfigurationError, match=name):
        Retries(**wrong)


def test_addresses_are_used_in_turns() -> None:
    first, second = Scripted(), Scripted()
    with listening(first) as one, listening(second) as other, Client(one, other) as client:
        for _ in range(6):
            client.translate("Hello.")
    assert (first.calls, second.calls) == (3, 3)


def test_a_dead_address_is_passed_over() -> None:
    peer = Scripted()
    with nobody() as dead, listening(peer) as alive, Client(dead, alive, retries=QUICK) as client:
        for _ in range(4):
            assert client.translate("Hello.").text == "Hello."
        texts = [f"text {number}" for number in range(20)]
        many = client.translate_many(texts)
        assert [each.text for each in many if not isinstance(each, CallError)] == texts
    assert peer.calls == 5


def test_a_dead_address_is_passed_over_with_an_event_loop() -> None:
    async def run() -> list[str]:
        async with AsyncClient(dead, alive, retries=QUICK) as client:
            many = client.translate_many(texts)
            return [each.text async for each in many if not isinstance(each, CallError)]

    texts = [f"text {number}" for number in range(20)]
    with nobody() as dead, listening(Scripted()) as alive:
        assert asyncio.run(run()) == texts


def test_a_stream_is_tried_again_before_its_first_piece_only() -> None:
    peer = Scripted(DRAINING, None)
    with listening(peer) as address, Client(address, retries=QUICK) as client:
        assert "".join(client.stream("Hello.")) == "piece "
    assert peer.calls == 2
    peer = Scripted(None, DRAINING)
    with listening(peer) as address, Client(address, retries=QUICK) as client:
        pieces = client.stream("Hello.")
        assert next(pieces) == "piece "
        with pytest.raises(UnavailableError):
            next(pieces)
    assert peer.calls == 1


def test_the_same_with_an_event_loop() -> None:
    async def run(address: str) -> list[str]:
        found = []
        async with AsyncClient(address, retries=QUICK) as client:
            try:
                async for piece in client.stream("Hello."):
                    found.append(piece)  # noqa: PERF401 - what came before the error counts
            except UnavailableError:
                found.append("lost")
        return found

    peer = Scripted(DRAINING, None)
    with listening(peer) as address:
        assert asyncio.run(run(address)) == ["piece "]
    peer = Scripted(None, DRAINING)
    with listening(peer) as address:
        assert asyncio.run(run(address)) == ["piece ", "lost"]
    assert peer.calls == 1


def test_a_server_that_comes_back_is_found_soon() -> None:
    """And not after gRPC's own back-off, which would be minutes after a long absence."""
    with nobody() as address, Client(address, retries=Retries(attempts=1)) as client:
        until = time.monotonic() + 4.0
        while time.monotonic() < until:
            with pytest.raises(UnavailableError):
                client.translate("Hello.")
            time.sleep(0.1)  # so that the channel tries, again and again
        returned = address
    with listening(Scripted(), returned), Client(returned, retries=Retries(attempts=1)) as client:
        client.translate("Hello.", timeout=5.0)


def test_a_message_that_gRPC_refuses_is_no_full_server() -> None:
    with (
        listening(Scripted()) as address,
        Client(address) as client,
        pytest.raises(InvalidRequestError) as raised,
    ):
        client.translate("x" * (5 << 20))
    assert raised.value.reason == "TOO_LARGE"
    assert raised.value.code is dragoman_client.StatusCode.RESOURCE_EXHAUSTED


def test_an_exception_can_be_told_from_grpcs_own() -> None:
    assert not issubclass(CallError, grpc.RpcError)
    assert issubclass(ConfigurationError, ValueError)
