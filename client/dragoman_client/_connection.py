"""Channels to servers: addresses, TLS, key, and what every call sends along."""

import itertools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import grpc

from dragoman_client._errors import ConfigurationError
from dragoman_client._field_docs import documented
from dragoman_client._types import require

C = TypeVar("C", grpc.Channel, grpc.aio.Channel)

SERVICE = "dragoman.v1.TranslationService"
HEALTH = "/grpc.health.v1.Health/Check"

_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.lb_policy_name", "round_robin"),  # over all addresses of a name
    ("grpc.enable_retries", 0),  # ours know what the server says of when to come back
    # A window of 64 KiB that stays as it is, else gRPC widens it to megabytes: a slow reader of a
    # stream is to hold back the server, and text needs no more.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # A server that comes back is found soon, and not after the two minutes of gRPC's default.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]


@documented
@dataclass(frozen=True, kw_only=True)
class TLS:
    """A connection that is encrypted, to a server that proves its name."""

    root_certificates: os.PathLike[str] | str | None = None
    """PEM file of the certificates to trust; None for those that the system trusts."""
    server_name: str | None = None
    """Name that the certificate must have, where it is not that of the address."""


@dataclass(frozen=True)
class Endpoint:
    """Where servers are, and how to speak to them."""

    addresses: tuple[str, ...]
    """HOST:PORT of each server; they are used in turns."""
    tls: TLS | None
    """How to encrypt; None for a connection that is not encrypted."""
    key: str | None
    """Secret by which the server knows the client."""

    def __post_init__(self) -> None:
        if not self.addresses:
            raise ConfigurationError("there is no address: give one, as localhost:50051")
        for address in self.addresses:
            require("an address", address, str, "give each as an argument of its own")
            if "," in address:
                raise ConfigurationError(
                    f"{address!r} is several addresses: give each as an argument of its own"
                )
            if not address or any(letter.isspace() for letter in address):
                raise ConfigurationError(f"{address!r} is not an address, as localhost:50051 is")
            if address.startswith(("http://", "https://")):
                raise ConfigurationError(
                    f"{address!r} is a page's address: leave out what is before the name"
                )
        if self.tls is not None:
            require("tls", self.tls, TLS, "give TLS()")
        if self.key is None:
            return
        require("key", self.key, str, "")
        if not self.key or not self.key.isascii() or not self.key.isprintable():
            raise ConfigurationError("the key is not one line of ASCII letters")

    @property
    def options(self) -> list[tuple[str, Any]]:
        if self.tls and self.tls.server_name:
            return [*_CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", self.tls.server_name)]
        return list(_CHANNEL_OPTIONS)

    def credentials(self) -> grpc.ChannelCredentials | None:
        if self.tls is None:
            return None
        from pathlib import Path  # only here: the SDK is to be quick to import

        roots = self.tls.root_certificates
        try:
            pem = Path(roots).read_bytes() if roots else None
        except OSError as error:
            raise ConfigurationError(f"{roots}: {error.strerror}") from None
        if pem is not None and b"-----BEGIN CERTIFICATE-----" not in pem:
            raise ConfigurationError(f"{roots}: there is no PEM certificate in it")
        return grpc.ssl_channel_credentials(pem)

    def metadata(self) -> list[tuple[str, str]]:
        """Return the metadata of one call, with an id under which the server's log has it."""
        found = [("x-request-id", os.urandom(8).hex())]
        if self.key:
            found.append(("authorization", f"Bearer {self.key}"))
        return found


class Channels(Generic[C]):
    """A channel for each address, used in turns.

    They are opened when the first is used: one of an event loop can't be before the loop runs.
    """

    def __init__(self, endpoint: Endpoint, open_one: Callable[[str], C]) -> None:
        self.endpoint = endpoint
        self._open_one = open_one
        self._opening = threading.Lock()
        self._opened: list[C] = []
        self._turns = itertools.count()
        self._is_closed = False

    def next(self) -> tuple[int, C]:
        """Return the address whose turn it is, by its number, and its channel."""
        with self._opening:
            opened = self._open()
            number = next(self._turns) % len(opened)
            return number, opened[number]

    def at(self, number: int) -> C:
        """Return the channel to the address of this number."""
        with self._opening:
            return self._open()[number]

    def _open(self) -> list[C]:
        if self._is_closed:
            raise ConfigurationError("the client is closed")
        if not self._opened:
            self._opened = [self._open_one(address) for address in self.endpoint.addresses]
        return self._opened

    def take_all(self) -> list[C]:
        """Return the channels that are open, to be closed."""
        with self._opening:
            self._is_closed = True
            taken, self._opened = self._opened, []
            return taken


def open_channels(endpoint: Endpoint) -> Channels[grpc.Channel]:
    return _open(endpoint, grpc.insecure_channel, grpc.secure_channel)


def open_async_channels(endpoint: Endpoint) -> Channels[grpc.aio.Channel]:
    return _open(endpoint, grpc.aio.insecure_channel, grpc.aio.secure_channel)


def _open(endpoint: Endpoint, insecure: Callable[..., C], secure: Callable[..., C]) -> Channels[C]:
    credentials, options = endpoint.credentials(), endpoint.options
    if credentials is None:
        return Channels(endpoint, lambda address: insecure(address, options=options))
    return Channels(endpoint, lambda address: secure(address, credentials, options=options))
