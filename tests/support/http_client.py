"""A plain client of HTTP for tests, and a server to call."""

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from support.service_running import PATIENCE, Running

JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Reply:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    """Names are in small letters."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error of our own API."""
        assert self.headers["content-type"] == "application/json"
        found = self.json["error"]
        assert isinstance(found, dict)
        return found


def address_of(running: Running) -> str:
    """HOST:PORT of HTTP."""
    return next(each.address for each in running.server.listeners if each.name == "HTTP")


def call(
    running: Running,
    method: str,
    path: str,
    body: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """One request over a connection of its own."""
    with closing(http.client.HTTPConnection(address_of(running), timeout=PATIENCE)) as connection:
        raw = body.encode() if isinstance(body, str) else body
        connection.request(method, path, raw, dict(headers or {}))
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, found, response.read())


def get(running: Running, path: str, **headers: str) -> Reply:
    return call(running, "GET", path, headers=headers)


def post(running: Running, path: str, value: Any, **headers: str) -> Reply:
    """Send a value as JSON."""
    return call(running, "POST", path, json.dumps(value), {**JSON, **headers})


def post_form(running: Running, path: str, fields: Any, **headers: str) -> Reply:
    """Send fields as a form."""
    return call(running, "POST", path, urlencode(fields, doseq=True), {**FORM, **headers})


def events_of(body: bytes) -> list[tuple[str, Any]]:
    """Return server-sent events: the name of each, and its data."""
    found = []
    for block in body.decode().split("\n\n")[:-1]:
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        assert lines.keys() <= {"event", "data"}
        found.append((lines.get("event", "message"), json.loads(lines["data"])))
    assert body.endswith(b"\n\n")
    return found


@contextmanager
def connected(running: Running) -> Iterator[socket.socket]:
    """A bare connection."""
    host, _, port = address_of(running).rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        yield connection


def read_to_end(connection: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    found = b""
    while chunk := connection.recv(65_536):
        found += chunk
    return found
