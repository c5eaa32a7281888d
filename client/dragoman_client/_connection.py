"""Channels to servers: addresses, TLS, token, and what every call sends along."""

import itertools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import grpc

from dragoman_client._errors import ConfigurationError

C = TypeVar("C", grpc.Channel, grpc.aio.Channel)

SERVICE = "dragoman.v1.TranslationService"
HEALTH = "/grpc.health.v1.Health/Check"

_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.lb_policy_name", "round_robin"),  # over all addresses of a name
    ("grpc.enable_retries", 0),  # ours know what the server says of when to come back
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
]


@dataclass(frozen=True, kw_only=True)
class TLS:
    """A connection that is encrypted, to a server that proves its name."""

    root_certificates: Path | str | None = None
    """PEM; None: those that the system trusts."""
    server_name: str | None = None
    """Which name the certificate must have, where it is not that of the address."""


@dataclass(frozen=True)
class Endpoint:
    """Where servers are, and how to speak to them."""

    addresses: tuple[str, ...]
    tls: TLS | None
    token: str | None

    def __post_init__(self) -> None:
        if not self.addresses:
            raise ConfigurationError("there is no address: give one, as localhost:50051")
        for address in self.addresses:
            if not address or any(letter.isspace() for letter in address):
                raise ConfigurationError(f"{address!r} is not an address, as localhost:50051 is")
        if self.token is not None and (
            not self.token or not self.token.isascii() or not self.token.isprintable()
        ):
            raise ConfigurationError("the token is not one line of ASCII letters")

    @property
    def options(self) -> list[tuple[str, Any]]:
        if self.tls and self.tls.server_name:
            return [*_CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", self.tls.server_name)]
        return list(_CHANNEL_OPTIONS)

    def credentials(self) -> grpc.ChannelCredentials | None:
        if self.tls is None:
            return None
        roots = self.tls.root_certificates
        try:
            pem = Path(roots).read_bytes() if roots else None
        except OSError as error:
            raise ConfigurationError(f"{roots}: {error.strerror}") from None
        return grpc.ssl_channel_credentials(pem)

    def metadata(self) -> list[tuple[str, str]]:
        """Of one call. Each has an id, under which the server's log has it."""
        found = [("x-request-id", secrets.token_hex(8))]
        if self.token:
            found.append(("authorization", f"Bearer {self.token}"))
        return found


class Channels(Generic[C]):
    """One for each address, used in turns."""

    def __init__(self, endpoint: Endpoint, channels: Sequence[C]) -> None:
        self.endpoint = endpoint
        self.all = channels
        self._turns = itertools.cycle(channels)

    def next(self) -> C:
        return next(self._turns)


def open_channels(endpoint: Endpoint) -> Channels[grpc.Channel]:
    return _open(endpoint, grpc.insecure_channel, grpc.secure_channel)


def open_async_channels(endpoint: Endpoint) -> Channels[grpc.aio.Channel]:
    return _open(endpoint, grpc.aio.insecure_channel, grpc.aio.secure_channel)


def _open(endpoint: Endpoint, insecure: Callable[..., C], secure: Callable[..., C]) -> Channels[C]:
    credentials = endpoint.credentials()
    if credentials is None:
        channels = [insecure(a, options=endpoint.options) for a in endpoint.addresses]
    else:
        channels = [secure(a, credentials, options=endpoint.options) for a in endpoint.addresses]
    return Channels(endpoint, channels)
