"""What every call goes through, whatever it asks for and however it came.

    who calls → may they → is there a place → the handler → an answer, or one ``CallError``

The one place where calls are counted and logged. Knows no protocol: how a call arrives and how its
error is told is up to ``grpc_api`` and ``http_api``.
"""

import asyncio
import logging
import math
import re
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum

from dragoman_server.service.auth import Client, Keys
from dragoman_server.service.errors import (
    CallError,
    CancelledByClientError,
    ExpiredError,
    InternalError,
    OverloadedError,
    UnauthenticatedError,
    UnavailableError,
)
from dragoman_server.service.glossaries.store import GlossaryStore
from dragoman_server.service.settings import Limits
from dragoman_server.service.telemetry.metrics import Metrics

log = logging.getLogger("dragoman.calls")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BUSY_SECONDS = 1.0
"""Seconds after which a client that has too many calls may try again."""
_QUIET_SECONDS = 0.25
"""Seconds without a call after which no one is expected to be about to call."""
_EARLY_SECONDS = 0.02
"""Seconds by which the clocks of a protocol and ours may differ."""
_LATE_SECONDS = 0.5
"""Seconds after a deadline in which the engine is to notice it; then the handler itself ends."""


class Phase(Enum):
    """Where a server is in its life; calls are taken while it serves."""

    STARTING = "STARTING"
    SERVING = "SERVING"
    DRAINING = "DRAINING"
    FAILED = "ENGINE_STOPPED"


_PHASES = {
    Phase.STARTING: "starting",
    Phase.DRAINING: "stopping",
    Phase.FAILED: "about to end: an engine has failed",
}


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """A call as its protocol found it."""

    rpc: str
    """The name of what is called."""
    request_id: str
    """The id that the client chose, where it is fit for a log; else a new one."""
    key: str
    """The client's key; empty where it gave none."""
    address: str
    """Where the client is."""
    timeout: float | None
    """Seconds that the client is ready to wait; None for any time."""
    is_stream: bool
    has_end: bool = True
    """Whether the call ends by itself. One that does not has no deadline of the server's."""
    when_sent: Callable[[Callable[[], None]], object]
    """Registers what is to be done when the last byte was sent."""


@dataclass
class Call:
    """One call, and what is known of it."""

    rpc: str
    request_id: str
    began: float
    """When the call arrived, as a moment of ``time.monotonic()``."""
    client: Client = field(default_factory=lambda: Client(""))
    deadline: float = math.inf
    """When the call has to be over, as a moment of ``time.monotonic()``."""
    glossaries: GlossaryStore | None = None
    """What is kept of glossaries; None where the server keeps none."""
    facts: dict[str, str | int] = field(default_factory=dict)
    """What the log says of the call: the model, counts. Nothing that a client wrote."""

    def count(self, fact: str, number: int) -> None:
        """Add to a number of the log."""
        self.facts[fact] = int(self.facts.get(fact, 0)) + number


class Calls:
    """The way in, shared by all calls of a server."""

    def __init__(self, limits: Limits, keys: Keys | None, metrics: Metrics) -> None:
        self.limits = limits
        self.phase = Phase.STARTING
        self.glossaries: GlossaryStore | None = None
        """Glossaries that are kept for clients; None where the server keeps none."""
        self._keys = keys
        self._metrics = metrics
        self.rejected = metrics.rejected_for
        """Counts a call that is turned away, by its reason."""
        self._under_way: Counter[str] = Counter()
        """Calls under way, by who calls."""
        self._streams = 0
        """Streams under way."""
        self._last_call = -math.inf
        """When the last call arrived."""
        self._idle = asyncio.Event()
        self._idle.set()
        self.draining = asyncio.Event()
        """Set when no more calls are taken; streams without an end are to find one."""

    @property
    def under_way(self) -> int:
        """Calls under way, of everyone together."""
        return self._under_way.total()

    @property
    def asks_for_keys(self) -> bool:
        """Whether only clients with a key may call."""
        return self._keys is not None

    def turn(self, phase: Phase) -> None:
        """Enter another phase of the server's life."""
        self.phase = phase
        if phase is not Phase.SERVING:
            self.draining.set()

    async def wait_until_idle(self) -> None:
        """Wait until no call is under way."""
        await self._idle.wait()

    async def wait_until_quiet(self, max_seconds: float) -> None:
        """Wait until nobody has called for a moment, or for so many seconds.

        A client that was answered just now may call again at once. It is to be told that the server
        stops, which gRPC does not do while it closes.
        """
        until = time.monotonic() + max_seconds
        while (now := time.monotonic()) < min(until, self._last_call + _QUIET_SECONDS):
            await asyncio.sleep(min(until, self._last_call + _QUIET_SECONDS) - now)

    @asynccontextmanager
    async def taken(self, arrival: Arrival) -> AsyncIterator[Call]:
        """Take a call in, around its handler.

        Whatever the handler raises, the call is counted and logged once, and a ``CallError`` or the
        cancellation comes out.
        """
        call = Call(arrival.rpc, arrival.request_id, time.monotonic(), glossaries=self.glossaries)
        self._last_call = call.began
        error: CallError | None = None
        self._metrics.in_flight.labels(call.rpc).inc()
        try:
            self._take_place(self._caller(call, arrival), arrival)
            call.deadline = self._deadline(call, arrival)
            async with asyncio.timeout(_finite(call.deadline + _LATE_SECONDS - call.began)):
                yield call
        except CallError as raised:
            error = raised
        except TimeoutError:
            error = ExpiredError("the deadline has passed")
        except asyncio.CancelledError:
            error = _why_cancelled(call)
            raise
        except Exception:
            log.exception("%s failed", call.rpc, extra={"facts": {"request_id": call.request_id}})
            error = InternalError()
        finally:
            self._ended(call, error)
        if error is not None:
            raise error from None

    def _caller(self, call: Call, arrival: Arrival) -> str:
        """Return who calls, as a name to count by; the call itself is told the client."""
        if self.phase is not Phase.SERVING:
            raise UnavailableError(
                f"the server is {_PHASES[self.phase]}", _BUSY_SECONDS, reason=self.phase.value
            )
        client = self.client_of(arrival.key)
        if client is None:
            return f"address {arrival.address}"
        call.client = client
        call.facts["client"] = client.name
        return f"client {client.name}"

    def client_of(self, key: str) -> Client | None:
        """Return whose key it is; None where no keys are asked for."""
        if self._keys is None:
            return None
        if not key:
            raise UnauthenticatedError("no bearer key in 'authorization'")
        client = self._keys.find(key)
        if client is None:
            raise UnauthenticatedError("the key is not known", reason="WRONG_KEY")
        return client

    def _take_place(self, caller: str, arrival: Arrival) -> None:
        """Take a place among the calls under way, until the last byte was sent."""
        limits, is_stream = self.limits, arrival.is_stream
        if (
            self.under_way >= limits.max_calls
            or self._under_way[caller] >= limits.max_client_calls
            or (is_stream and self._streams >= limits.max_streams)
        ):
            raise OverloadedError("too many calls", _BUSY_SECONDS, reason="TOO_MANY_CALLS")
        self._under_way[caller] += 1
        self._streams += is_stream
        self._idle.clear()
        arrival.when_sent(lambda: self._leave_place(caller, is_stream))

    def _leave_place(self, caller: str, is_stream: bool) -> None:
        self._under_way[caller] -= 1
        if not self._under_way[caller]:
            del self._under_way[caller]  # clients come and go
        self._streams -= is_stream
        if not self._under_way:
            self._idle.set()

    def _deadline(self, call: Call, arrival: Arrival) -> float:
        max_seconds = self.limits.max_deadline if arrival.has_end else math.inf
        wanted = math.inf if arrival.timeout is None else arrival.timeout
        return call.began + min(max_seconds, wanted)

    def _ended(self, call: Call, error: CallError | None) -> None:
        code = "OK" if error is None else error.code.name
        seconds = time.monotonic() - call.began
        self._metrics.in_flight.labels(call.rpc).dec()
        self._metrics.requests.labels(call.rpc, code).inc()
        self._metrics.duration.labels(call.rpc).observe(seconds)
        facts: dict[str, str | int | float] = {
            "rpc": call.rpc,
            "code": code,
            "seconds": round(seconds, 4),
            "request_id": call.request_id,
            **call.facts,
        }
        if error is not None:
            self.rejected(error.reason)
            facts["reason"] = error.reason
        log.info("%s %s", call.rpc, code, extra={"facts": facts})


def request_id(given: str) -> str:
    """Return the id that a client chose, where it is fit for a log; else a new one."""
    return given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


def _why_cancelled(call: Call) -> CallError:
    if time.monotonic() >= call.deadline - _EARLY_SECONDS:  # gRPC ends a call at its deadline
        return ExpiredError("the deadline has passed")
    return CancelledByClientError("cancelled")
