"""Ports for servers that can't be asked which one they took."""

import socket


def free_port() -> int:
    """A port of this machine where nobody listens; another process may still be quicker."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
