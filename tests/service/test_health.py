"""Health and reflection: what others' tools ask, before and while and after the server serves."""

import asyncio
import queue
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from dragoman_server.grpc_api.health import Health
from dragoman_server.grpc_api.listener import GrpcListener
from support.service_running import (
    PATIENCE,
    Running,
    few_rows,
    full,
    serving,
    settings_for,
    wait_until,
)

Response = health_pb2.HealthCheckResponse
SERVICE = "dragoman.v1.TranslationService"


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving(settings_for(engine=few_rows(2))) as running:
        yield running


class Watcher:
    """Reads a Watch in a thread."""

    def __init__(self, running: Running, service: str = "") -> None:
        request = health_pb2.HealthCheckRequest(service=service)
        self._call = running.health.Watch(request, timeout=PATIENCE)
        self._seen: queue.Queue[int] = queue.Queue()
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        try:
            for response in self._call:
                self._seen.put(response.status)
        except grpc.RpcError:
            pass

    def next(self) -> int:
        return self._seen.get(timeout=PATIENCE)

    @property
    def is_quiet(self) -> bool:
        return self._seen.empty()

    def leave(self) -> None:
        self._call.cancel()
        self.thread.join(PATIENCE)


@pytest.mark.parametrize("service", ["", SERVICE])
def test_the_server_and_its_service_are_serving(running: Running, service: str) -> None:
    request = health_pb2.HealthCheckRequest(service=service)
    assert running.health.Check(request).status == Response.SERVING
    watcher = Watcher(running, service)
    assert watcher.next() == Response.SERVING
    watcher.leave()


def test_health_of_an_unknown_service_is_as_the_protocol_has_it(running: Running) -> None:
    request = health_pb2.HealthCheckRequest(service="elsewhere")
    with pytest.raises(grpc.RpcError) as error:
        running.health.Check(request)
    assert error.value.code() is grpc.StatusCode.NOT_FOUND
    watcher = Watcher(running, "elsewhere")
    assert watcher.next() == Response.SERVICE_UNKNOWN
    watcher.leave()


def test_health_does_not_wait_for_inference(running: Running) -> None:
    with full(running) as holding:
        for _ in range(10):
            assert running.is_healthy()
    assert all(call.result(PATIENCE) for call in holding)


def test_a_watcher_that_leaves_does_not_disturb_the_others() -> None:
    with serving(settings_for(engine=few_rows(2))) as running:
        with full(running) as holding:
            watchers = [Watcher(running, service) for service in ("", SERVICE, "", "elsewhere")]
            assert [watcher.next() for watcher in watchers] == [
                *(Response.SERVING, Response.SERVING, Response.SERVING, Response.SERVICE_UNKNOWN)
            ]
            watchers[0].leave()
            late = Watcher(running)
            assert late.next() == Response.SERVING
            running.stop()
            assert {watcher.next() for watcher in (*watchers[1:3], late)} == {Response.NOT_SERVING}
            assert not running.is_healthy()
            assert watchers[3].is_quiet, "there is nothing new of a service that there is not"
        assert all(call.result(PATIENCE) for call in holding)
        for watcher in (*watchers[1:], late):
            watcher.thread.join(PATIENCE)  # ended by the server
            assert not watcher.thread.is_alive()
            assert watcher.is_quiet


def test_a_watcher_that_was_slow_is_told_the_newest() -> None:
    """What changed while it was being written to is not lost to it."""

    async def watch() -> list[int]:
        health = Health((SERVICE,))
        watching = health.Watch(health_pb2.HealthCheckRequest(), None)
        seen = [(await anext(watching)).status]
        health.set(serving=True)
        async with asyncio.timeout(PATIENCE):
            seen.append((await anext(watching)).status)
        return seen

    assert asyncio.run(watch()) == [Response.NOT_SERVING, Response.SERVING]


def test_watchers_leave_nothing_behind(running: Running) -> None:
    (listener,) = running.server.listeners
    assert isinstance(listener, GrpcListener)
    changed = listener.health._changed
    for _ in range(20):
        watcher = Watcher(running)
        assert watcher.next() == Response.SERVING
        watcher.leave()
    wait_until(lambda: not running.on_loop(lambda: len(changed._waiters)))


def test_a_client_built_from_reflection_alone_translates(running: Running) -> None:
    """Without our stubs: names, fields and types all come from the server."""
    database = ProtoReflectionDescriptorDatabase(running.channel)
    assert set(database.get_services()) == {
        *(SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection")
    }
    pool = descriptor_pool.DescriptorPool(database)
    service = pool.FindServiceByName(SERVICE)

    def call(name: str, fields: dict[str, Any]) -> list[dict[str, Any]]:
        method = service.methods_by_name[name]
        asked = message_factory.GetMessageClass(method.input_type)
        answered = message_factory.GetMessageClass(method.output_type)
        kind = "unary_stream" if method.server_streaming else "unary_unary"
        function = getattr(running.channel, kind)(
            f"/{SERVICE}/{name}",
            request_serializer=asked.SerializeToString,
            response_deserializer=answered.FromString,
        )
        request = json_format.ParseDict(fields, asked())
        found = function(request, timeout=PATIENCE)
        messages = list(found) if method.server_streaming else [found]
        return [json_format.MessageToDict(message) for message in messages]

    ((model,),) = (answer["models"] for answer in call("ListModels", {}))
    languages = {
        "sourceLanguage": model["sourceLanguage"],
        "targetLanguage": model["targetLanguage"],
    }
    (answer,) = call(
        "Translate", {"texts": ["Good morning."], **languages, "options": {"beamSize": 1}}
    )
    (expected,) = running.translate("Good morning.")
    assert answer["translations"][0]["text"] == expected.text
    *deltas, last = call("TranslateStream", {"text": "Good morning.", **languages})
    assert "".join(event["delta"] for event in deltas) == last["translation"]["text"]
    assert last["translation"]["text"] == expected.text
