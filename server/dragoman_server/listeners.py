"""The protocols that a server is reached by, as its settings say."""

from collections.abc import Callable, Sequence

from dragoman_server.grpc_api.listener import GrpcListener
from dragoman_server.http_api.listener import HttpListener
from dragoman_server.service.server import Listener, Server
from dragoman_server.service.settings import ServerSettings


def protocols(settings: ServerSettings) -> Sequence[Callable[[Server], Listener]]:
    """Return what makes the listeners of a server. gRPC is always there, and first."""
    return [GrpcListener, HttpListener] if settings.http else [GrpcListener]
