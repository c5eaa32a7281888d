"""Why a server can't be reached, found out by trying.

What gRPC says of it names one try of several, and often not the one that matters.
"""

import socket
import ssl
from pathlib import Path

_SECONDS = 2.0


def why_unreachable(address: str, tls: bool, roots: Path | None) -> str:
    """In a line, with what to do next."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal():
        return _nobody(address)
    try:
        with socket.create_connection((host, int(port)), _SECONDS) as connection:
            if not tls:
                return (
                    f"what listens at {address} does not speak gRPC without TLS: give --tls, or "
                    "--root-certificates where the certificate is its own"
                )
            return _of_tls(connection, address, host, roots)
    except (OSError, OverflowError):
        return _nobody(address)


def _of_tls(connection: socket.socket, address: str, host: str, roots: Path | None) -> str:
    try:
        context = ssl.create_default_context(cafile=roots)
        context.set_alpn_protocols(["h2"])
        context.wrap_socket(connection, server_hostname=host).close()
    except ssl.SSLCertVerificationError as error:
        # The whole of the message may be a sentence with a stop of its own.
        return (
            f"the certificate of {address} is not trusted ({error.verify_message.rstrip('.')}); "
            "--root-certificates names who vouches for it"
        )
    except ssl.SSLError:
        return f"what listens at {address} does not speak TLS: leave out --tls, or ask who runs it"
    return f"what listens at {address} does not speak gRPC; say where the server is with --address"


def _nobody(address: str) -> str:
    return (
        f"no server answers at {address}: start one with 'dragoman serve BUNDLE', or say where it "
        "is with --address"
    )
