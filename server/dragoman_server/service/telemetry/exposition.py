"""Metrics over HTTP, in a thread of its own: ``GET /metrics``."""

from collections.abc import Iterator
from contextlib import contextmanager

import prometheus_client

from dragoman_server.errors import ServerError
from dragoman_server.service.settings import join_address, split_address
from dragoman_server.service.telemetry.metrics import Metrics


@contextmanager
def exposed(metrics: Metrics, address: str) -> Iterator[str]:
    """Serve metrics; yields the address with the port that was found, where 0 was asked for."""
    if not address:
        yield ""
        return
    host, port = split_address("metrics", address)
    try:
        server, thread = prometheus_client.start_http_server(port, host, metrics.registry)
    except OSError as error:
        reason = error.strerror or "no such address"
        raise ServerError(
            f"metrics can't be served on {address}: {reason}; --metrics HOST:PORT chooses another "
            "address, and --metrics '' serves none"
        ) from None
    try:
        yield join_address(host, server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
