"""What the sync and the async client are made of alike: channels, deadlines, retries."""

import time
from collections.abc import Callable
from typing import Any, Generic

from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_client._bulk.work import Work
from dragoman_client._connection import HEALTH, TLS, C, Channels, Endpoint, checked_timeout
from dragoman_client._errors import CallError, TimedOutError
from dragoman_client._messages import RequestBuilder
from dragoman_client._retries import Retries

_WINDOW = 256
"""Texts that are under way for each address, where ``translate_many`` is not told otherwise."""
_SERVING = b"\x08\x01"
"""grpc.health.v1.HealthCheckResponse with status SERVING, without a package for two messages."""


class ClientBase(Generic[C]):
    """Knows servers, and how long a call may take. Neither waits nor sends."""

    def __init__(
        self,
        addresses: tuple[str, ...],
        tls: TLS | None,
        key: str | None,
        timeout: float,
        retries: Retries,
        open_channels: Callable[[Endpoint], Channels[C]],
    ) -> None:
        self._channels = open_channels(Endpoint(addresses or ("localhost:50051",), tls, key))
        self._timeout = checked_timeout(timeout)
        self._retries = retries

    def _stub(self) -> TranslationServiceStub:
        return TranslationServiceStub(self._channels.next())

    def _work(self, builder: RequestBuilder, window: int | None) -> Work:
        """Return the state of a bulk call, whose streams go to all addresses."""
        addresses = len(self._channels.endpoint.addresses)
        size = _WINDOW * addresses if window is None else window
        return Work(builder, size, addresses, self._retries)

    def _open_bulk(self, address: int, requests: Any) -> Any:
        """Begin a bulk stream. It has no deadline, and fails at once where no server is there."""
        metadata = self._channels.endpoint.metadata()
        stub = TranslationServiceStub(self._channels.at(address))
        return stub.TranslateBulk(requests, metadata=metadata, wait_for_ready=False)

    def _check_health(self, timeout: float | None) -> Any:
        """Ask a server for its health; the answer is for ``_is_serving``."""
        check = self._channels.next().unary_unary(HEALTH)
        return check(b"", **self._with(self._until(timeout)))

    def _is_serving(self, answer: bytes) -> bool:
        return answer == _SERVING

    def _until(self, timeout: float | None) -> float:
        """Return the moment at which a call that begins now has to be over."""
        return time.monotonic() + (self._timeout if timeout is None else checked_timeout(timeout))

    def _with(self, until: float) -> dict[str, object]:
        """Return what goes along with a call."""
        left = until - time.monotonic()
        if left <= 0:
            raise TimedOutError("there was no time left for the call")
        return {"timeout": left, "metadata": self._channels.endpoint.metadata()}

    def _delay(self, error: CallError, attempt: int, until: float) -> float:
        """Return the seconds to wait before the next attempt; raise the error where none is due."""
        delay = self._retries.delay(error, attempt, until - time.monotonic())
        if delay is None:
            raise error from None
        return delay
