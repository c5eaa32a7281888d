"""Calls of HTTP: through ``service.calls`` to a handler, and errors in the words of an API."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Protocol

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from dragoman_server.http_api.bodies import Bodies
from dragoman_server.service.calls import Arrival, Call, Calls, request_id
from dragoman_server.service.errors import CallError

REQUEST_ID = "x-request-id"
_WAIT = re.compile(r"(?:^|[,;\s])wait=(\d{1,6})(?:$|[,;\s])", re.IGNORECASE)
_EVENTS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # for proxies: an event is of use at once
}


class Incoming:
    """A request of HTTP, and whether its client is still there."""

    def __init__(self, scope: Scope, receive: Receive, bodies: Bodies) -> None:
        self.request = Request(scope, receive)
        self.request_id = request_id(self.request.headers.get(REQUEST_ID, ""))
        self.is_gone = False
        """Whether the client has closed the connection."""
        self.leaves: list[Callable[[], None]] = []
        """What is to be done when the last byte was sent."""
        self._receive = receive
        self._bodies = bodies
        self._body: bytes | None = None

    async def body(self) -> bytes:
        """Return the body. Raises ``CallError`` for one that is too long or slow."""
        if self._body is None:
            try:
                self._body = await self._bodies.receive(self.request)
            except ClientDisconnect:
                self.is_gone = True
                raise asyncio.CancelledError from None
        return self._body

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Cancel what runs in this block when the client goes. The body has to be there."""
        task = asyncio.current_task()
        assert task is not None

        async def watch() -> None:
            while (await self._receive())["type"] != "http.disconnect":
                pass
            self.is_gone = True
            task.cancel()

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()


class Dialect(Protocol):
    """How one API says what all of them have."""

    async def key(self, incoming: Incoming) -> str:
        """Return the key that a client gives; empty where it gives none."""

    def error(self, error: CallError, request_id: str) -> Response:
        """Return the response of a call that ended other than well."""


Handle = Callable[[Incoming, Call], Awaitable[Response]]
"""Answers a request whose body was received. Raises ``CallError``."""
Stream = Callable[[Incoming, Call], AsyncGenerator[bytes, None]]
"""Yields server-sent events. Raises ``CallError``."""
EventOfError = Callable[[CallError, str], bytes]
"""Makes the event of an error, and of the id of its request."""


class HttpCalls:
    """Makes the endpoints of one API."""

    def __init__(self, calls: Calls, bodies: Bodies, dialect: Dialect) -> None:
        self._calls = calls
        self._bodies = bodies
        self._dialect = dialect

    def get(self, path: str, handle: Handle) -> Route:
        """Return the route of a call without a body."""
        return self._unary(["GET"], path, handle)

    def post(self, path: str, handle: Handle) -> Route:
        """Return the route of a call with a body."""
        return self._unary(["POST"], path, handle)

    def delete(self, path: str, handle: Handle) -> Route:
        """Return the route of a call that removes something."""
        return self._unary(["DELETE"], path, handle)

    def any(self, path: str, handle: Handle) -> Route:
        """Return the route of a call by any method."""
        return self._unary(["GET", "POST", "PUT", "PATCH", "DELETE"], path, handle)

    def _unary(self, methods: list[str], path: str, handle: Handle) -> Route:
        async def answer(incoming: Incoming, send: Send) -> None:
            try:
                async with self._taken(path, incoming, is_stream=False) as call:
                    response = await handle(incoming, call)
            except CallError as error:
                response = self._dialect.error(error, incoming.request_id)
            await _send(response, incoming, send)

        return Route(path, _Endpoint(self._bodies, answer), methods=methods)

    def stream(self, path: str, handle: Stream, event_of: EventOfError) -> Route:
        """Return the route of a call that is answered by events.

        An error before the first of them is a response like any other.
        """

        async def answer(incoming: Incoming, send: Send) -> None:
            has_begun = False
            try:
                async with (
                    self._taken(path, incoming, is_stream=True) as call,
                    aclosing(handle(incoming, call)) as events,
                ):
                    async for event in events:
                        if not has_begun:
                            await _begin_events(incoming, send)
                            has_begun = True
                        await _send_event(send, event)
            except CallError as error:
                if not has_begun:
                    response = self._dialect.error(error, incoming.request_id)
                    await _send(response, incoming, send)
                    return
                await _send_event(send, event_of(error, incoming.request_id))
            await send({"type": "http.response.body", "body": b""})

        return Route(path, _Endpoint(self._bodies, answer), methods=["POST"])

    @asynccontextmanager
    async def _taken(self, rpc: str, incoming: Incoming, *, is_stream: bool) -> AsyncIterator[Call]:
        """Take a call in, with its body, around its handler."""
        request = incoming.request
        arrival = Arrival(
            rpc=rpc,
            request_id=incoming.request_id,
            key=await self._dialect.key(incoming) if self._calls.asks_for_keys else "",
            address=request.client.host if request.client else "",
            timeout=_timeout(request),
            is_stream=is_stream,
            when_sent=incoming.leaves.append,
        )
        async with self._calls.taken(arrival) as call:
            await incoming.body()
            async with incoming.watched():
                yield call


class _Endpoint:
    """An application of ASGI that answers one kind of call."""

    def __init__(self, bodies: Bodies, answer: Callable[[Incoming, Send], Awaitable[None]]) -> None:
        self._bodies = bodies
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        incoming = Incoming(scope, receive, self._bodies)
        try:
            await self._answer(incoming, send)
        except asyncio.CancelledError:
            if not incoming.is_gone:
                raise
        finally:
            for leave in incoming.leaves:
                leave()


async def _send(response: Response, incoming: Incoming, send: Send) -> None:
    response.headers[REQUEST_ID] = incoming.request_id
    await response(incoming.request.scope, incoming.request.receive, send)


async def _begin_events(incoming: Incoming, send: Send) -> None:
    headers = {**_EVENTS, REQUEST_ID: incoming.request_id}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 200, "headers": raw})


async def _send_event(send: Send, event: bytes) -> None:
    """Send an event; waits while the client has too much to read."""
    await send({"type": "http.response.body", "body": event, "more_body": True})


def _timeout(request: Request) -> float | None:
    """Return the seconds that a client is ready to wait, as ``Prefer: wait=10`` says (RFC 7240)."""
    wait = _WAIT.search(request.headers.get("prefer", ""))
    return float(wait[1]) if wait else None
