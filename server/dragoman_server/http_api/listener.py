"""The HTTP server of Dragoman: its port and its TLS, on the same event loop as all else."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from dragoman_server.errors import ServerError
from dragoman_server.http_api.app import Application
from dragoman_server.http_api.protocol import BoundedProtocol
from dragoman_server.service.server import Server
from dragoman_server.service.settings import ServerSettings, join_address, split_address

_BACKLOG = 2048
"""Connections that wait to be taken."""
_HEADERS = [("x-content-type-options", "nosniff")]


class HttpListener:
    """Serves the APIs, health, metrics and the page on one port.

    Made on the event loop. Raises ``ServerError`` where the port or the certificate is no use.
    """

    name = "HTTP"

    def __init__(self, server: Server) -> None:
        settings = server.settings
        self._app = Application(server)
        server.metrics.add_rpcs(self._app.rpcs)
        self._server = _Uvicorn(_config(self._app, settings))
        self._socket = _bind(settings.http)
        self._serving: asyncio.Task[None] | None = None
        host, _ = split_address("http", settings.http)
        self.address = join_address(host, self._socket.getsockname()[1])

    async def start(self) -> None:
        """Take connections."""
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        await asyncio.wait((self._serving, self._server.ready), return_when=asyncio.FIRST_COMPLETED)

    def set_ready(self, ready: bool) -> None:
        """Tell those who ask for health whether requests are taken."""
        self._app.is_ready = ready

    async def stop(self, grace_seconds: float) -> None:
        """End: calls that are under way have so long."""
        if self._serving is None:
            self._socket.close()
            return
        self._server.end_within(grace_seconds)
        await self._serving


class _Uvicorn(uvicorn.Server):
    """uvicorn without its signal handlers: the process has its own."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set_result(None)

    def end_within(self, seconds: float) -> None:
        """Take no more connections, and cut off what is not over in so many seconds."""
        self.config.timeout_graceful_shutdown = seconds  # type: ignore[assignment] # any number
        self.should_exit = True


def _config(app: Application, settings: ServerSettings) -> uvicorn.Config:
    bounds = {
        "request_seconds": settings.http_timeout,
        "stall_seconds": settings.limits.max_deadline,
    }
    protocol = type("Protocol", (BoundedProtocol,), bounds)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # what clients do wrong is no news
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=_HEADERS,
        backlog=_BACKLOG,
        limit_concurrency=settings.http_max_connections,
        timeout_keep_alive=settings.http_idle,  # type: ignore[arg-type] # any number
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror
        raise ServerError(
            f"{settings.tls_certificate} and {settings.tls_key} are no use for TLS: {reason}"
        ) from None
    return config


def _bind(address: str) -> socket.socket:
    host, port = split_address("http", address)
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(place)
            bound.listen(_BACKLOG)  # or a second server could bind it too, and fail only later
        except OSError:
            bound.close()
            raise
    except OSError:
        raise ServerError(
            f"{address} can't be listened on for HTTP: it is taken, or not of this machine; "
            "--http names another address, or none as --http ''"
        ) from None
    return bound
