"""The flags that every command against a server has: where it is, who asks, and which model."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman_client._client import Client
from dragoman_client._connection import TLS
from dragoman_client._diagnosis import (
    CERTIFICATE_REFUSED,
    CONNECTION_LOST,
    NO_ANSWER,
    NO_HOST,
    NO_SERVER,
    NOT_GRPC,
    TLS_REFUSED,
    TLS_WANTED,
    explain,
)
from dragoman_client._errors import CallError, ServerError

if TYPE_CHECKING:  # it takes gRPC's event loop along
    from dragoman_client._async_client import AsyncClient
    from dragoman_client._retries import Retries

_HINTS = {
    NO_SERVER: "start one with 'dragoman serve BUNDLE', or say where it is with --address",
    NO_HOST: "say where the server is with --address",
    TLS_WANTED: "give --tls, or --root-certificates where the certificate is its own",
    TLS_REFUSED: "leave out --tls, or ask who runs it",
    CERTIFICATE_REFUSED: "--root-certificates names who vouches for it",
    NOT_GRPC: "say where the server is with --address",
    CONNECTION_LOST: "try again",
    **dict.fromkeys(
        (NO_ANSWER, "DEADLINE_PASSED", "DEADLINE_UNREACHABLE"),
        "try again later, or with a longer --timeout",
    ),
    **dict.fromkeys(
        ("UNKNOWN_MODEL", "UNKNOWN_LANGUAGES"), "'dragoman models' shows what there is"
    ),
    **dict.fromkeys(("NO_KEY", "WRONG_KEY"), "give yours with --key, or in DRAGOMAN_KEY"),
}
"""What to do about an error, in the words of the command."""


class _CommandClient(Client):
    _hints = _HINTS


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
_ADDRESS_HELP = (
    "Address of the server, or several with commas: calls use them in turns, and share the lines "
    "of a file."
)
_KEY_HELP = (
    "Key by which the server knows you; better in the environment, where others don't see it."
)
_ROOTS_HELP = "Encrypt, and trust the certificates of this file instead of the system's."
_TIMEOUT_HELP = "Seconds that a call may take, retries included."

Timeout = Annotated[float, _option(_SERVER, "timeout", _TIMEOUT_HELP)]


@dataclass(frozen=True)
class ModelOptions:
    """Which model is to translate."""

    source_language: Annotated[
        str | None,
        _option(_MODEL, "source_language", "Language of the text, such as en.", "-s"),
    ] = None
    target_language: Annotated[
        str | None,
        _option(_MODEL, "target_language", "Language of the translation, such as pt-BR.", "-t"),
    ] = None
    model: Annotated[
        str | None,
        _option(_MODEL, "model", "Name of a model, as dragoman models shows it.", "-m"),
    ] = None

    def asked(self) -> dict[str, Any]:
        """Return the arguments of the SDK's calls that choose a model."""
        return asdict(self)


@dataclass(frozen=True)
class ServerOptions:
    """Where a server is, and how to speak to it."""

    address: Annotated[str, _option(_SERVER, "address", _ADDRESS_HELP, metavar="HOST:PORT")] = (
        "localhost:50051"
    )
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
        with _CommandClient(*addresses, tls=tls, key=self.key, timeout=self.timeout) as client:
            try:
                yield client
            except ServerError as error:
                if error.request_id:
                    error.message = f"{error.message} ({error.request_id})"
                raise

    def open_async(self, retries: "Retries") -> "AsyncClient":
        """Return a client for an event loop. Its errors are as gRPC says them; see ``explain``."""
        from dragoman_client._async_client import AsyncClient

        client = AsyncClient(
            *self._addresses(),
            tls=self._tls(),
            key=self.key,
            timeout=self.timeout,
            retries=retries,
        )
        client._hints = None  # to find out why costs time, and calls are measured
        return client

    def explain(self, error: CallError) -> CallError:
        """Return an error of ``open_async`` with words that help."""
        return explain(error, self._addresses()[0], self._tls(), self.timeout, _HINTS)

    def _addresses(self) -> list[str]:
        return [each.strip() for each in self.address.split(",")]

    def _tls(self) -> TLS | None:
        is_wanted = self.tls or self.root_certificates
        return TLS(root_certificates=self.root_certificates) if is_wanted else None


@dataclass(frozen=True)
class ProbeOptions(ServerOptions):
    """The same for probes, which do not wait long."""

    timeout: Timeout = 5.0
