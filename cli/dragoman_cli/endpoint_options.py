"""The flags that every command against a server has: where it is, who asks, and which model."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:  # it takes gRPC's event loop along
    from dragoman_client._async_client import AsyncClient
    from dragoman_client._retries import Retries

_NO_CONNECTION = "; last error: "
"""What gRPC says where it never had a connection."""


def _option(panel: str, name: str, text: str, *short: str, **more: Any) -> Any:
    return typer.Option(
        f"--{name.replace('_', '-')}",
        *short,
        envvar=f"DRAGOMAN_{name.upper()}",
        rich_help_panel=panel,
        help=text,
        **more,
    )


_SERVER, _MODEL = "Server", "Languages and model"
_ADDRESS_HELP = "Address of the server; several, with commas, are used in turns."
_KEY_HELP = (
    "Key by which the server knows you; better in the environment, where others don't see it."
)
_ROOTS_HELP = "Encrypt, and trust the certificates of this file instead of the system's."
_TIMEOUT_HELP = "Seconds that a call may take, retries included."

Timeout = Annotated[float, _option(_SERVER, "timeout", _TIMEOUT_HELP)]


@dataclass(frozen=True)
class ModelOptions:
    """Which model is to translate."""

    source: Annotated[
        str | None, _option(_MODEL, "source", "Language of the text, as en.", "-s")
    ] = None
    target: Annotated[
        str | None, _option(_MODEL, "target", "Language of the translation, as pt-BR.", "-t")
    ] = None
    model: Annotated[
        str | None,
        _option(_MODEL, "model", "Name of a model, as dragoman models shows it.", "-m"),
    ] = None

    def asked(self) -> dict[str, Any]:
        """Return the arguments of the SDK's calls that choose a model."""
        return {"source": self.source, "target": self.target, "model": self.model}


@dataclass(frozen=True)
class ServerOptions:
    """Where a server is, and how to speak to it."""

    address: Annotated[
        str, _option(_SERVER, "address", _ADDRESS_HELP, metavar="HOST:PORT[,...]")
    ] = "localhost:50051"
    key: Annotated[str | None, _option(_SERVER, "key", _KEY_HELP, show_envvar=True)] = None
    tls: Annotated[bool, _option(_SERVER, "tls", "Encrypt the connection.")] = False
    root_certificates: Annotated[
        Path | None, _option(_SERVER, "root_certificates", _ROOTS_HELP, metavar="FILE.pem")
    ] = None
    timeout: Timeout = 60.0

    @contextmanager
    def connected(self) -> Iterator[Client]:
        """Connect; what goes wrong meanwhile says what to do about it."""
        addresses, tls = self._addresses(), self._tls()
        with Client(*addresses, tls=tls, key=self.key, timeout=self.timeout) as client:
            try:
                yield client
            except CallError as error:
                roots = self.root_certificates
                error.args = (_with_advice(error, addresses[0], tls is not None, roots),)
                raise

    def open_async(self, retries: "Retries") -> "AsyncClient":
        """Return a client for an event loop."""
        from dragoman_client._async_client import AsyncClient

        return AsyncClient(
            *self._addresses(),
            tls=self._tls(),
            key=self.key,
            timeout=self.timeout,
            retries=retries,
        )

    def _addresses(self) -> list[str]:
        return [each.strip() for each in self.address.split(",")]

    def _tls(self) -> TLS | None:
        is_wanted = self.tls or self.root_certificates
        return TLS(root_certificates=self.root_certificates) if is_wanted else None


@dataclass(frozen=True)
class ProbeOptions(ServerOptions):
    """The same for probes, which do not wait long."""

    timeout: Timeout = 5.0


def _with_advice(error: CallError, address: str, tls: bool, roots: Path | None) -> str:
    """Return what was wrong, and what to do next."""
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
