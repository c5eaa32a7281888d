"""What goes wrong around ``dragoman translate`` and its neighbours: one line and an exit code."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support import MODEL
from support.client_servers import (
    COMMAND,
    KEY,
    SMALL_FILES,
    dragoman,
    error_of,
    make_certificate,
    nobody,
    running_dragoman,
    write_lines,
)
from support.service_running import PATIENCE, Running, held, serving, settings_for


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("translate", "a", "--file", "b"), 2, "choose one"),
        (("translate", "--resume"), 2, "--file and --output"),
        (("translate", "--stream", "--json", "a"), 2, "--stream"),
        (("translate", "a", "--target-language", "ja"), 2, "dragoman models"),
        (("translate", "a", "--model", "nobody"), 2, "dragoman models"),
        (("translate", "a", "--beam-size", "-1"), 2, "beam_size"),
        (("translate", "a", "--beam-size", "0"), 2, "beam_size is 0"),
        (("translate", "a", "--beam-size", "99"), 2, "beam_size"),
        (("translate", "a", "--beam-size", "x"), 2, "see 'dragoman translate --help'"),
        (("translate", "a", "--nope"), 2, "see 'dragoman translate --help'"),
        (("translate", "- an item"), 2, "a text that begins with a dash comes after '--'"),
        (
            ("tranlate", "a"),
            2,
            "Did you mean 'translate', 'evaluate', 'train'? See 'dragoman --help'",
        ),
        (("translate", "a", "--timeout", "0"), 2, "timeout"),
        (("translate", "a", "--address", "a b"), 2, "not an address"),
        (("translate", "a", "--address", "http://localhost:1"), 2, "http"),
        (("translate", "a", "--address", ","), 2, "not an address"),
        (("translate", "a", "--root-certificates", "/nowhere"), 2, "/nowhere"),
        (("translate", "--file", "/nowhere/text"), 1, "/nowhere/text: No such file"),
        (("translate", "--file", "/"), 1, "/: Is a directory"),
        (("translate", "a", "--output", "/nowhere/text"), 1, "/nowhere: no such directory"),
        (("translate", "a", "--output", "/"), 1, "is a directory"),
        (("translate", "a", "--output", "/dev/null"), 2, "not a regular file"),
        (("translate", os.fsdecode(b"\xff")), 2, "not UTF-8"),
        (("alignment", "Hello. Good night."), 2, "2 sentences"),
        (("alignment", "Hello.", "--output", "picture.gif"), 2, ".png"),
        (("alignment", "Hello.", "--output", "picture"), 2, ".png"),
        (("alignment", "Hello.", "--output", "/nowhere/a.png"), 1, "no such directory"),
        (("score", "Hello."), 2, "TRANSLATION"),
        (("score", "Hello.", "Olá.", "--target-language", "ja"), 2, "dragoman models"),
    ],
)
def test_every_mistake_is_one_line_with_what_to_do(
    at: dict[str, str], arguments: tuple[str, ...], code: int, says: str, tmp_path: Path
) -> None:
    run = dragoman(*arguments, environment=at, cwd=tmp_path)
    error = error_of(run, code)
    assert says in error
    says_nothing_twice(error)
    assert list(tmp_path.iterdir()) == []


def says_nothing_twice(error: str) -> None:
    parts = error.split(": ")
    assert len(set(parts)) == len(parts), error


def test_an_error_of_all_lines_ends_the_run_at_once(at: dict[str, str]) -> None:
    with running_dragoman("translate", "--target-language", "ja", environment=at) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"Hello.\nHello.\n")
        process.stdin.flush()  # and it stays open: a terminal, or a pipe from something slow
        assert process.wait(PATIENCE) == 2
        said = process.stderr.read().decode()
    assert (said.count("\n"), said.startswith("dragoman: ")) == (1, True)


def test_text_that_is_not_utf8_is_named_by_its_line(at: dict[str, str]) -> None:
    run = dragoman("translate", given=b"Hello.\n\xff\nHello.\n", environment=at)
    assert error_of(run, 2) == "standard input:2: not UTF-8"
    assert run.stdout.decode() == "Olá.\n"
    run = dragoman("translate", "--stream", given=b"Hello.\n\xff", environment=at)
    assert error_of(run, 2) == "standard input:2: not UTF-8"


def test_no_server() -> None:
    with nobody() as address:
        for arguments in (("translate", "a"), ("health",), ("models",), ("score", "a", "b")):
            run = dragoman(*arguments, "--address", address)
            error = error_of(run, 3)
            assert f"no server answers at {address}" in error
            assert "dragoman serve" in error
            says_nothing_twice(error)
        run = dragoman("translate", "--address", address, given=b"a\nb\n")
        assert "no server answers" in error_of(run, 3)


def test_a_server_that_does_not_answer_in_time(running: Running, at: dict[str, str]) -> None:
    with held(running.engine):
        run = dragoman("translate", "Hello.", "--timeout", "0.5", environment=at)
    assert "--timeout" in error_of(run, 3)


def test_what_listens_is_no_server_of_ours(running: Running) -> None:
    run = dragoman("models", "--tls", "--address", running.server.address)
    assert "leave out --tls" in error_of(run, 3)
    run = dragoman("models", "--address", running.server.metrics_address, "--timeout", "20")
    assert running.server.metrics_address in error_of(run, 3)


def test_tls_and_keys(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path / "server")
    old, old_key = make_certificate(tmp_path / "old", expired=True)
    other, _ = make_certificate(tmp_path / "other")
    keys = tmp_path / "keys"
    keys.write_text(f"me {KEY}\n")

    def run(address: str, roots: Path, *more: str) -> subprocess.CompletedProcess[bytes]:
        # Its name is that of the certificate; the system says who that is, in numbers.
        name = f"localhost:{address.rpartition(':')[2]}"
        trusted = ("--root-certificates", roots)
        return dragoman("models", "--json", "--address", name, *trusted, *more)

    secured = settings_for(MODEL, tls_certificate=certificate, tls_key=key, keys=keys)
    with serving(secured) as running:
        address = running.server.address
        assert json.loads(run(address, certificate, "--key", KEY).stdout)[0]["name"] == "en-pt"
        assert "DRAGOMAN_KEY" in error_of(run(address, certificate), 2)
        assert "DRAGOMAN_KEY" in error_of(run(address, certificate, "--key", "x" * 16), 2)
        assert "not trusted (self-signed" in error_of(run(address, other, "--key", KEY), 3)
        plain = dragoman("models", "--address", address)
        assert "give --tls" in error_of(plain, 3)
        by_number = dragoman("models", "--address", address, "--root-certificates", certificate)
        assert "not valid for '127.0.0.1'" in error_of(by_number, 3)
    expired = settings_for(MODEL, tls_certificate=old, tls_key=old_key)
    with serving(expired, until_ready=False) as running:
        assert "has expired" in error_of(run(running.server.address, old), 3)


@pytest.mark.parametrize(
    "arguments",
    [("translate", "Hello."), ("translate",), ("translate", "--stream", "a"), ("models",)],
)
def test_a_full_disk_behind_standard_output(at: dict[str, str], arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run(
            [*COMMAND, *arguments],
            input=b"Hello.\n",
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, **at},
            timeout=PATIENCE,
        )
    assert "No space left" in error_of(run, 1)


def test_a_full_disk_behind_an_output(at: dict[str, str], tmp_path: Path) -> None:
    source, output = write_lines(tmp_path / "in", 200), tmp_path / "out"

    asked = ("translate", "--file", source, "--output", output)
    run = dragoman(*asked, environment=at, before=SMALL_FILES)
    assert error_of(run, 1) == f"{output}: File too large"
    assert not output.exists()
    assert dragoman(*asked, "--resume", environment=at).returncode == 0
    unbroken = dragoman("translate", "--file", source, environment=at)
    assert output.read_bytes() == unbroken.stdout


def test_who_has_read_enough_ends_it_without_a_word(at: dict[str, str]) -> None:
    command = f"yes Hello. | {' '.join(COMMAND)} translate | head -1; echo ${{PIPESTATUS[1]}}"
    run = subprocess.run(
        ["bash", "-c", command], capture_output=True, env={**os.environ, **at}, timeout=PATIENCE
    )
    assert (run.stdout.decode(), run.stderr) == ("Olá.\n141\n", b"")
