"""The life of a server: listen, load, serve, drain, end.

It listens before its models are loaded, so that health can be asked for from the first moment. For
which protocols it listens is up to whoever makes it.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from dragoman_server.service.auth import read_keys
from dragoman_server.service.calls import Calls, Phase
from dragoman_server.service.detection import Detection
from dragoman_server.service.errors import UnavailableError, draining, engine_stopped
from dragoman_server.service.glossaries.store import GlossaryStore
from dragoman_server.service.handlers import Handlers
from dragoman_server.service.models.choice import Models
from dragoman_server.service.models.loading import load_models
from dragoman_server.service.models.served import ServedModel
from dragoman_server.service.settings import ServerSettings
from dragoman_server.service.suggestions import did_you_mean
from dragoman_server.service.telemetry.exposition import exposed
from dragoman_server.service.telemetry.metrics import Metrics

log = logging.getLogger("dragoman.server")

_TICK_SECONDS = 0.25
"""Seconds between two looks at the engines."""
_FAREWELL_SECONDS = 1.0
"""Seconds for the last answers to leave."""

Announce = Callable[["Server"], None]
"""Told once, when the server is ready."""


class Listener(Protocol):
    """A protocol that a server is reached by."""

    name: str
    """What people call the protocol."""
    address: str
    """HOST:PORT, with the port that was found where 0 was asked for."""

    async def start(self) -> None:
        """Take connections."""

    def set_ready(self, ready: bool) -> None:
        """Tell those who ask for health whether requests are taken."""

    async def stop(self, grace_seconds: float) -> None:
        """End: calls that are under way have so long."""


class Server:
    def __init__(
        self, settings: ServerSettings, protocols: Sequence[Callable[["Server"], Listener]]
    ) -> None:
        """``protocols`` make the listeners, on the event loop, when the server runs."""
        self.settings = settings
        self.metrics = Metrics(CollectorRegistry())
        self.models = Models()
        self._keys = read_keys(settings.keys) if settings.keys else None
        self.calls = Calls(settings.limits, self._keys, self.metrics)
        if settings.glossaries:
            self.calls.glossaries = GlossaryStore(settings.glossaries)
        self.handlers = Handlers(
            self.models, self.calls, Detection(self.models, settings.detection_lead)
        )
        self.listeners: list[Listener] = []
        self.metrics_address = ""
        """HOST:PORT of the metrics; empty where there are none, and until the server runs."""
        self._protocols = protocols
        self._stopping = asyncio.Event()

    @property
    def address(self) -> str:
        """HOST:PORT of the first listener; empty until the server runs."""
        return self.listeners[0].address if self.listeners else ""

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Let what is under way finish, and end. To be called on the event loop."""
        self._stopping.set()

    async def run(self, announce: Announce) -> int:
        """Serve until told to stop, and return the exit code of the process.

        Not everything has ended then: a lane that hangs, or a model that is half loaded, is left to
        the end of the process.
        """
        asyncio.get_running_loop().set_exception_handler(_log_unhandled)
        self.listeners = [listen(self) for listen in self._protocols]
        with exposed(self.metrics, self.settings.metrics) as self.metrics_address:
            try:
                for listener in self.listeners:
                    await listener.start()
                return await self._serve(announce)
            finally:
                await self._stop_listening(0)

    async def _serve(self, announce: Announce) -> int:
        loading = _in_thread(
            lambda loop: load_models(self.settings, self.models, self.metrics, loop)
        )
        await _first(loading, self._stopping.wait())
        if not loading.done():
            log.info("told to stop before the models were loaded")
            return 0
        await loading  # raises what it raised
        self._warn_of_unknown_models()
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
            await self._end_calls(engine_stopped)
            return 1
        await self._end_calls(draining)
        await self._close_engines()
        return 0

    def _warn_of_unknown_models(self) -> None:
        """Name models of the file of keys that are not here: it may be of several servers."""
        if self._keys is None or self.settings.keys is None:
            return
        names = self.models.names
        for client, model in self._keys.unknown_models(names):
            log.warning(
                "%s:%d: %s may use %r, which is no model of this server%s",
                self.settings.keys.name,  # where it is, is not for the log
                client.line,
                client.name,
                model,
                did_you_mean(model, names),
            )

    def _turn(self, phase: Phase) -> None:
        is_ready = phase is Phase.SERVING
        self.calls.turn(phase)
        for listener in self.listeners:
            listener.set_ready(is_ready)
        self.metrics.ready.set(is_ready)
        log.info("now %s", phase.value.lower())

    async def _drain(self, watching: asyncio.Future[None]) -> None:
        """Let what was admitted finish. New calls are refused with a status, not a closed port."""
        self._turn(Phase.DRAINING)
        began = time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.grace):
                await _first(watching, self.calls.wait_until_idle())
                await self.calls.wait_until_quiet(_FAREWELL_SECONDS)
        facts = {"seconds": round(time.monotonic() - began, 2), "cut_off": self.calls.under_way}
        log.info("the grace is over" if self.calls.under_way else "drained", extra={"facts": facts})

    async def _end_calls(self, why: Callable[[], UnavailableError]) -> None:
        """Tell those who still wait, and let them hear it."""
        for model in self.models:
            model.dispatcher.fail(why)
        await self._stop_listening(_FAREWELL_SECONDS)

    async def _stop_listening(self, grace_seconds: float) -> None:
        await asyncio.gather(*(listener.stop(grace_seconds) for listener in self.listeners))

    async def _close_engines(self) -> None:
        closing = [asyncio.to_thread(model.dispatcher.engine.close) for model in self.models]
        with suppress(TimeoutError):  # a lane may be in the middle of something long
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await asyncio.gather(*closing)

    async def _watch(self) -> None:
        """Look after the engines and the loop itself. Ends when an engine is lost."""
        while not any([self._is_lost(model) for model in self.models]):  # noqa: C419 - log them all
            due = time.monotonic() + _TICK_SECONDS
            await asyncio.sleep(_TICK_SECONDS)
            self.metrics.loop_lag.observe(max(0.0, time.monotonic() - due))

    def _is_lost(self, model: ServedModel) -> bool:
        lane = model.dispatcher.engine.find_lost_lane(self.settings.stall)
        if lane is None:
            return False
        log.critical(
            "the engine of %s %s",
            model.name,
            "does not answer" if lane.alive else "has died",
            extra={"facts": {"lane": lane.lane, "seconds": lane.since_heartbeat}},
        )
        return True


def _log_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log in place of asyncio, which also says what was at hand: maybe a user's text."""
    log.error("something failed on the event loop", exc_info=context.get("exception"))


async def _first(*awaited: Coroutine[Any, Any, object] | asyncio.Future[None]) -> None:
    """Wait until one of these is done. Coroutines that are not are cancelled, futures go on."""
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
    """Start work in a thread that the process does not wait for when it ends."""
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
