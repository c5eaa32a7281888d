"""``dragoman serve`` with HTTP as a process of its own: its banner, its signals, its errors."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from support import MODEL
from support.command import clean_environment
from support.service_process import COMMAND, SMALL, started
from support.service_running import PATIENCE


def test_a_server_says_where_http_is_and_ends_when_told(tmp_path: Path) -> None:
    with started(tmp_path, *SMALL, "--http", "127.0.0.1:0") as process:
        (line,) = [line for line in process.banner if line.split()[0] == "HTTP"]
        _, address, *_ = line.split()
        assert line.endswith("no TLS, no keys")
        body = json.dumps({"texts": ["Hello."]}).encode()
        request = urllib.request.Request(
            f"http://{address}/v1/translate", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310
            assert json.load(response)["translations"][0]["text"] == "Olá."
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
        ended = [line for line in process.log if line["level"] not in ("info", "debug")]
        assert ended == [], "uvicorn says nothing of its own"
        assert not any("uvicorn" in line["logger"] for line in process.log)


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        addresses = ("--listen", "127.0.0.1:0", "--metrics", "", "--http", address)
        run = subprocess.run(
            [sys.executable, *COMMAND, "serve", MODEL, *addresses],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=clean_environment({}),
        )
    assert run.returncode == 2
    assert run.stdout == ""
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"dragoman: {address} can't be listened on for HTTP")
    assert "--http" in line
