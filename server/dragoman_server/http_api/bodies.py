"""The bodies of requests: received within bounds of size and time, and read as JSON."""

import asyncio
import json
from typing import Any, NoReturn

from starlette.requests import Request

from dragoman_server.http_api.errors import BodyTooLargeError, MediaTypeError, SlowBodyError
from dragoman_server.service.errors import InvalidArgumentError, OverloadedError
from dragoman_server.service.settings import ServerSettings

_BUSY_SECONDS = 1.0
"""Seconds after which to come back, where too much is being received."""
_MAX_INLINE_BYTES = 256 * 1024
"""Most bytes of JSON that are read on the event loop."""


class Bodies:
    """Receives the bodies of all requests of a server."""

    def __init__(self, settings: ServerSettings) -> None:
        self._max_bytes = settings.limits.max_message_bytes
        self._max_buffered_bytes = settings.http_max_buffered_bytes
        self._timeout = settings.http_timeout
        self._buffered = 0
        """Bytes of bodies that are being received."""

    async def receive(self, request: Request) -> bytes:
        """Receive the body of a request.

        Raises ``CallError`` for one that is too long or slow, and ``ClientDisconnect``.
        """
        if request.headers.get("content-encoding", "identity") != "identity":
            raise MediaTypeError("the body is compressed, which is not supported")
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._max_bytes:
            raise BodyTooLargeError(self._max_bytes)
        body = bytearray()
        try:
            async with asyncio.timeout(self._timeout):
                async for chunk in request.stream():
                    self._take(len(chunk), body)
                    body += chunk
        except TimeoutError:
            raise SlowBodyError(self._timeout) from None
        finally:
            self._buffered -= len(body)
        return bytes(body)

    def _take(self, count: int, body: bytearray) -> None:
        if len(body) + count > self._max_bytes:
            raise BodyTooLargeError(self._max_bytes)
        if self._buffered + count > self._max_buffered_bytes:
            raise OverloadedError(
                "too much is being received", _BUSY_SECONDS, reason="TOO_MANY_CALLS"
            )
        self._buffered += count


def media_type(request: Request) -> str:
    """Return the media type of a request's body, without parameters; empty where it has none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_json(body: bytes) -> Any:
    """Return the value of a body. Raises ``InvalidArgumentError`` for what is not JSON."""
    if len(body) > _MAX_INLINE_BYTES:
        return await asyncio.to_thread(_parse, body)
    return _parse(body)


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_constant=_refuse)
    except UnicodeDecodeError:
        raise InvalidArgumentError("", "the body is not UTF-8", reason="INVALID_UTF8") from None
    except (ValueError, RecursionError):
        raise InvalidArgumentError("", "the body is not JSON", reason="MALFORMED") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
