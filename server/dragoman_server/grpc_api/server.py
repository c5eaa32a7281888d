"""The life of a server: bind, load, serve, drain, end.

It listens before its models are loaded, so that health can be asked for from the first moment.
"""

import asyncio
import logging
import ssl
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from prometheus_client import CollectorRegistry

from dragoman_server.errors import ServerError
from dragoman_server.grpc_api.calls import Calls, Phase
from dragoman_server.grpc_api.handlers import RPCS, SERVICE, Handlers
from dragoman_server.grpc_api.health import Health
from dragoman_server.service.auth import read_tokens
from dragoman_server.service.errors import UnavailableError, draining, engine_stopped
from dragoman_server.service.exposition import exposed
from dragoman_server.service.loading import load_models
from dragoman_server.service.metrics import Metrics
from dragoman_server.service.models import Models, ServedModel
from dragoman_server.service.settings import ServerSettings

log = logging.getLogger("dragoman.server")

_TICK = 0.25
"""Seconds between two looks at the engines."""
_FAREWELL = 1.0
"""Seconds for the last statuses to leave."""
_HEADROOM = 65_536
"""Bytes that gRPC lets pass beyond the limit of a message, so that our own refusal explains it."""

_SPARE_STREAMS = 128
"""Of a connection, beyond the calls of all."""

Announce = Callable[["Server"], None]


class Server:
    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.metrics = Metrics(RPCS, CollectorRegistry())
        self.models = Models()
        tokens = read_tokens(settings.tokens) if settings.tokens else None
        self.calls = Calls(settings.limits, tokens, self.metrics)
        self.health = Health((SERVICE,))
        self.address = ""
        self.metrics_address = ""
        self._stopping = asyncio.Event()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Let what is under way finish, and end. To be called on the event loop."""
        self._stopping.set()

    async def run(self, announce: Announce) -> int:
        """Serve until told to stop. Returns the exit code of the process.

        Not everything has ended then: a lane that hangs, or a model that is half loaded, is left to
        the end of the process.
        """
        asyncio.get_running_loop().set_exception_handler(_log_unhandled)
        server = self._grpc_server()
        with exposed(self.metrics, self.settings.metrics) as self.metrics_address:
            await server.start()
            try:
                return await self._serve(server, announce)
            finally:
                await server.stop(0)

    async def _serve(self, server: grpc.aio.Server, announce: Announce) -> int:
        loading = _in_thread(
            lambda loop: load_models(self.settings, self.models, self.metrics, loop)
        )
        await _first(loading, self._stopping.wait())
        if not loading.done():
            log.info("told to stop before the models were loaded")
            return 0
        await loading  # raises what it raised
        watching = asyncio.create_task(self._watch())
        try:
            self._turn(Phase.SERVING)
            announce(self)
            await _first(watching, self._stopping.wait())
            if not watching.done():
                await self._drain(watching)
            is_lost = watching.done()
        finally:
            watching.cancel()
        if is_lost:
            await watching  # raises what it raised
            self._turn(Phase.FAILED)
            await self._end_calls(server, engine_stopped)
            return 1
        await self._end_calls(server, draining)
        await self._close_engines()
        return 0

    def _turn(self, phase: Phase) -> None:
        self.calls.turn(phase)
        self.health.set(serving=phase is Phase.SERVING)
        self.metrics.ready.set(phase is Phase.SERVING)
        log.info("now %s", phase.value.lower())

    async def _drain(self, watching: asyncio.Future[None]) -> None:
        """Let what was admitted finish. New calls are refused with a status, not a closed port."""
        self._turn(Phase.DRAINING)
        began = time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.grace):
                await _first(watching, self.calls.wait_until_idle())
                await self.calls.wait_until_quiet(_FAREWELL)
        facts = {"seconds": round(time.monotonic() - began, 2), "cut_off": self.calls.under_way}
        log.info("the grace is over" if self.calls.under_way else "drained", extra={"facts": facts})

    async def _end_calls(
        self, server: grpc.aio.Server, why: Callable[[], UnavailableError]
    ) -> None:
        """Tell those who still wait, and let them hear it."""
        for model in self.models:
            model.dispatcher.fail(why)
        await server.stop(_FAREWELL)

    async def _close_engines(self) -> None:
        closing = [asyncio.to_thread(model.dispatcher.engine.close) for model in self.models]
        with suppress(TimeoutError):  # a lane may be in the middle of something long
            async with asyncio.timeout(_FAREWELL):
                await asyncio.gather(*closing)

    async def _watch(self) -> None:
        """Look after the engines and the loop itself. Ends when an engine is lost."""
        while not any([self._is_lost(model) for model in self.models]):  # noqa: C419 - log them all
            due = time.monotonic() + _TICK
            await asyncio.sleep(_TICK)
            self.metrics.loop_lag.observe(max(0.0, time.monotonic() - due))

    def _is_lost(self, model: ServedModel) -> bool:
        for lane in model.dispatcher.engine.status():
            stalled = lane.busy and lane.since_heartbeat > self.settings.stall
            if stalled or not lane.alive:
                log.critical(
                    "the engine of %s %s",
                    model.name,
                    "does not answer" if lane.alive else "has died",
                    extra={"facts": {"lane": lane.lane, "seconds": lane.since_heartbeat}},
                )
                return True
        return False

    def _grpc_server(self) -> grpc.aio.Server:
        settings = self.settings
        limit = settings.limits.max_message_bytes + _HEADROOM
        server = grpc.aio.server(
            options=[
                ("grpc.so_reuseport", 0),  # or a second server would share the port in silence
                ("grpc.max_receive_message_length", limit),
                ("grpc.max_send_message_length", -1),
                # Of a connection: above our own limits, so that a call beyond those is refused with
                # a status instead of waiting in its client, and health can always be asked for.
                ("grpc.max_concurrent_streams", settings.limits.max_calls + _SPARE_STREAMS),
                ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
                ("grpc.max_connection_age_ms", round(1000 * settings.connection_age)),
                ("grpc.keepalive_time_ms", 30_000),
                ("grpc.keepalive_timeout_ms", 20_000),
            ]
        )
        handlers = Handlers(self.models, self.calls)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers.by_name()),)
        )
        health_pb2_grpc.add_HealthServicer_to_server(self.health, server)
        reflection.enable_server_reflection(
            (
                SERVICE,
                health_pb2.DESCRIPTOR.services_by_name["Health"].full_name,
                reflection.SERVICE_NAME,
            ),
            server,
        )
        self.address = self._bind(server)
        return server

    def _bind(self, server: grpc.aio.Server) -> str:
        settings = self.settings
        credentials = self._credentials()
        try:
            if credentials:
                port = server.add_secure_port(settings.listen, credentials)
            else:
                port = server.add_insecure_port(settings.listen)
        except RuntimeError:
            raise ServerError(
                f"{settings.listen} can't be listened on: it is taken, or not of this machine"
            ) from None
        return f"{settings.listen.rpartition(':')[0]}:{port}"

    def _credentials(self) -> grpc.ServerCredentials | None:
        certificate, key = self.settings.tls_certificate, self.settings.tls_key
        if certificate is None or key is None:
            return None
        try:
            # gRPC says nothing of a key that is not the certificate's, and fails each handshake.
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
            return grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
        except (OSError, ssl.SSLError) as error:
            reason = getattr(error, "reason", None) or error.strerror
            raise ServerError(f"{certificate} and {key} are no use for TLS: {reason}") from None


def _log_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """In place of asyncio's own, which also says what was at hand: maybe a user's text."""
    log.error("something failed on the event loop", exc_info=context.get("exception"))


async def _first(*awaited: Coroutine[Any, Any, object] | asyncio.Future[None]) -> None:
    """Until one of these is done. Coroutines that are not are cancelled, futures go on."""
    tasks = [
        each if isinstance(each, asyncio.Future) else asyncio.ensure_future(each)
        for each in awaited
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task, each in zip(tasks, awaited, strict=True):
            if task is not each:
                task.cancel()


def _in_thread(work: Callable[[asyncio.AbstractEventLoop], None]) -> asyncio.Future[None]:
    """Work in a thread that the process does not wait for when it ends."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def run() -> None:
        error: Exception | None = None
        try:
            work(loop)
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed: there is no one left to tell
            loop.call_soon_threadsafe(finish, error)

    def finish(error: Exception | None) -> None:
        if not future.cancelled():
            future.set_exception(error) if error else future.set_result(None)

    threading.Thread(target=run, name="loading", daemon=True).start()
    return future
