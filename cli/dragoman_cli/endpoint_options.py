"""The flags that every command against a server has: where it is, and who asks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from dragoman_cli.diagnosis import why_unreachable
from dragoman_client._client import Client
from dragoman_client._connection import TLS
from dragoman_client._errors import (
    AuthenticationError,
    CallError,
    NotFoundError,
    ServerError,
    TimedOutError,
    UnavailableError,
)

_PANEL = "Server"

AddressOption = Annotated[
    str,
    typer.Option(
        "--address",
        envvar="DRAGOMAN_ADDRESS",
        metavar="HOST:PORT[,...]",
        rich_help_panel=_PANEL,
        help="Where the server is; several are used in turns.",
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="DRAGOMAN_KEY",
        rich_help_panel=_PANEL,
        help="Better in the environment, where others don't see it.",
        show_envvar=True,
    ),
]
TlsOption = Annotated[
    bool, typer.Option("--tls", envvar="DRAGOMAN_TLS", rich_help_panel=_PANEL, help="Encrypt.")
]
RootsOption = Annotated[
    Path | None,
    typer.Option(
        "--root-certificates",
        envvar="DRAGOMAN_ROOT_CERTIFICATES",
        metavar="FILE.pem",
        rich_help_panel=_PANEL,
        help="Encrypt, and trust these instead of the system's.",
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", envvar="DRAGOMAN_TIMEOUT", rich_help_panel=_PANEL, help="Seconds of a call."
    ),
]
DEFAULT_ADDRESS = "localhost:50051"
_NO_CONNECTION = "; last error: "
"""What gRPC says where it never had one."""


@contextmanager
def connected(
    address: str, key: str | None, tls: bool, roots: Path | None, timeout: float
) -> Iterator[Client]:
    secure = TLS(root_certificates=roots) if tls or roots else None
    addresses = [each.strip() for each in address.split(",")]
    with Client(*addresses, tls=secure, key=key, timeout=timeout) as client:
        try:
            yield client
        except CallError as error:
            error.args = (_with_advice(error, addresses[0], secure is not None, roots),)
            raise


def _with_advice(error: CallError, address: str, tls: bool, roots: Path | None) -> str:
    """What was wrong, and what to do next."""
    if isinstance(error, NotFoundError):
        return f"{error}; 'dragoman models' shows what there is"
    if isinstance(error, AuthenticationError):
        return f"{error}; give yours with --key or DRAGOMAN_KEY"
    if isinstance(error, TimedOutError):
        return f"no answer from {address} in time; try again later, or with a longer --timeout"
    if isinstance(error, ServerError) and error.request_id:
        return f"{error} ({error.request_id})"
    if not isinstance(error, UnavailableError) or error.reason:
        return str(error)
    if _NO_CONNECTION not in error.message:
        return f"{address} was reached, and is not any more ({error.message}); try again"
    return why_unreachable(address, tls, roots)
