"""What the sync and the async client are made of alike: channels, deadlines, retries."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_client._bulk.work import Work
from dragoman_client._connection import HEALTH, TLS, C, Channels, Endpoint
from dragoman_client._diagnosis import PYTHON_HINTS, Hints, explain
from dragoman_client._errors import CallError, TimedOutError
from dragoman_client._messages import RequestBuilder
from dragoman_client._retries import Retries
from dragoman_client._types import checked_timeout, require

_DEFAULT_ADDRESS = "localhost:50051"
_WINDOW = 256
"""Texts that are under way for each address, where ``translate_many`` is not told otherwise."""
_SERVING = b"\x08\x01"
"""grpc.health.v1.HealthCheckResponse with status SERVING, without a package for two messages."""


@dataclass
class Attempt:
    """One call on its way to a server, and the tries that it has had."""

    until: float
    """Moment at which the call has to be over."""
    seconds: float
    """Seconds that the call may take, all tries together."""
    number: int = 0
    """Tries so far."""
    address: int = 0
    """Number of the address that was tried last."""


class ClientBase(Generic[C]):
    """Knows servers, and how long a call may take. Neither waits nor sends."""

    _hints: Hints | None = PYTHON_HINTS
    """What to do about errors; None to leave the words of gRPC as they are."""

    def __init__(
        self,
        addresses: tuple[str, ...],
        tls: TLS | None,
        key: str | None,
        timeout: float,
        retries: Retries,
        open_channels: Callable[[Endpoint], Channels[C]],
    ) -> None:
        require("retries", retries, Retries, "give Retries(attempts=…)")
        named = addresses or _from_environment() or (_DEFAULT_ADDRESS,)
        secret = os.environ.get("DRAGOMAN_KEY") or None if key is None else key
        self._channels = open_channels(Endpoint(named, tls, secret))
        self._timeout = checked_timeout(timeout)
        self._retries = retries

    def _begin(self, timeout: float | None) -> Attempt:
        """Return a call that begins now."""
        seconds = self._timeout if timeout is None else checked_timeout(timeout)
        return Attempt(time.monotonic() + seconds, seconds)

    def _stub(self, attempt: Attempt) -> TranslationServiceStub:
        """Return what to call for the next try, at the server whose turn it is."""
        attempt.number += 1
        attempt.address, channel = self._channels.next()
        return TranslationServiceStub(channel)

    def _with(self, attempt: Attempt) -> dict[str, object]:
        """Return what goes along with a call."""
        left = attempt.until - time.monotonic()
        if left <= 0:
            raise TimedOutError("there was no time left for the call")
        return {"timeout": left, "metadata": self._channels.endpoint.metadata()}

    def _delay(self, error: CallError, attempt: Attempt) -> float | None:
        """Return the seconds to wait before the next try; None where none is due."""
        left = attempt.until - time.monotonic()
        return self._retries.delay(error, attempt.number, left)

    def _explain(self, error: CallError, address: int, seconds: float | None = None) -> CallError:
        """Give an error words that help, and return it. It may try to connect."""
        if self._hints is None:
            return error
        endpoint = self._channels.endpoint
        return explain(error, endpoint.addresses[address], endpoint.tls, seconds, self._hints)

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

    def _check_health(self, attempt: Attempt) -> Any:
        """Ask a server for its health; the answer is for ``_is_serving``."""
        attempt.address, channel = self._channels.next()
        return channel.unary_unary(HEALTH)(b"", **self._with(attempt))

    def _is_serving(self, answer: bytes) -> bool:
        return answer == _SERVING


def _from_environment() -> tuple[str, ...]:
    """Return the addresses of ``DRAGOMAN_ADDRESS``, which has commas between them."""
    named = os.environ.get("DRAGOMAN_ADDRESS", "")
    return tuple(address.strip() for address in named.split(",")) if named else ()
