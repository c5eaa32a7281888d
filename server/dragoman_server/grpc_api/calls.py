"""What every call goes through, whatever it asks for.

    who calls → may they → what do they say → the handler → the answer, or one status

Handlers take messages and raise ``CallError``. Here is the one place where bytes become messages,
exceptions become statuses, and calls are counted and logged.
"""

import asyncio
import logging
import math
import re
import secrets
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from dragoman_server.grpc_api.decoding import decode
from dragoman_server.service.auth import Client, Tokens
from dragoman_server.service.errors import (
    CallError,
    CancelledByClientError,
    ExpiredError,
    InternalError,
    OverloadedError,
    UnauthenticatedError,
    UnavailableError,
)
from dragoman_server.service.metrics import Metrics
from dragoman_server.service.settings import Limits

log = logging.getLogger("dragoman.calls")

Context = Any
"""``grpc.aio.ServicerContext``, of any messages."""
M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Message)

BULK_RPC = "TranslateBulk"
"""Has no end of its own, so no deadline either."""
REQUEST_ID = "x-request-id"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_STATUS_DETAILS = "grpc-status-details-bin"
_BUSY_SECONDS = 1.0
"""After which a client that has too many calls may try again."""
_QUIET_SECONDS = 0.25
"""Without a call, after which no one is expected to be about to."""
_EARLY_SECONDS = 0.02
"""By which the clocks of gRPC and ours may differ."""
_LATE_SECONDS = 0.5
"""After a deadline, in which the engine is to notice it; then the handler itself is ended."""


class Phase(Enum):
    """Of the server's life; calls are taken while it serves."""

    STARTING = "STARTING"
    SERVING = "SERVING"
    DRAINING = "DRAINING"
    FAILED = "ENGINE_STOPPED"


@dataclass
class Call:
    """One call, and what is known of it."""

    rpc: str
    request_id: str
    began: float
    client: Client = field(default_factory=lambda: Client(""))
    deadline: float = math.inf
    """A moment of ``time.monotonic()``."""
    facts: dict[str, str | int] = field(default_factory=dict)
    """For the log: the model, counts. Nothing that a client wrote."""

    def count(self, fact: str, number: int) -> None:
        """Add to a number of the log."""
        self.facts[fact] = int(self.facts.get(fact, 0)) + number


class Calls:
    """The way in, shared by all calls of a server."""

    def __init__(self, limits: Limits, tokens: Tokens | None, metrics: Metrics) -> None:
        self.limits = limits
        self.phase = Phase.STARTING
        self._tokens = tokens
        self._metrics = metrics
        self.rejected = metrics.rejected_for
        """Counts what is turned away, by its reason."""
        self._under_way: Counter[str] = Counter()
        """By who calls, and of everyone together."""
        self._streams = 0
        self._last_call = -math.inf
        self._idle = asyncio.Event()
        self._idle.set()
        self.draining = asyncio.Event()
        """Set when no more calls are taken; streams without an end are to find one."""

    @property
    def under_way(self) -> int:
        return self._under_way.total()

    def turn(self, phase: Phase) -> None:
        self.phase = phase
        if phase is not Phase.SERVING:
            self.draining.set()

    async def wait_until_idle(self) -> None:
        await self._idle.wait()

    async def wait_until_quiet(self, most: float) -> None:
        """Until nobody has called for a moment, or for so many seconds.

        Who was answered just now may call again at once. It is to be told that we stop, as gRPC
        does not do while it closes.
        """
        until = time.monotonic() + most
        while (now := time.monotonic()) < min(until, self._last_call + _QUIET_SECONDS):
            await asyncio.sleep(min(until, self._last_call + _QUIET_SECONDS) - now)

    def unary(self, rpc: str, kind: type[M], handler: Callable[[M, Call], Awaitable[R]]) -> Any:
        async def run(raw: bytes, context: Context) -> R:
            async with self._guarded(rpc, context, is_stream=False) as call:
                request = decode(raw, kind, self.limits.max_message_bytes)
                return await handler(request, call)
            raise AssertionError  # the guard has ended the call

        return grpc.unary_unary_rpc_method_handler(run, response_serializer=_serialize)

    def server_stream(
        self, rpc: str, kind: type[M], handler: Callable[[M, Call], AsyncGenerator[R, None]]
    ) -> Any:
        async def run(raw: bytes, context: Context) -> None:
            async with self._guarded(rpc, context, is_stream=True) as call:
                request = decode(raw, kind, self.limits.max_message_bytes)
                async with aclosing(handler(request, call)) as responses:
                    async for response in responses:
                        await context.write(response)

        return grpc.unary_stream_rpc_method_handler(run, response_serializer=_serialize)

    def both_streams(
        self,
        rpc: str,
        kind: type[M],
        handler: Callable[[AsyncIterator[M], Call], AsyncGenerator[R, None]],
    ) -> Any:
        async def run(raws: AsyncIterator[bytes], context: Context) -> None:
            async with self._guarded(rpc, context, is_stream=True) as call:
                requests = (decode(raw, kind, self.limits.max_message_bytes) async for raw in raws)
                async with aclosing(handler(requests, call)) as responses:
                    async for response in responses:
                        await context.write(response)

        return grpc.stream_stream_rpc_method_handler(run, response_serializer=_serialize)

    @asynccontextmanager
    async def _guarded(self, rpc: str, context: Context, *, is_stream: bool) -> AsyncIterator[Call]:
        """Around a handler: whatever it raises, the call ends with one status and is logged."""
        metadata = dict(context.invocation_metadata() or ())
        call = Call(rpc, _request_id(metadata), time.monotonic())
        self._last_call = call.began
        context.set_trailing_metadata(((REQUEST_ID, call.request_id),))
        error: CallError | None = None
        self._metrics.in_flight.labels(rpc).inc()
        try:
            self._take_place(self._caller(call, metadata, context), context, is_stream)
            call.deadline = self._deadline(call, context)
            async with asyncio.timeout(_finite(call.deadline + _LATE_SECONDS - call.began)):
                yield call
        except CallError as raised:
            error = raised
        except TimeoutError:
            error = ExpiredError("the deadline has passed")
        except asyncio.CancelledError:
            error = _why_cancelled(call)
            raise
        except grpc.aio.BaseError:
            # Its client is gone, as reading or writing noticed before we were told.
            error = _why_cancelled(call)
            raise asyncio.CancelledError from None
        except Exception:
            log.exception("%s failed", rpc, extra={"facts": {"request_id": call.request_id}})
            error = InternalError()
        finally:
            self._ended(call, error)
        if error is not None:
            status = error.status(call.request_id)
            await context.abort(
                error.code,
                error.message,
                ((REQUEST_ID, call.request_id), (_STATUS_DETAILS, status.SerializeToString())),
            )

    def _caller(self, call: Call, metadata: dict[str, str], context: Context) -> str:
        """Who calls, as a key; in the call itself as a client."""
        if self.phase is not Phase.SERVING:
            raise UnavailableError(
                f"the server is {_PHASES[self.phase]}", _BUSY_SECONDS, reason=self.phase.value
            )
        if self._tokens is None:
            return f"address {str(context.peer()).rpartition(':')[0]}"
        scheme, _, token = metadata.get("authorization", "").partition(" ")
        if not token or scheme.lower() != "bearer":
            raise UnauthenticatedError("no bearer token in the metadata 'authorization'")
        client = self._tokens.find(token.strip())
        if client is None:
            raise UnauthenticatedError("the token is not known", reason="WRONG_TOKEN")
        call.client = client
        call.facts["client"] = client.name
        return f"client {client.name}"

    def _take_place(self, caller: str, context: Context, is_stream: bool) -> None:
        """A place among the calls under way, where there is one, until the last byte was sent."""
        limits = self.limits
        if (
            self.under_way >= limits.max_calls
            or self._under_way[caller] >= limits.max_client_calls
            or (is_stream and self._streams >= limits.max_streams)
        ):
            raise OverloadedError("too many calls", _BUSY_SECONDS, reason="TOO_MANY_CALLS")
        self._under_way[caller] += 1
        self._streams += is_stream
        self._idle.clear()
        context.add_done_callback(lambda _: self._leave_place(caller, is_stream))

    def _leave_place(self, caller: str, is_stream: bool) -> None:
        self._under_way[caller] -= 1
        if not self._under_way[caller]:
            del self._under_way[caller]  # clients come and go
        self._streams -= is_stream
        if not self._under_way:
            self._idle.set()

    def _deadline(self, call: Call, context: Context) -> float:
        # A client that sends a malformed timeout seems to have none.
        remaining = context.time_remaining()
        most = math.inf if call.rpc == BULK_RPC else self.limits.max_deadline
        return call.began + min(most, math.inf if remaining is None else remaining)

    def _ended(self, call: Call, error: CallError | None) -> None:
        code = grpc.StatusCode.OK if error is None else error.code
        seconds = time.monotonic() - call.began
        self._metrics.in_flight.labels(call.rpc).dec()
        self._metrics.requests.labels(call.rpc, code.name).inc()
        self._metrics.duration.labels(call.rpc).observe(seconds)
        facts: dict[str, str | int | float] = {
            "rpc": call.rpc,
            "code": code.name,
            "seconds": round(seconds, 4),
            "request_id": call.request_id,
            **call.facts,
        }
        if error is not None:
            self.rejected(error.reason)
            facts["reason"] = error.reason
        log.info("%s %s", call.rpc, code.name, extra={"facts": facts})


_PHASES = {
    Phase.STARTING: "starting",
    Phase.DRAINING: "stopping",
    Phase.FAILED: "about to end: an engine has failed",
}


def _request_id(metadata: dict[str, str]) -> str:
    """The client's, if it is fit for a log; else a new one."""
    given = metadata.get(REQUEST_ID, "")
    return given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


def _why_cancelled(call: Call) -> CallError:
    if time.monotonic() >= call.deadline - _EARLY_SECONDS:  # gRPC ends a call at its deadline
        return ExpiredError("the deadline has passed")
    return CancelledByClientError("cancelled")


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()
