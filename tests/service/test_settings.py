"""Flags, environment and file: each setting in all three, checked where it is built."""

import inspect
import math
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from dragoman_server.cli import serve as serve_module
from dragoman_server.cli.environment import unknown_variables
from dragoman_server.cli.flags import field_docs
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.errors import ServerError
from dragoman_server.service.settings import Limits, ServerSettings, join_address, split_address
from dragoman_server.service.telemetry.logs import LogSettings
from support import MODEL
from support.service_process import started

APP = typer.Typer(add_completion=False)
APP.command("serve")(serve_module.serve)
NOT_FLAGS = {"limits", "engine", "max_waiting_sentences"}
"""Settings that are made of others."""
OF_THE_SERVER = {f.name for f in fields(EngineSettings)} & {f.name for f in fields(Limits)}
"""Limits of the queue: an engine is given the server's when its model is loaded."""

Read = Callable[..., ServerSettings]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """The settings that a command line comes to."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(serve_module, "_run", lambda given, warnings: found.append(given))

    def run(*arguments: str | Path, **environment: str) -> ServerSettings:
        result = CliRunner().invoke(APP, list(map(str, arguments)), env=environment)
        if isinstance(result.exception, ServerError):
            raise result.exception
        assert result.exit_code == 0, result.output
        settings: ServerSettings = serve_module._settings(found.pop())
        return settings

    return run


def flags() -> dict[str, Any]:
    """By name, as the command knows them."""
    return {str(p.name): p for p in get_command(APP).params if p.name != "help"}


def test_every_setting_is_a_flag_a_variable_and_a_key() -> None:
    known = {f.name for kind in (ServerSettings, Limits, EngineSettings) for f in fields(kind)}
    extra = {"config", *(f.name for f in fields(LogSettings))}
    assert flags().keys() == (known - NOT_FLAGS) | extra
    for name, parameter in flags().items():
        assert parameter.envvar == f"DRAGOMAN_{name.upper()}"
        if name != "bundles":
            assert parameter.opts[0] == f"--{name.replace('_', '-')}"
            assert parameter.help


def test_what_is_not_said_has_the_defaults_of_the_settings(read: Read) -> None:
    assert read("x") == ServerSettings(bundles=(Path("x"),))
    defaults = inspect.signature(serve_module.serve).parameters
    assert LogSettings(**{f.name: defaults[f.name].default for f in fields(LogSettings)}) == (
        LogSettings()
    )


def test_help_is_what_the_fields_say() -> None:
    for kind in (ServerSettings, EngineSettings, Limits, LogSettings):
        for name, text in field_docs(kind).items():
            is_made_otherwise = name == "bundles" or (name in OF_THE_SERVER and kind is not Limits)
            if name in flags() and not is_made_otherwise:
                assert flags()[name].help == text
    assert field_docs(ServerSettings)["stall"].startswith("Seconds without a sign of life")


VALUES: dict[str, tuple[str, object]] = {
    "listen": ("127.0.0.1:1", "127.0.0.1:1"),
    "metrics": ("127.0.0.1:2", "127.0.0.1:2"),
    "device": ("cuda", "cuda"),
    "rows": ("5", 5),
    "lanes": ("2", 2),
    "threads": ("3", 3),
    "max_beam": ("4", 4),
    "max_encode_tokens": ("99", 99),
    "skip_refused": ("true", True),
    "allow_open": ("true", True),
    "tls_certificate": ("a.pem", Path("a.pem")),
    "tls_key": ("b.pem", Path("b.pem")),
    "keys": ("keys.txt", Path("keys.txt")),
    "max_message_bytes": ("1001", 1001),
    "max_texts": ("12", 12),
    "max_source_tokens": ("13", 13),
    "max_target_tokens": ("14", 14),
    "max_waiting_requests": ("15", 15),
    "max_waiting_tokens": ("16", 16),
    "max_calls": ("17", 17),
    "max_client_calls": ("18", 18),
    "max_streams": ("19", 19),
    "bulk_window": ("20", 20),
    "stream_window": ("24", 24),
    "max_deadline": ("21.5", 21.5),
    "grace": ("22.5", 22.5),
    "stall": ("23.5", 23.5),
    "connection_age": ("25.5", 25.5),
}


def expected() -> ServerSettings:
    def of(kind: type[Any]) -> dict[str, Any]:
        return {f.name: VALUES[f.name][1] for f in fields(kind) if f.name in VALUES}

    own = {name: value for name, value in of(EngineSettings).items() if name not in OF_THE_SERVER}
    return ServerSettings(
        bundles=(Path("x"), Path("y")),
        limits=Limits(**of(Limits)),
        engine=EngineSettings(**own),
        **of(ServerSettings),
    )


def test_all_of_them_as_flags(read: Read) -> None:
    arguments = ["x", "y"]
    for name, (text, value) in VALUES.items():
        flag = f"--{name.replace('_', '-')}"
        arguments += [flag] if value is True else [flag, text]
    assert read(*arguments) == expected()


def test_all_of_them_in_the_environment(read: Read) -> None:
    environment = {f"DRAGOMAN_{name.upper()}": text for name, (text, _) in VALUES.items()}
    assert read(**environment, DRAGOMAN_BUNDLES=f"x{os.pathsep}y") == expected()


def as_toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | int | float) else f'"{value}"'


def test_all_of_them_in_a_file(read: Read, tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    lines = [f"{name} = {as_toml(value)}" for name, (_, value) in VALUES.items()]
    file.write_text("\n".join(['bundles = ["x", "y"]', 'log_format = "json"', *lines]))
    assert read("--config", file) == expected()
    assert read(DRAGOMAN_CONFIG=str(file)) == expected()


def test_a_flag_goes_before_the_environment_and_that_before_the_file(
    read: Read, tmp_path: Path
) -> None:
    file = tmp_path / "server.toml"
    file.write_text('bundles = ["f"]\nrows = 1\nmax_texts = 1\nmax_waiting_tokens = 1\ngrace = 1\n')
    settings = read(
        *("x", "--rows", "3", "--config", file),
        DRAGOMAN_ROWS="2",
        DRAGOMAN_MAX_TEXTS="2",
        DRAGOMAN_BUNDLES="e",
    )
    assert settings.bundles == (Path("x"),)
    assert settings.engine.rows == 3
    assert settings.limits.max_texts == 2
    assert settings.limits.max_waiting_tokens == 1
    assert settings.grace == 1


@pytest.mark.parametrize("name", ["http", "metrics"])
def test_http_and_metrics_can_be_served_nowhere(read: Read, tmp_path: Path, name: str) -> None:
    assert getattr(read("x", f"--{name}", ""), name) == ""
    file = tmp_path / "server.toml"
    file.write_text(f'{name} = ""')
    assert getattr(read("x", "--config", file), name) == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rows = ", "Invalid value"),
        ("row = 1", "'row' is no setting; there are allow_open, "),
        ("config = 'x'", "'config' is no setting"),
        ("[limits]\nmax_texts = 1", "'limits' is no setting"),
        ("rows = 'many'", "rows is 'many': it must be a whole number"),
        ("rows = 1.5", "rows is 1.5: it must be a whole number"),
        ("rows = true", "rows is True: it must be a whole number"),
        ("grace = 'long'", "grace is 'long': it must be a number"),
        ("skip_refused = 1", "skip_refused is 1: it must be true or false"),
        ("listen = 5", "listen is 5: it must be a text"),
        ("bundles = 'models/en-pt'", "bundles is 'models/en-pt': it must be a list of texts"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_key(
    read: Read, tmp_path: Path, text: str, problem: str
) -> None:
    file = tmp_path / "server.toml"
    file.write_text(text)
    with pytest.raises(ServerError) as error:
        read("x", "--config", file)
    assert str(error.value).startswith(f"{file}: ")
    assert problem in str(error.value)


def test_a_file_that_is_not_there_is_refused(read: Read, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="No such file"):
        read("x", "--config", tmp_path / "nowhere")


@pytest.mark.parametrize("name", [f.name for f in fields(Limits)])
@pytest.mark.parametrize("value", [0, -1, math.nan])
def test_a_limit_is_at_least_1(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{name} is {value}: it must be at least 1"):
        Limits(**{name: value})


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"bundles": ()}, "bundles are none"),
        ({"grace": 0}, "grace is 0"),
        ({"grace": math.nan}, "grace is nan"),
        ({"stall": math.inf}, "stall is inf"),
        ({"tls_key": Path("k")}, "tls_certificate and tls_key go together"),
        ({"listen": "50051"}, "listen is '50051': it must be HOST:PORT"),
        ({"listen": ":50051"}, "listen is ':50051'"),
        ({"listen": "127.0.0.1:x"}, "listen is '127.0.0.1:x'"),
        ({"listen": "127.0.0.1:65536"}, "listen is"),
        ({"metrics": "nowhere"}, "metrics is 'nowhere'"),
        ({"http": "8080"}, "http is '8080': it must be HOST:PORT"),
        ({"http": "0.0.0.0:8080"}, "http is '0.0.0.0:8080', which others can reach"),
        ({"http_timeout": 0}, "http_timeout is 0"),
        ({"http_idle": math.nan}, "http_idle is nan"),
        ({"http_max_connections": 0}, "http_max_connections is 0"),
        ({"http_max_buffered_bytes": 0}, "http_max_buffered_bytes is 0"),
        ({"http_origins": "example.org"}, "http_origins has 'example.org'"),
        ({"detection_lead": 1.5}, "detection_lead is 1.5"),
        ({"detection_lead": math.nan}, "detection_lead is nan"),
    ],
)
def test_settings_that_are_wrong_are_refused_with_the_field(
    fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match="^" + problem):
        ServerSettings(**{"bundles": (MODEL,), **fields})


def test_a_bad_setting_is_one_line_for_whoever_runs_it(read: Read) -> None:
    with pytest.raises(ServerError, match=r"^max_texts is 0: it must be at least 1$"):
        read("x", "--max-texts", "0")


@pytest.mark.parametrize("address", ["127.0.0.1:50051", "[::1]:50051", "localhost:0"])
def test_addresses_are_split_and_joined(address: str) -> None:
    assert join_address(*split_address("listen", address)) == address


def test_help_is_grouped() -> None:
    result = CliRunner().invoke(APP, ["--help"], env={"COLUMNS": "120", "TERM": "dumb"})
    places = [
        result.output.index(title)
        for title in ("Addresses", "Models and device", "TLS and keys", "Limits", "Life cycle")
    ]
    assert places == sorted(places)
    assert "dragoman serve models/en-pt" in result.output
    assert "DRAGOMAN_MAX_WAITING_REQUESTS" in result.output


def test_a_real_server_takes_them_from_all_three(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text("max_beam = 3\nrows = 50\nlog_format = 'text'\n")
    environment = {
        "DRAGOMAN_CONFIG": str(file),
        "DRAGOMAN_ROWS": "7",
        "DRAGOMAN_LANES": "2",
        "DRAGOMAN_THREADS": "1",
        "DRAGOMAN_MAX_TEXT": "a-value",
        "DRAGOMAN_ADDRESS": "localhost:1",  # of the client
    }
    with started(tmp_path, "--rows", "6", environment=environment) as process:
        assert "2 × 6 rows of 1 thread(s)" in process.banner[1]
        process.signal()
        assert process.wait() == 0
        assert "now serving" in process.errors
        assert process.log == [], "it is to be text"
        unknown = [line for line in process.errors.splitlines() if "no setting" in line]
        (line,) = unknown
        assert line.endswith(
            "DRAGOMAN_MAX_TEXT is set, and is no setting: did you mean DRAGOMAN_MAX_TEXTS?"
        )
        assert "a-value" not in process.errors


def test_a_variable_that_no_command_reads_is_named() -> None:
    known = {"DRAGOMAN_KEYS", "DRAGOMAN_MAX_TEXTS"}
    environment = {
        "DRAGOMAN_KEYS": "file",
        "DRAGOMAN_KEYZ": "file",
        "DRAGOMAN_UNLIKE_ALL_OTHERS": "1",
        "OTHER": "1",
        # What Kubernetes says of services, whose names begin like ours.
        "DRAGOMAN_PORT": "tcp://10.0.0.1:50051",
        "DRAGOMAN_PORT_50051_TCP_ADDR": "10.0.0.1",
        "DRAGOMAN_SERVICE_HOST": "10.0.0.1",
        "DRAGOMAN_PROXIED_SERVICE_PORT_GRPC": "50051",
    }
    assert list(unknown_variables(known, environment)) == [
        "DRAGOMAN_KEYZ is set, and is no setting: did you mean DRAGOMAN_KEYS?",
        "DRAGOMAN_UNLIKE_ALL_OTHERS is set, and is no setting",
    ]
