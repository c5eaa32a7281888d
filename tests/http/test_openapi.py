"""The description of the APIs, checked against what the server does."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.http_api.openapi.description import openapi
from dragoman_server.http_api.openapi.schemas import comments
from dragoman_server.http_api.static import Page
from support.http_client import address_of, get, post
from support.service_running import Running

UNDESCRIBED = {
    *("/openapi.json", "/docs", "/spec"),  # pages and addresses of other paths
    *("/translate_file", "/suggest"),  # refused, as LibreTranslate does where they are off
}


@pytest.fixture(scope="module")
def described(running: Running) -> dict[str, Any]:
    found: dict[str, Any] = get(running, "/openapi.json").json
    return found


def test_it_is_what_was_written(described: dict[str, Any]) -> None:
    assert described == openapi()
    assert described["openapi"] == "3.1.0"


def test_every_path_is_described(running: Running, described: dict[str, Any]) -> None:
    listener: Any = running.server.listeners[1]
    served = {
        (path, method)
        for route in listener._app._app.routes
        for method in getattr(route, "methods", None) or {"GET"}
        if (path := route.path) not in UNDESCRIBED
        and method != "HEAD"
        and not isinstance(getattr(route, "endpoint", None), Page)
        and not path.startswith("/v2/document")  # not there yet
    }
    assert served == {
        (path, method.upper())
        for path, operations in described["paths"].items()
        for method in operations
    }


def test_every_message_of_the_wire_is_described(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    for name, message in pb.DESCRIPTOR.message_types_by_name.items():
        assert schemas[name]["properties"].keys() == {field.name for field in message.fields}
    options = schemas["Options"]["properties"]
    assert options["beam_size"]["description"] == "Hypotheses kept at a time; 1 is greedy search."
    assert comments()["Segment", ""] == "A sentence of a text, or a part of one that was too long."
    assert "$ref" in schemas["Translation"]["properties"]["finish_reason"]


def test_references_lead_somewhere(described: dict[str, Any]) -> None:
    named = set(re.findall(r"#/components/schemas/(\w+)", str(described)))
    assert named <= described["components"]["schemas"].keys()
    for schema in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_examples_work(running: Running, described: dict[str, Any]) -> None:
    count = 0
    for path, operations in described["paths"].items():
        for operation in operations.values():
            content = operation.get("requestBody", {}).get("content", {})
            example = content.get("application/json", {}).get("example")
            if example is not None:
                assert post(running, path, example).status == 200, path
                count += 1
    assert count == 5


LIBRE_LANGUAGES = {"source": ["en", "auto"], "target": ["pt", "zz"]}
LANGUAGES = {
    "source_language": ["en", "auto", ""],
    "target_language": ["pt", "de", ""],
    "source_lang": ["EN", "DE"],
    "target_lang": ["PT-BR", "PT"],
    "model": ["en-pt", ""],
}


def narrowed(value: Any) -> Any:
    """Return the description with few languages, so that most requests get further than those."""
    if isinstance(value, list):
        return [narrowed(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: each if name == "responses" else narrowed(each) for name, each in value.items()}
    fields = found.get("properties", {})
    for name, allowed in (LANGUAGES | (LIBRE_LANGUAGES if "q" in fields else {})).items():
        field = fields.get(name)
        if field and field.get("type") == "string":
            field["enum"] = allowed
    return found


def schemathesis_run(running: Running, directory: Path, *flags: str) -> None:
    """Run schemathesis as a program, so that what it installs for pytest stays out of here."""
    config, description = directory / "schemathesis.toml", directory / "openapi.json"
    config.write_text("")
    description.write_text(json.dumps(narrowed(openapi())))
    checks = "not_a_server_error,status_code_conformance,content_type_conformance"
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run"),
            *("--checks", f"{checks},response_schema_conformance"),
            *("--suppress-health-check", "all", "--no-color", "--generation-database", "none"),
            *("--url", f"http://{address_of(running)}", *flags, str(description)),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "COLUMNS": "120"},
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert re.search(r"\d+ generated, \d+ passed|No issues found", run.stdout), run.stdout[-2000:]


def test_the_server_does_what_it_says(running: Running, tmp_path: Path) -> None:
    flags = ("--phases", "examples,fuzzing", "--max-examples", "8", "--seed", "1")
    schemathesis_run(running, tmp_path, *flags)
    running.wait_until_idle()


@pytest.mark.slow
def test_the_server_does_what_it_says_for_ten_minutes(running: Running, tmp_path: Path) -> None:
    flags = (
        "--phases",
        "examples,coverage,fuzzing",
        "--max-time",
        "600",
        "--max-examples",
        "100000",
    )
    schemathesis_run(running, tmp_path, *flags)
    running.wait_until_idle()
