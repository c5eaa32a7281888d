"""What gRPC itself says of a failed call, in words that help.

A server of ours gives every error a reason. An error without one comes from gRPC: its text names
one try of several, and often not the one that matters. So it is found out here what is wrong, and
the error gets a reason of its own.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dragoman_client._connection import TLS
from dragoman_client._errors import CallError, StatusCode

if TYPE_CHECKING:
    import socket

NO_SERVER = "NO_SERVER"
NO_HOST = "NO_HOST"
TLS_WANTED = "TLS_WANTED"
TLS_REFUSED = "TLS_REFUSED"
CERTIFICATE_REFUSED = "CERTIFICATE_REFUSED"
NOT_GRPC = "NOT_GRPC"
NOT_DRAGOMAN = "NOT_DRAGOMAN"
CONNECTION_LOST = "CONNECTION_LOST"
NO_ANSWER = "NO_ANSWER"

Hints = Mapping[str, str]
"""What to do about an error, by its reason; added to its message."""

PYTHON_HINTS = {
    NO_SERVER: "start one with 'dragoman serve BUNDLE', or give its address: Client('HOST:PORT')",
    NO_HOST: "look at the address of the client, or at DRAGOMAN_ADDRESS",
    TLS_WANTED: "give tls=TLS(), with root_certificates where the certificate is its own",
    TLS_REFUSED: "leave out tls, or ask who runs it",
    CERTIFICATE_REFUSED: "TLS(root_certificates=…) names who vouches for it",
    NOT_GRPC: "give the address of the server: Client('HOST:PORT')",
    CONNECTION_LOST: "try again",
    NO_ANSWER: "try again later, or with a longer timeout",
    "DEADLINE_PASSED": "try again later, or with a longer timeout",
    "DEADLINE_UNREACHABLE": "try again later, or with a longer timeout",
    "UNKNOWN_MODEL": "models() lists what there is",
    "UNKNOWN_LANGUAGES": "models() lists what there is",
    "NO_KEY": "give yours as key=…, or in DRAGOMAN_KEY",
    "WRONG_KEY": "give yours as key=…, or in DRAGOMAN_KEY",
}

_HINT_OF_THE_WIRE = ": ListModels"
"""Where a server's own hint begins, which names a call of gRPC."""
_PROBE_SECONDS = 2.0
"""Most seconds that it takes to find out why a server can't be reached."""
_NEVER_CONNECTED = ("; last error: ", "resolv", "resolution", "lookup")
"""What gRPC says where it never had a connection."""
_SCHEMES = ("dns:", "ipv4:", "ipv6:", "passthrough:", "unix:", "unix-abstract:", "xds:")
"""How addresses begin that only gRPC can read."""
_HTTP_STATUS = "http2 header with status: "
"""What gRPC says where a web server or a proxy has answered in place of a server."""


def explain(
    error: CallError, address: str, tls: TLS | None, seconds: float | None, hints: Hints
) -> CallError:
    """Give an error words that help, and return it.

    ``seconds`` is how long the call was allowed to take. May take two seconds itself, where a
    server can't be reached.
    """
    if not error.reason:
        said = error.message
        error.reason, error.message = _diagnosis(error, address, tls, seconds)
        error.add_note(f"gRPC says: {said}")
    if hint := hints.get(error.reason):
        error.message = f"{error.message.partition(_HINT_OF_THE_WIRE)[0]}: {hint}"
    error.args = (error.message,)
    return error


def _diagnosis(
    error: CallError, address: str, tls: TLS | None, seconds: float | None
) -> tuple[str, str]:
    """Return the reason and the message of what gRPC calls something else."""
    said = error.message
    if _HTTP_STATUS in said:
        status = said.partition(_HTTP_STATUS)[2].split()[0]
        return NOT_GRPC, f"what answers at {address} is no gRPC server, but says HTTP {status}"
    if error.code is StatusCode.DEADLINE_EXCEEDED:
        within = f"within {seconds:g} seconds" if seconds is not None else "in time"
        return NO_ANSWER, f"no answer from {address} {within}"
    if error.code is StatusCode.UNIMPLEMENTED:
        return NOT_DRAGOMAN, (
            f"the server at {address} does not know this call: it is no Dragoman server, or an "
            "older one"
        )
    if error.code is StatusCode.CANCELLED:
        return "CANCELLED", "the call was cancelled"
    if error.code is not StatusCode.UNAVAILABLE:
        return "", f"{address} failed: {said}"
    if any(each in said for each in _NEVER_CONNECTED):
        return _why_unreachable(address, tls)
    return CONNECTION_LOST, f"{address} was reached, and is not any more ({said})"


def _why_unreachable(address: str, tls: TLS | None) -> tuple[str, str]:
    """Return the reason and the message, found out by trying."""
    import socket  # only here: the SDK is to be quick to import

    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if address.startswith(_SCHEMES):
        return NO_SERVER, f"no server answers at {address}"
    if not host:
        return NO_SERVER, f"no server answers at {address}, which has no port"
    if not port.isdecimal() or int(port) not in range(1, 1 << 16):
        return NO_SERVER, f"no server answers at {address}, whose port is no number up to 65535"
    try:
        with socket.create_connection((host, int(port)), _PROBE_SECONDS) as connection:
            if tls is None:
                return TLS_WANTED, f"what listens at {address} does not speak gRPC without TLS"
            return _why_not_trusted(connection, address, host, tls)
    except socket.gaierror:
        return NO_HOST, f"there is no host named {host}"
    except (OSError, OverflowError):
        return NO_SERVER, f"no server answers at {address}"


def _why_not_trusted(
    connection: "socket.socket", address: str, host: str, tls: TLS
) -> tuple[str, str]:
    import ssl  # only here: the SDK is to be quick to import

    try:
        context = ssl.create_default_context(cafile=tls.root_certificates)
        context.set_alpn_protocols(["h2"])
        name = tls.server_name or host
        context.wrap_socket(connection, server_hostname=name).close()
    except ssl.SSLCertVerificationError as error:
        # The whole of the message may be a sentence with a stop of its own.
        why = error.verify_message.rstrip(".")
        return CERTIFICATE_REFUSED, f"the certificate of {address} is not trusted ({why})"
    except ssl.SSLError:
        return TLS_REFUSED, f"what listens at {address} does not speak TLS"
    return NOT_GRPC, f"what listens at {address} does not speak gRPC"
