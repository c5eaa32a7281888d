"""The settings of a server; each part checks its own."""

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path

from dragoman_server.engine.settings import EngineSettings

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")
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
    max_tags: int = 100_000
    """Most tags of all texts of a request together, where they have markup."""
    max_glossary_entries: int = 1000
    """Most entries of a glossary that comes with a request."""
    max_glossaries: int = 100
    """Most glossaries that are kept for one key, or for all clients where no keys are asked for."""
    max_stored_entries: int = 10_000
    """Most entries of a glossary that is kept."""
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
    http: str = "127.0.0.1:8080"
    """Address to serve HTTP on: the JSON API, the page and the documentation; empty for none."""
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
    glossaries: Path | None = None
    """Directory of the glossaries that are kept for clients; without it, none are."""
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
    http_origins: str = ""
    """Origins of pages that browsers may call from, with commas; * for all, empty for our own."""
    http_timeout: float = 30.0
    """Seconds that an HTTP client has to send a request, and then to take what is left of it."""
    http_idle: float = 75.0
    """Seconds after which an HTTP connection without a request is closed."""
    http_max_connections: int = 4096
    """Most HTTP connections at a time."""
    http_max_buffered_bytes: int = 64 * 1024 * 1024
    """Most bytes of HTTP requests, of all clients together, that are being received."""
    detection_lead: float = 0.1
    """Least difference of confidence between a detected language and the next, 0 to 1."""
    limits: Limits = field(default_factory=Limits)
    """What clients may ask for."""
    engine: EngineSettings = field(default_factory=EngineSettings)
    """The settings of each model's engine; its queue has the bounds of ``limits``."""

    def __post_init__(self) -> None:
        if not self.bundles:
            raise ValueError("bundles are none: a server has at least one model")
        for name in ("grace", "stall", "connection_age", "http_timeout", "http_idle"):
            if not 0 < getattr(self, name) <= 86_400:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be above 0 seconds")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together: one of them is missing")
        for name in ("http_max_connections", "http_max_buffered_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 1")
        if not 0 <= self.detection_lead <= 1:
            raise ValueError(f"detection_lead is {self.detection_lead}: it must be from 0 to 1")
        for origin in self.origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"http_origins has {origin!r}: an origin is as https://example.org"
                )
        if self.metrics:
            split_address("metrics", self.metrics)
        self._check_openness("listen", self.listen)
        if self.http:
            self._check_openness("http", self.http)

    @property
    def origins(self) -> list[str]:
        """The origins that browsers may call from."""
        return [origin.strip() for origin in self.http_origins.split(",") if origin.strip()]

    def _check_openness(self, name: str, address: str) -> None:
        host, _ = split_address(name, address)
        is_open = self.tls_certificate is None or self.keys is None
        if is_open and not is_local(host) and not self.allow_open:
            raise ValueError(
                f"{name} is {address!r}, which others can reach: give TLS and keys, "
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
