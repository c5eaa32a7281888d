"""``dragoman serve``: flags, environment and a file to settings, and the server's exit code.

Every flag is also a variable of the environment and a key of the file: ``--max-texts``,
``DRAGOMAN_MAX_TEXTS``, ``max_texts = 64``. A flag goes before the environment, and that before the
file.
"""

import os
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

import typer

_ADDRESSES, _MODELS, _SECURITY = "Addresses", "Models and device", "TLS and keys"
_LIMITS, _LIFE = "Limits", "Life cycle and log"


def _option(panel: str, name: str, text: str, **more: Any) -> Any:
    return typer.Option(
        f"--{name}",
        envvar=f"DRAGOMAN_{name.replace('-', '_').upper()}",
        rich_help_panel=panel,
        help=text,
        **more,
    )


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make what a file says the default of each flag."""
    import tomllib

    from dragoman_server.errors import ServerError

    if path is None:
        return None
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ServerError(f"{path}: {reason}") from None
    known = get_type_hints(serve)
    for other in ("context", "config", "return"):
        del known[other]
    for key, value in table.items():
        if key not in known:
            raise ServerError(
                f"{path}: {key!r} is no setting; there are {', '.join(sorted(known))}"
            )
        if problem := _wrong_type(known[key], value):
            raise ServerError(f"{path}: {key} is {value!r}: it must be {problem}")
    context.default_map = {**(context.default_map or {}), **table}
    return path


def _wrong_type(hint: Any, value: object) -> str | None:
    """What a value of the file should be, where it is something else.

    A flag's text is converted; so would these be, and 1.5 rows become one.
    """
    if get_origin(hint) is list:
        is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return None if is_list else "a list of texts"
    kind = (get_args(hint) or (hint,))[0]  # of what may be None, the other
    kinds, name = _TOML_TYPES.get(kind, ((str,), "a text"))
    return None if type(value) in kinds else name


_TOML_TYPES: dict[type, tuple[tuple[type, ...], str]] = {
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
}
"""Of a flag's type; all others are texts."""


def serve(
    context: typer.Context,
    bundles: Annotated[
        list[Path],
        typer.Argument(
            metavar="BUNDLE...",
            envvar="DRAGOMAN_BUNDLES",
            help="Directories of models, as dragoman export writes them; in the environment, with "
            f"{os.pathsep} between.",
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
            help="Settings by the names of these flags, with _ for -.",
        ),
    ] = None,
    listen: Annotated[
        str, _option(_ADDRESSES, "listen", "Where to serve gRPC.", metavar="HOST:PORT")
    ] = "127.0.0.1:50051",
    metrics: Annotated[
        str,
        _option(
            _ADDRESSES,
            "metrics",
            "Where to serve Prometheus, under /metrics; empty for nowhere.",
            metavar="HOST:PORT",
        ),
    ] = "127.0.0.1:9464",
    device: Annotated[
        str, _option(_MODELS, "device", "cpu or cuda; cuda needs a float16 bundle.")
    ] = "cpu",
    rows: Annotated[
        int, _option(_MODELS, "rows", "Sentences that are decoded at a time, of each model.")
    ] = 64,
    lanes: Annotated[
        int | None,
        _option(_MODELS, "lanes", "Lanes side by side.  [default: to suit the cores]"),
    ] = None,
    threads: Annotated[
        int | None, _option(_MODELS, "threads", "Of each lane.  [default: to suit the cores]")
    ] = None,
    max_beam: Annotated[int, _option(_MODELS, "max-beam", "Largest beam.")] = 8,
    max_encode_tokens: Annotated[
        int, _option(_MODELS, "max-encode-tokens", "Most source tokens encoded between two steps.")
    ] = 512,
    skip_refused: Annotated[
        bool,
        _option(_MODELS, "skip-refused", "Serve the others where a bundle is refused."),
    ] = False,
    tls_certificate: Annotated[
        Path | None, _option(_SECURITY, "tls-certificate", "PEM, with its chain.")
    ] = None,
    tls_key: Annotated[Path | None, _option(_SECURITY, "tls-key", "PEM.")] = None,
    keys: Annotated[
        Path | None,
        _option(_SECURITY, "keys", "A file of lines NAME KEY [MODEL,MODEL]."),
    ] = None,
    allow_open: Annotated[
        bool,
        _option(
            _SECURITY, "allow-open", "Listen for others than this machine without TLS or keys."
        ),
    ] = False,
    max_message_bytes: Annotated[int, _option(_LIMITS, "max-message-bytes", "Of a request.")] = 4
    * 1024
    * 1024,
    max_texts: Annotated[int, _option(_LIMITS, "max-texts", "Of a request.")] = 1024,
    max_source_tokens: Annotated[
        int, _option(_LIMITS, "max-source-tokens", "Of all texts of a request.")
    ] = 65_536,
    max_target_tokens: Annotated[
        int, _option(_LIMITS, "max-target-tokens", "Most that a request's max_tokens may be.")
    ] = 1024,
    max_waiting_requests: Annotated[
        int, _option(_LIMITS, "max-waiting-requests", "Requests that wait, of each model.")
    ] = 256,
    max_waiting_tokens: Annotated[
        int, _option(_LIMITS, "max-waiting-tokens", "Source tokens that wait, of each model.")
    ] = 131_072,
    max_calls: Annotated[int, _option(_LIMITS, "max-calls", "Calls at a time.")] = 2048,
    max_client_calls: Annotated[
        int, _option(_LIMITS, "max-client-calls", "Of one key, or address without keys.")
    ] = 1024,
    max_streams: Annotated[int, _option(_LIMITS, "max-streams", "Streams at a time.")] = 512,
    bulk_window: Annotated[
        int, _option(_LIMITS, "bulk-window", "Items of a bulk stream that are read ahead.")
    ] = 64,
    stream_window: Annotated[
        int, _option(_LIMITS, "stream-window", "Sentences of a stream translated ahead.")
    ] = 128,
    max_deadline: Annotated[
        float, _option(_LIMITS, "max-deadline", "Seconds that a call may take.")
    ] = 300.0,
    grace: Annotated[
        float, _option(_LIFE, "grace", "Seconds for running calls when told to stop.")
    ] = 30.0,
    stall: Annotated[
        float, _option(_LIFE, "stall", "Seconds after which a silent engine counts as lost.")
    ] = 30.0,
    connection_age: Annotated[
        float, _option(_LIFE, "connection-age", "Seconds until a client has to connect again.")
    ] = 300.0,
    log_format: Annotated[
        str, _option(_LIFE, "log-format", "json, text, or auto: text on a terminal.")
    ] = "auto",
    log_level: Annotated[
        str, _option(_LIFE, "log-level", "debug, info, warning or error.")
    ] = "info",
) -> None:
    """Serve models over gRPC, with metrics for Prometheus.

    Examples:

      dragoman serve models/en-pt

      dragoman serve models/en-pt models/en-de --listen 0.0.0.0:50051
        --tls-certificate cert.pem --tls-key key.pem --keys keys.txt

    SIGTERM lets running calls finish for --grace seconds; a second signal ends the process at once.
    """
    _run(dict(context.params))


def _run(given: dict[str, Any]) -> NoReturn:
    import asyncio
    import sys

    from dragoman_server.cli.banner import banner
    from dragoman_server.errors import ServerError
    from dragoman_server.grpc_api.listener import GrpcListener
    from dragoman_server.service.server import Server
    from dragoman_server.service.telemetry import logs

    settings = _settings(given)
    for name, allowed in (("log_format", logs.FORMATS), ("log_level", logs.LEVELS)):
        if given[name] not in allowed:
            raise ServerError(f"{name} is {given[name]!r}: it must be one of {', '.join(allowed)}")
    logs.set_up(given["log_format"], given["log_level"])

    async def run() -> int:
        server = Server(settings, [GrpcListener])
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
    """The first signal asks, the second insists."""
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


def _settings(given: dict[str, Any]) -> Any:
    from dataclasses import fields

    from dragoman_server.engine.settings import EngineSettings
    from dragoman_server.errors import ServerError
    from dragoman_server.service.settings import Limits, ServerSettings

    def of(kind: type[Any]) -> dict[str, Any]:
        return {field.name: given[field.name] for field in fields(kind) if field.name in given}

    limits = of(Limits)
    engine = {name: value for name, value in of(EngineSettings).items() if name not in limits}
    try:
        return ServerSettings(
            **{**of(ServerSettings), "bundles": tuple(given["bundles"])},
            limits=Limits(**limits),
            engine=EngineSettings(**engine),
        )
    except ValueError as error:
        raise ServerError(str(error)) from None
