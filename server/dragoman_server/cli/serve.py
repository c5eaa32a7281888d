"""``dragoman serve``: flags, environment and a file to settings, and the server's exit code.

Every flag is also a variable of the environment and a key of the file: ``--max-texts``,
``DRAGOMAN_MAX_TEXTS``, ``max_texts = 64``. A flag goes before the environment, and that before the
file.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_type_hints

import typer

from dragoman_server.cli.flags import flags, with_flags
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.errors import ServerError
from dragoman_server.service.settings import Limits, ServerSettings
from dragoman_server.service.telemetry.logs import LogSettings

_ADDRESSES, _MODELS, _SECURITY = "Addresses", "Models and device", "TLS and keys"
_LIMITS, _LIFE = "Limits", "Life cycle and log"
_OF_THE_ENGINE = (
    *("device", "rows", "workers", "lanes", "threads", "pin"),
    *("share_weights", "cache_dir", "reserve_memory"),
    *("max_beam", "max_encode_tokens"),
)
_OF_HTTP = (
    *("http_origins", "http_timeout", "http_idle"),
    *("http_max_connections", "http_max_buffered_bytes"),
)

_FLAGS = [
    *flags(_ADDRESSES, ServerSettings, "listen", "http", "metrics", metavar="HOST:PORT"),
    *flags(_MODELS, EngineSettings, *_OF_THE_ENGINE),
    *flags(_MODELS, ServerSettings, "skip_refused"),
    *flags(_MODELS, ServerSettings, "glossaries", metavar="DIRECTORY"),
    *flags(_SECURITY, ServerSettings, "tls_certificate", "tls_key", "keys", metavar="FILE"),
    *flags(_SECURITY, ServerSettings, "allow_open"),
    *flags(_LIMITS, Limits, *(limit.name for limit in fields(Limits))),
    *flags(_LIMITS, ServerSettings, *_OF_HTTP, "detection_lead"),
    *flags(_LIFE, ServerSettings, "grace", "stall", "connection_age"),
    *flags(_LIFE, LogSettings, "log_format", "log_level"),
]


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make what a file says the default of each flag."""
    if path is None:
        return None
    from dragoman_server.cli.config_file import read_config

    known = get_type_hints(serve)
    for other in ("context", "config", "return"):
        del known[other]
    context.default_map = {**(context.default_map or {}), **read_config(path, known)}
    return path


@with_flags(_FLAGS)
def serve(
    context: typer.Context,
    bundles: Annotated[
        list[Path],
        typer.Argument(
            metavar="BUNDLE...",
            envvar="DRAGOMAN_BUNDLES",
            help="Directories of models, as dragoman export writes them; in the environment, with "
            f"{os.pathsep} between them.",
        ),
    ],
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            envvar="DRAGOMAN_CONFIG",
            callback=_read_config,
            is_eager=True,
            metavar="FILE.toml",
            help="A file with settings by the names of these flags, with _ for -.",
        ),
    ] = None,
    **settings: Any,
) -> None:
    """Serve models over gRPC and HTTP, with metrics for Prometheus.

    Examples:

      dragoman serve models/en-pt

      dragoman serve models/en-pt models/en-de
        --listen 0.0.0.0:50051 --http 0.0.0.0:8080
        --tls-certificate cert.pem --tls-key key.pem --keys keys.txt

    SIGTERM lets running calls finish for --grace seconds; a second signal ends the process at once.
    """
    from dragoman_server.cli.environment import known_variables, unknown_variables

    _run(dict(context.params), list(unknown_variables(known_variables(context))))


def _run(given: dict[str, Any], warnings: Iterable[str]) -> NoReturn:
    import asyncio
    import logging
    import sys

    from dragoman_server.cli.banner import banner
    from dragoman_server.listeners import protocols
    from dragoman_server.service.server import Server
    from dragoman_server.service.telemetry import logs

    settings = _settings(given)
    logs.set_up(_log_settings(given))
    for warning in warnings:
        logging.getLogger("dragoman.server").warning("%s", warning)

    async def run() -> int:
        server = Server(settings, protocols(settings))
        _stop_by_signals(server)
        return await server.run(lambda server: print(banner(server), flush=True))

    with asyncio.Runner() as runner:
        code = runner.run(run())
        # A lane that hangs, a model that is half loaded, or a text that is being split can't be
        # waited for, and would keep the process from ending.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _stop_by_signals(server: Any) -> None:
    """Let the first signal ask, and the second insist."""
    import asyncio
    import logging
    import signal

    log = logging.getLogger("dragoman.server")

    def stop(number: int) -> None:
        if server.is_stopping:
            os._exit(128 + number)
        log.info("told to stop by %s", signal.Signals(number).name)
        server.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)


def _settings(given: Mapping[str, Any]) -> ServerSettings:
    """Return the settings that flags come to. Raises ``ServerError`` for one that is wrong."""
    limits = _of(Limits, given)
    # The bounds of the queue are the server's, for the engines of all models.
    engine = _of(EngineSettings, {name: given[name] for name in given if name not in limits})
    try:
        return ServerSettings(
            **{**_of(ServerSettings, given), "bundles": tuple(given["bundles"])},
            limits=Limits(**limits),
            engine=EngineSettings(**engine),
        )
    except ValueError as error:
        raise ServerError(str(error)) from None


def _log_settings(given: Mapping[str, Any]) -> LogSettings:
    try:
        return LogSettings(**_of(LogSettings, given))
    except ValueError as error:
        raise ServerError(str(error)) from None


def _of(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: given[field.name] for field in fields(kind) if field.name in given}
