"""Calls of gRPC: bytes to messages, through ``service.calls`` to a handler, errors to statuses."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import unquote

import grpc
from google.protobuf.message import Message

from dragoman_server.grpc_api.decoding import decode
from dragoman_server.service.auth import key_in
from dragoman_server.service.calls import Arrival, Call, Calls, request_id
from dragoman_server.service.errors import CallError

Context = Any
"""``grpc.aio.ServicerContext``, of any messages."""
M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Message)

Check = Callable[[Call], None]
"""Looks at a call before its message is decoded, and raises ``CallError`` where that is no use."""

REQUEST_ID = "x-request-id"
_STATUS_DETAILS = "grpc-status-details-bin"


class GrpcCalls:
    """Makes gRPC's handlers out of ours, which take messages and raise ``CallError``."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._max_bytes = calls.limits.max_message_bytes

    def unary(
        self,
        rpc: str,
        kind: type[M],
        handler: Callable[[M, Call], Awaitable[R]],
        check: Check = lambda call: None,
    ) -> Any:
        """Return the handler of a call with one request and one response."""

        async def run(raw: bytes, context: Context) -> R:
            async with self._guarded(rpc, context, is_stream=False) as call:
                check(call)
                return await handler(decode(raw, kind, self._max_bytes), call)
            raise AssertionError  # the guard has ended the call

        return grpc.unary_unary_rpc_method_handler(run, response_serializer=_serialize)

    def server_stream(
        self,
        rpc: str,
        kind: type[M],
        handler: Callable[[M, Call], AsyncGenerator[R, None]],
        check: Check = lambda call: None,
    ) -> Any:
        """Return the handler of a call with one request and a stream of responses."""

        async def run(raw: bytes, context: Context) -> None:
            async with self._guarded(rpc, context, is_stream=True) as call:
                check(call)
                request = decode(raw, kind, self._max_bytes)
                await _write_all(context, handler(request, call))

        return grpc.unary_stream_rpc_method_handler(run, response_serializer=_serialize)

    def both_streams(
        self,
        rpc: str,
        kind: type[M],
        handler: Callable[[AsyncIterator[M], Call], AsyncGenerator[R, None]],
    ) -> Any:
        """Return the handler of a call with streams both ways, which may go on for ever."""

        async def run(raws: AsyncIterator[bytes], context: Context) -> None:
            async with self._guarded(rpc, context, is_stream=True, has_end=False) as call:
                requests = (decode(raw, kind, self._max_bytes) async for raw in raws)
                await _write_all(context, handler(requests, call))

        return grpc.stream_stream_rpc_method_handler(run, response_serializer=_serialize)

    @asynccontextmanager
    async def _guarded(
        self, rpc: str, context: Context, *, is_stream: bool, has_end: bool = True
    ) -> AsyncIterator[Call]:
        """Guard a handler: whatever it raises, the call ends with one status."""
        metadata = dict(context.invocation_metadata() or ())
        arrival = Arrival(
            rpc=rpc,
            request_id=request_id(metadata.get(REQUEST_ID, "")),
            key=key_in(metadata.get("authorization", "")),
            address=_host(str(context.peer())),
            # A client that sends a malformed timeout seems to have none.
            timeout=context.time_remaining(),
            is_stream=is_stream,
            has_end=has_end,
            when_sent=lambda leave: context.add_done_callback(lambda _: leave()),
        )
        own_id = (REQUEST_ID, arrival.request_id)
        context.set_trailing_metadata((own_id,))
        try:
            async with self._calls.taken(arrival) as call:
                try:
                    yield call
                except grpc.aio.BaseError:
                    # Its client is gone, as reading or writing noticed before we were told.
                    raise asyncio.CancelledError from None
        except CallError as error:
            details = error.status(arrival.request_id).SerializeToString()
            await context.abort(error.code, error.message, (own_id, (_STATUS_DETAILS, details)))


async def _write_all(context: Context, responses: AsyncGenerator[R, None]) -> None:
    """Send responses as they come; what makes them is closed in the end, however that comes."""
    async with aclosing(responses):
        async for response in responses:
            await context.write(response)


def _host(peer: str) -> str:
    """Return the host of what gRPC calls a peer: ``ipv4:127.0.0.1:50051``, ``ipv6:%5B::1%5D:1``."""
    host = unquote(peer).rpartition(":")[0].partition(":")[2]
    return host.removeprefix("[").removesuffix("]")


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()
