"""The settings of a server; each part checks its own."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from dragoman_server.engine.settings import EngineSettings

_LOCAL_NAMES = {"localhost", "ip6-localhost"}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a client may ask for, and how much of it the server keeps waiting."""

    max_message_bytes: int = 4 * 1024 * 1024
    """Most bytes of a request."""
    max_texts: int = 1024
    """Most texts, or pairs to score, of a request."""
    max_source_tokens: int = 65_536
    """Most source tokens of all texts of a request together."""
    max_target_tokens: int = 1024
    """Largest max_tokens that a request may ask for; the model's own limit holds besides."""
    max_waiting_requests: int = 256
    """Most requests that wait for rows of a model."""
    max_waiting_tokens: int = 131_072
    """Most source tokens that wait for rows of a model."""
    max_calls: int = 2048
    """Most calls under way at a time."""
    max_client_calls: int = 1024
    """Most calls under way of one key, or of one address where no keys are asked for."""
    max_streams: int = 512
    """Most streams under way at a time."""
    bulk_window: int = 64
    """Items of a bulk stream that are read before the first of them is answered."""
    stream_window: int = 128
    """Sentences of a stream that are translated before the first of them is sent."""
    max_deadline: float = 300.0
    """Most seconds that a call may take, whatever its client says; bulk streams may go on."""

    def __post_init__(self) -> None:
        _at_least_1(self)


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """What a server serves, where, to whom, and how it ends."""

    bundles: tuple[Path, ...]
    """Directories of the models."""
    listen: str = "127.0.0.1:50051"
    """Address to serve gRPC on."""
    metrics: str = "127.0.0.1:9464"
    """Address to serve metrics for Prometheus on, under /metrics; empty for none."""
    skip_refused: bool = False
    """Serve the other models where a bundle is refused."""
    tls_certificate: Path | None = None
    """PEM file of the certificate that clients are shown, with its chain."""
    tls_key: Path | None = None
    """PEM file of the certificate's private key."""
    keys: Path | None = None
    """File of the clients' keys, with a line NAME KEY or NAME KEY MODEL,MODEL for each."""
    allow_open: bool = False
    """Listen on an address that others can reach without TLS and keys."""
    grace: float = 30.0
    """Seconds that running calls have when the server is told to stop."""
    stall: float = 30.0
    """Seconds without a sign of life after which an engine that has work counts as lost."""
    connection_age: float = 300.0
    """Seconds, give or take a tenth, after which a client has to connect again; its calls go on.

    It asks its names again then. Clients that stay connected never find a server that was added.
    """
    limits: Limits = field(default_factory=Limits)
    """What clients may ask for."""
    engine: EngineSettings = field(default_factory=EngineSettings)
    """The settings of each model's engine; its queue has the bounds of ``limits``."""

    def __post_init__(self) -> None:
        if not self.bundles:
            raise ValueError("bundles are none: a server has at least one model")
        for name in ("grace", "stall", "connection_age"):
            if not 0 < getattr(self, name) <= 86_400:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be above 0 seconds")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together: one of them is missing")
        host, _ = split_address("listen", self.listen)
        if self.metrics:
            split_address("metrics", self.metrics)
        is_open = self.tls_certificate is None or self.keys is None
        if is_open and not is_local(host) and not self.allow_open:
            raise ValueError(
                f"listen is {self.listen!r}, which others can reach: give TLS and keys, "
                "or --allow-open where something else protects it"
            )


def split_address(name: str, address: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT``; a host of IP version 6 stands in brackets."""
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"{name} is {address!r}: it must be HOST:PORT, as 127.0.0.1:50051")
    return host, int(port)


def join_address(host: str, port: int) -> str:
    """Return ``HOST:PORT``, the reverse of ``split_address``."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_local(host: str) -> bool:
    """Whether only this machine can reach a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in _LOCAL_NAMES


def _at_least_1(settings: Limits) -> None:
    for name, value in vars(settings).items():
        if not value >= 1:  # nor what is no number
            raise ValueError(f"{name} is {value}: it must be at least 1")
