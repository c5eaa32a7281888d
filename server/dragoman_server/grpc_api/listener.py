"""The gRPC server of Dragoman: its port, its TLS, and the services on it."""

import ssl

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from dragoman_server.errors import ServerError
from dragoman_server.grpc_api.handlers import RPCS, SERVICE, grpc_handlers
from dragoman_server.grpc_api.health import Health
from dragoman_server.service.server import Server
from dragoman_server.service.settings import ServerSettings

_HEADROOM = 65_536
"""Bytes that gRPC lets pass beyond the limit of a message, so that our own refusal explains it."""
_SPARE_STREAMS = 128
"""Streams of a connection beyond the calls of all clients."""


class GrpcListener:
    """Serves ``dragoman.v1``, health and reflection on one port.

    Made on the event loop. Raises ``ServerError`` where the port or the certificate is no use.
    """

    name = "gRPC"

    def __init__(self, server: Server) -> None:
        settings = server.settings
        server.metrics.add_rpcs(RPCS)
        self.health = Health((SERVICE,))
        self._grpc = grpc.aio.server(options=_options(settings))
        handlers = grpc_handlers(server.handlers, server.calls)
        self._grpc.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers),)
        )
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self._grpc)
        reflection.enable_server_reflection(
            (
                SERVICE,
                health_pb2.DESCRIPTOR.services_by_name["Health"].full_name,
                reflection.SERVICE_NAME,
            ),
            self._grpc,
        )
        self.address = self._bind(settings)

    async def start(self) -> None:
        """Take connections."""
        await self._grpc.start()

    def set_ready(self, ready: bool) -> None:
        """Tell those who ask for health whether requests are taken."""
        self.health.set(serving=ready)

    async def stop(self, grace_seconds: float) -> None:
        """End: calls that are under way have so long."""
        await self._grpc.stop(grace_seconds)

    def _bind(self, settings: ServerSettings) -> str:
        credentials = _credentials(settings)
        try:
            if credentials:
                port = self._grpc.add_secure_port(settings.listen, credentials)
            else:
                port = self._grpc.add_insecure_port(settings.listen)
        except RuntimeError:
            raise ServerError(
                f"{settings.listen} can't be listened on: it is taken, or not of this machine; "
                "--listen HOST:PORT chooses another address"
            ) from None
        return f"{settings.listen.rpartition(':')[0]}:{port}"


def _options(settings: ServerSettings) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", 0),  # or a second server would share the port in silence
        ("grpc.max_receive_message_length", settings.limits.max_message_bytes + _HEADROOM),
        ("grpc.max_send_message_length", -1),
        # Of a connection: above our own limits, so that a call beyond those is refused with a
        # status instead of waiting in its client, and health can always be asked for.
        ("grpc.max_concurrent_streams", settings.limits.max_calls + _SPARE_STREAMS),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.max_connection_age_ms", round(1000 * settings.connection_age)),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 20_000),
    ]


def _credentials(settings: ServerSettings) -> grpc.ServerCredentials | None:
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None or key is None:
        return None
    try:
        # gRPC says nothing of a key that is not the certificate's, and fails each handshake.
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
        return grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror
        raise ServerError(f"{certificate} and {key} are no use for TLS: {reason}") from None
