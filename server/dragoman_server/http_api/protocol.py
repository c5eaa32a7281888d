"""uvicorn's protocol, with the bounds that it leaves to a proxy in front of it.

A client has a limited time and size for the head of a request, a limited time to send what nobody
reads any more, and a limited time in which it takes nothing of what is sent to it.
"""

from typing import Any

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

_MAX_HEAD_BYTES = 32 * 1024
"""Most bytes of a request's first line and headers, give or take one read."""
_REFUSAL = b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_SLOW = _REFUSAL % b"408 Request Timeout"
_TOO_LARGE = _REFUSAL % b"431 Request Header Fields Too Large"


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    request_seconds = 30.0
    """Seconds for the head of a request, for what is left of a refused one, and for farewells."""
    stall_seconds = 300.0
    """Seconds in which a client has to take some of what is sent to it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._is_in_head = True
        self._head_bytes = 0
        self._timer: Any = None
        """Ends the connection, unless the client does what it has to do."""
        self._stall_timer: Any = None
        self._answered: RequestResponseCycle | None = None
        """The request that is being answered; where requests come ahead, not the newest."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._limit_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_timer(None)
        self._stop_stall_timer()
        super().connection_lost(exc)
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True
            self._answered.message_event.set()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES:
                self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True
        self._head_bytes = 0
        self._limit_head()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._set_timer(None)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._set_timer(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # It may have to be taken yet, or the rest of its request, which nobody reads, to be sent.
        if self.transport.is_closing() or (self.cycle is self._answered and self.cycle.more_body):
            self._set_timer(self._abort)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._set_timer(self._abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer = self.loop.call_later(self.stall_seconds, self._abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_stall_timer()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _limit_head(self) -> None:
        self._set_timer(lambda: self._refuse(_TOO_SLOW))

    def _set_timer(self, then: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = then and self.loop.call_later(self.request_seconds, then)

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _refuse(self, response: bytes) -> None:
        """Answer and close, unless an earlier request is still being answered."""
        if self.transport.is_closing():
            return
        if self._answered is None or self._answered.response_complete:
            self.transport.write(response)
        self.transport.close()
        self._set_timer(self._abort)

    def _abort(self) -> None:
        self.transport.abort()
