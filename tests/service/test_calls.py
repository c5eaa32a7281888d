"""The way into the service without any protocol: who may come, how long, and how it ends."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_server.service.auth import Client, Keys, key_in
from dragoman_server.service.calls import Arrival, Call, Calls, Phase, request_id
from dragoman_server.service.errors import (
    CallError,
    ExpiredError,
    InternalError,
    InvalidArgumentError,
    OverloadedError,
    UnauthenticatedError,
    UnavailableError,
)
from dragoman_server.service.settings import Limits
from dragoman_server.service.telemetry.metrics import Metrics

KEY = "alice-0123456789abcdef"


class Door:
    """The calls of a server, and how many bytes of whom are still to be sent."""

    def __init__(self, *, keys: Keys | None = None, **limits: Any) -> None:
        self.calls = Calls(Limits(**limits), keys, Metrics(CollectorRegistry()))
        self.calls.turn(Phase.SERVING)
        self.leaving: list[Callable[[], None]] = []

    def arrival(self, **more: Any) -> Arrival:
        return Arrival(
            **{
                "rpc": "Translate",
                "request_id": "id-1",
                "key": "",
                "address": "here",
                "timeout": None,
                "is_stream": False,
                "when_sent": self.leaving.append,
                **more,
            }
        )

    async def call(
        self, handler: Callable[[Call], Awaitable[object]], **more: Any
    ) -> Call | CallError:
        try:
            async with self.calls.taken(self.arrival(**more)) as call:
                await handler(call)
        except CallError as error:
            return error
        return call

    def counted(self, code: str) -> float:
        labels = {"rpc": "Translate", "code": code}
        return self.calls._metrics.registry.get_sample_value("dragoman_requests_total", labels) or 0


async def nothing(call: Call) -> None:
    pass


def raising(error: BaseException) -> Callable[[Call], Awaitable[None]]:
    async def handler(call: Call) -> None:
        raise error

    return handler


def test_a_call_has_its_place_until_the_last_byte_was_sent() -> None:
    async def scenario() -> None:
        door = Door(max_calls=1)
        assert isinstance(await door.call(nothing), Call)
        assert door.calls.under_way == 1
        assert isinstance(await door.call(nothing), OverloadedError)
        door.leaving.pop()()
        assert door.calls.under_way == 0
        await door.calls.wait_until_idle()
        assert isinstance(await door.call(nothing), Call)

    asyncio.run(scenario())


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.SERVING])
def test_a_server_that_does_not_serve_says_in_which_phase_it_is(phase: Phase) -> None:
    async def scenario() -> None:
        door = Door()
        door.calls.turn(phase)
        found = await door.call(nothing)
        assert isinstance(found, UnavailableError)
        assert found.reason == phase.value
        assert not door.leaving, "it has no place"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("authorization", "reason"),
    [("", "NO_KEY"), (KEY, "NO_KEY"), (f"Basic {KEY}", "NO_KEY"), ("Bearer other", "WRONG_KEY")],
)
def test_a_key_is_asked_for(authorization: str, reason: str) -> None:
    async def scenario() -> None:
        door = Door(keys=Keys([(KEY.encode(), Client("alice"))]))
        found = await door.call(nothing, key=key_in(authorization))
        assert isinstance(found, UnauthenticatedError)
        assert found.reason == reason
        known = await door.call(nothing, key=key_in(f"bearer {KEY}"))
        assert isinstance(known, Call)
        assert known.facts["client"] == known.client.name == "alice"

    asyncio.run(scenario())


def test_whatever_a_handler_raises_the_call_is_counted_once() -> None:
    async def scenario() -> None:
        door = Door()
        assert isinstance(await door.call(nothing), Call)
        wrong = InvalidArgumentError("text", "is wrong")
        assert await door.call(raising(wrong)) is wrong
        assert isinstance(await door.call(raising(KeyError("a user's text"))), InternalError)
        with pytest.raises(asyncio.CancelledError):
            await door.call(raising(asyncio.CancelledError()))
        for code in ("OK", "INVALID_ARGUMENT", "INTERNAL", "CANCELLED"):
            assert door.counted(code) == 1

    asyncio.run(scenario())


def test_a_deadline_is_the_clients_or_the_servers_and_ends_the_handler() -> None:
    async def scenario() -> None:
        door = Door(max_deadline=100)
        own = await door.call(nothing, timeout=5.0)
        assert isinstance(own, Call)
        assert own.deadline == own.began + 5
        longer = await door.call(nothing, timeout=1000.0)
        assert isinstance(longer, Call)
        assert longer.deadline == longer.began + 100
        endless = await door.call(nothing, has_end=False)
        assert isinstance(endless, Call)
        assert endless.deadline == math.inf

        async def for_ever(call: Call) -> None:
            await asyncio.Event().wait()

        assert isinstance(await door.call(for_ever, timeout=0.01), ExpiredError)

    asyncio.run(scenario())


def test_an_id_that_is_fit_for_a_log_is_kept() -> None:
    assert request_id("my-id_1.2") == "my-id_1.2"
    for unfit in ("", "a b", "x" * 65, "line\nbreak"):
        assert request_id(unfit) not in ("", unfit)
