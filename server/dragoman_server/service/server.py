"""The life of a server: bind, load, serve, drain, end.

It listens before its models are loaded, so that health can be asked for from the first moment.
"""

import asyncio
import logging
import os
import signal
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from prometheus_client import CollectorRegistry

from dragoman_server.errors import ServerError
from dragoman_server.service.calls import Calls, Phase
from dragoman_server.service.exposition import exposed
from dragoman_server.service.handlers import RPCS, SERVICE, Handlers
from dragoman_server.service.health import Health
from dragoman_server.service.loading import load_models
from dragoman_server.service.metrics import Metrics
from dragoman_server.service.models import Models, ServedModel
from dragoman_server.service.settings import ServerSettings
from dragoman_server.service.tokens import read_tokens

log = logging.getLogger("dragoman.server")

_TICK = 0.25
"""Seconds between two looks at the engines."""
_FAREWELL = 1.0
"""Seconds for the last statuses to leave."""
_HEADROOM = 65_536
"""Bytes that gRPC lets pass beyond the limit of a message, so that our own refusal explains it."""

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
        self._ending = asyncio.Event()
        self._lost: ServedModel | None = None

    async def run(self, announce: Announce) -> int:
        """Serve until a signal says otherwise. Returns the exit code of the process."""
        self._listen_for_signals()
        server = self._grpc_server()
        with exposed(self.metrics, self.settings.metrics) as self.metrics_address:
            await server.start()
            try:
                return await self._serve(server, announce)
            finally:
                await server.stop(0)

    async def _serve(self, server: grpc.aio.Server, announce: Announce) -> int:
        loading: asyncio.Future[object] = _in_thread(
            lambda loop: load_models(self.settings, self.models, self.metrics, loop)
        )
        ending: asyncio.Future[object] = asyncio.ensure_future(self._ending.wait())
        await asyncio.wait({loading, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not loading.done():
            log.info("told to stop before the models were loaded")
            return 0
        await loading  # raises what it raised
        watching = asyncio.create_task(self._watch())
        self._turn(Phase.SERVING)
        announce(self)
        try:
            await ending
            if self._lost is not None:
                self._turn(Phase.FAILED)
                self._lost.dispatcher.fail()
                await server.stop(_FAREWELL)
                return 1
            await self._drain(server)
            return 0
        finally:
            watching.cancel()

    def _turn(self, phase: Phase) -> None:
        self.calls.turn(phase)
        self.health.set(serving=phase is Phase.SERVING)
        self.metrics.ready.set(phase is Phase.SERVING)
        log.info("now %s", phase.value.lower())

    async def _drain(self, server: grpc.aio.Server) -> None:
        """Let what was admitted finish. New calls are refused with a status, not a closed port."""
        self._turn(Phase.DRAINING)
        began = time.monotonic()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.calls.wait_until_idle(), self.settings.grace)
        log.info(
            "drained" if not self.calls.under_way else "the grace is over",
            extra={
                "facts": {
                    "seconds": round(time.monotonic() - began, 2),
                    "cut_off": self.calls.under_way,
                }
            },
        )
        await server.stop(0)
        for model in self.models:
            await asyncio.to_thread(model.dispatcher.engine.close)

    async def _watch(self) -> None:
        """Look after the engines and the loop itself."""
        while True:
            due = time.monotonic() + _TICK
            await asyncio.sleep(_TICK)
            self.metrics.loop_lag.observe(max(0.0, time.monotonic() - due))
            for model in self.models:
                if self._is_lost(model):
                    self._lost = model
                    self._ending.set()
                    return

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

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()

        def stop(number: int) -> None:
            if self._ending.is_set():  # asked twice: at once
                os._exit(128 + number)
            log.info("told to stop by %s", signal.Signals(number).name)
            self._ending.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop, number)

    def _grpc_server(self) -> grpc.aio.Server:
        settings = self.settings
        limit = settings.limits.max_message_bytes + _HEADROOM
        server = grpc.aio.server(
            options=[
                ("grpc.so_reuseport", 0),  # or a second server would share the port in silence
                ("grpc.max_receive_message_length", limit),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_concurrent_streams", settings.limits.max_client_calls),
                ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
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


def _in_thread(work: Callable[[asyncio.AbstractEventLoop], None]) -> "asyncio.Future[object]":
    """Work in a thread that the process does not wait for when it ends."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def run() -> None:
        try:
            work(loop)
        except Exception as error:
            loop.call_soon_threadsafe(_finish, error)
        else:
            loop.call_soon_threadsafe(_finish, None)

    def _finish(error: Exception | None) -> None:
        if not future.cancelled():
            future.set_exception(error) if error else future.set_result(None)

    threading.Thread(target=run, name="loading", daemon=True).start()
    return future
