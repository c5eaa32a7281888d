"""``dragoman translate`` and its neighbours, as processes against a real server."""

import hashlib
import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman_client import Client
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
    sentences,
)
from support.service_running import PATIENCE, Running, held, serving, settings_for, wait_until


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving(settings_for(MODEL)) as running:
        yield running


@pytest.fixture(scope="module")
def at(running: Running) -> dict[str, str]:
    """The environment that names the server."""
    return {"DRAGOMAN_ADDRESS": running.server.address}


def test_texts_from_the_command_line(at: dict[str, str]) -> None:
    run = dragoman("translate", "Hello.", "Good night.", environment=at)
    assert (run.returncode, run.stdout.decode(), run.stderr) == (0, "Olá.\nBoa noite.\n", b"")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Hello.\nGood night.\n", "Olá.\nBoa noite.\n"),
        ("Hello.\r\n\r\nGood night.\r\n", "Olá.\r\n\r\nBoa noite.\r\n"),
        ("Hello.\nGood night.", "Olá.\nBoa noite."),
        ("\n\nHello.\n\n", "\n\nOlá.\n\n"),
        ("  Hello.\t \nx\u2028\x0b\n", "  Olá.\t \n"),
        ("", ""),
        ("\n", "\n"),
    ],
)
def test_lines_stay_lines_byte_for_byte(at: dict[str, str], given: str, expected: str) -> None:
    run = dragoman("translate", given=given.encode(), environment=at)
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.decode().startswith(expected)
    assert run.stdout.count(b"\n") == given.count("\n")


def test_json_has_an_object_a_line(at: dict[str, str]) -> None:
    given = b"Hello.\n\nGood night."
    run = dragoman(
        *("translate", "--json", "--beam", "2", "--alternatives", "2"),
        given=given,
        environment=at,
    )
    first, empty, last = map(json.loads, run.stdout.decode().splitlines())
    assert (first["text"], empty["text"], last["text"]) == ("Olá.", "", "Boa noite.")
    assert (first["model"], first["finish_reason"]) == ("en-pt", "end")
    (segment,) = first["segments"]
    assert (segment["source"], segment["target"]) == ([0, 6], [0, 4])
    assert len(segment["alternatives"]) == 2
    assert "timing" not in first


def test_a_stream_is_the_translation(at: dict[str, str]) -> None:
    text = "Hello.\r\n\r\nGood night. Where is the station?"
    run = dragoman("translate", "--stream", given=text.encode(), environment=at)
    whole = dragoman("translate", text, environment=at)
    assert run.returncode == 0
    assert run.stdout + b"\n" == whole.stdout
    assert b"\r\n\r\n" in run.stdout
    two = dragoman("translate", "--stream", "Hello.", "Good night.", environment=at)
    assert two.stdout.decode() == "Olá.\nBoa noite.\n"


def test_an_answer_comes_before_the_next_line_is_typed(at: dict[str, str]) -> None:
    with running_dragoman("translate", environment=at) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line, answer in ((b"Hello.\n", "Olá.\n"), (b"Good night.\n", "Boa noite.\n")):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline().decode() == answer
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def write_lines(path: Path, count: int) -> Path:
    path.write_text("".join(f"{each}\n" for each in sentences(count)) + "\nThe last one.")
    return path


def test_a_file_to_a_file(at: dict[str, str], tmp_path: Path) -> None:
    source, output = write_lines(tmp_path / "in", 30), tmp_path / "out"
    run = dragoman("translate", "--file", source, "--output", output, environment=at)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
    piped = dragoman("translate", given=source.read_bytes(), environment=at)
    assert output.read_bytes() == piped.stdout
    assert output.read_text().count("\n") == 31
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in", "out"]


def test_a_file_that_is_a_pipe_is_read_once(at: dict[str, str], tmp_path: Path) -> None:
    arguments = ("translate", "--file", "/dev/stdin", "--output", tmp_path / "out")
    run = dragoman(*arguments, given=b"Hello.\n", environment=at)
    assert (run.returncode, (tmp_path / "out").read_text()) == (0, "Olá.\n")
    run = dragoman(*arguments, "--resume", given=b"Hello.\n", environment=at)
    assert "can't be resumed" in error_of(run, 2)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_run_that_was_killed_is_resumed_to_the_same_output(
    running: Running, at: dict[str, str], tmp_path: Path, as_json: bool
) -> None:
    source, output = write_lines(tmp_path / "in", 400), tmp_path / "out"
    partial = tmp_path / ".out.partial"
    more = ["--json"] if as_json else []
    asked: list[str | Path] = ["translate", "--file", source, *more]
    unbroken = dragoman(*asked, "--output", tmp_path / "unbroken", environment=at)
    assert unbroken.returncode == 0
    output.write_text("from before")
    with running_dragoman(*asked, "--output", output, environment=at) as process:
        wait_until(lambda: partial.exists() and partial.stat().st_size > 500, "some lines")
        with held(running.engine):  # so that it is killed before it is done
            process.kill()
            process.wait(PATIENCE)
    assert output.read_text() == "from before"
    done = partial.read_bytes()
    assert 0 < len(done) < len((tmp_path / "unbroken").read_bytes())
    partial.write_bytes(done[:-3])  # a line that is not whole, as after a crash
    refused = dragoman(*asked, "--beam", "2", "--output", output, "--resume", environment=at)
    assert "other options" in error_of(refused, 2)
    other = write_lines(tmp_path / "other", 401)
    refused = dragoman(
        "translate", "--file", other, *more, "--output", output, "--resume", environment=at
    )
    assert "another text" in error_of(refused, 2)
    assert partial.read_bytes() == done[:-3]
    resumed = dragoman(*asked, "--output", output, "--resume", environment=at)
    assert (resumed.returncode, resumed.stderr) == (0, b"")
    assert output.read_bytes() == (tmp_path / "unbroken").read_bytes()
    assert not list(tmp_path.glob(".out*"))


LONG = "x" * 4_400_000
"""More than a server takes in one message."""


def test_a_line_that_fails_is_named_empty_and_the_rest_is_translated(
    at: dict[str, str], tmp_path: Path
) -> None:
    given = f"Hello.\n{LONG}\nGood night.\n".encode()
    run = dragoman("translate", given=given, environment=at)
    assert run.stdout.decode() == "Olá.\n\nBoa noite.\n"
    assert error_of(run, 5).startswith("line 2: ")
    run = dragoman("translate", "--json", given=given, environment=at)
    assert json.loads(run.stdout.splitlines()[1])["error"]["reason"] == "TOO_LARGE"


def test_a_resumed_run_remembers_which_lines_failed(at: dict[str, str], tmp_path: Path) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_bytes(f"Hello.\n{LONG}\n".encode() + b"Hello.\n\xff\n")
    asked = ("translate", "--file", source, "--output", output)
    first = dragoman(*asked, environment=at)
    assert first.returncode == 2
    assert b"in:4: not UTF-8" in first.stderr
    assert (tmp_path / ".out.partial").read_text() == "Olá.\n\nOlá.\n"
    again = dragoman(*asked, "--resume", environment=at)
    assert error_of(again, 2).endswith("in:4: not UTF-8")
    # The bad line is mended in the partial run's note too, as if it had been good all along.
    note = tmp_path / ".out.partial.json"
    source.write_bytes(f"Hello.\n{LONG}\n".encode() + b"Hello.\nHello.\n")
    made_from = json.loads(note.read_text())
    made_from["text"] = hashlib.sha256(source.read_bytes()).hexdigest()
    note.write_text(json.dumps(made_from))
    last = dragoman(*asked, "--resume", environment=at)
    assert (last.returncode, output.read_text()) == (5, "Olá.\n\nOlá.\nOlá.\n")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("translate", "a", "--file", "b"), 2, "choose one"),
        (("translate", "--resume"), 2, "--file and --output"),
        (("translate", "--stream", "--json", "a"), 2, "--stream"),
        (("translate", "a", "--target", "ja"), 2, "dragoman models"),
        (("translate", "a", "--model", "nobody"), 2, "dragoman models"),
        (("translate", "a", "--beam", "-1"), 2, "beam_size"),
        (("translate", "a", "--beam", "99"), 2, "beam_size"),
        (("translate", "a", "--beam", "x"), 2, "see 'dragoman translate --help'"),
        (("translate", "a", "--nope"), 2, "see 'dragoman translate --help'"),
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
        (("score", "Hello.", "Olá.", "--target", "ja"), 2, "dragoman models"),
    ],
)
def test_every_mistake_is_one_line_with_what_to_do(
    at: dict[str, str], arguments: tuple[str, ...], code: int, says: str, tmp_path: Path
) -> None:
    run = dragoman(*arguments, environment=at, cwd=tmp_path)
    assert says in error_of(run, code)
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_all_lines_ends_the_run_at_once(at: dict[str, str]) -> None:
    with running_dragoman("translate", "--target", "ja", environment=at) as process:
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
            assert f"no server answers at {address}" in error_of(run, 3)
            assert "dragoman serve" in run.stderr.decode()
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


@pytest.mark.parametrize("arguments", [("translate",), ("translate", "--stream")])
def test_ctrl_c_leaves_no_traceback(at: dict[str, str], arguments: tuple[str, ...]) -> None:
    with running_dragoman(*arguments, environment=at) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        if arguments == ("translate",):  # it waits for the second line
            process.stdin.write(b"Hello.\n")
            process.stdin.flush()
            assert process.stdout.readline()
        else:  # it waits for the end of its input; how far it is shows its processor time
            wait_until(lambda: _is_waiting(process.pid), "a process that waits")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.stderr.read() == b""


def _is_waiting(pid: int) -> bool:
    """For a pipe."""
    return "pipe" in Path(f"/proc/{pid}/wchan").read_text() or _is_idle(pid)


def _is_idle(pid: int) -> bool:
    def used() -> str:
        return Path(f"/proc/{pid}/stat").read_text().split()[13]

    before = used()
    time.sleep(0.5)
    return used() == before and int(before) > 10


def test_ctrl_c_of_a_file_can_be_resumed(
    running: Running, at: dict[str, str], tmp_path: Path
) -> None:
    source, output = write_lines(tmp_path / "in", 300), tmp_path / "out"
    asked = ("translate", "--file", source, "--output", output)
    partial = tmp_path / ".out.partial"
    with running_dragoman(*asked, environment=at) as process:
        assert process.stderr is not None
        wait_until(lambda: partial.exists() and partial.stat().st_size > 200, "some lines")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.stderr.read() == b""
    assert not output.exists()
    resumed = dragoman(*asked, "--resume", environment=at)
    assert resumed.returncode == 0
    assert output.read_bytes() == dragoman("translate", "--file", source, environment=at).stdout


def test_a_terminal_sees_a_bar_and_a_pipe_does_not(at: dict[str, str], tmp_path: Path) -> None:
    source, output = write_lines(tmp_path / "in", 20), tmp_path / "out"
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [*COMMAND, "translate", "--file", str(source), "--output", str(output)],
        stderr=theirs,
        env={**os.environ, **at, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [], PATIENCE)[0]:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    assert run.wait(PATIENCE) == 0
    assert b"22/22" in shown
    assert b"lines/s" in shown


def test_health(running: Running, at: dict[str, str]) -> None:
    run = dragoman("health", environment=at)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"serving\n", b"")


def test_models(at: dict[str, str]) -> None:
    run = dragoman("models", environment=at)
    assert run.returncode == 0
    assert "en → pt" in run.stdout.decode()
    (model,) = json.loads(dragoman("models", "--json", environment=at).stdout)
    assert model["name"] == "en-pt"


def test_scores(running: Running, at: dict[str, str]) -> None:
    run = dragoman("score", "Good morning.", "Bom dia.", "Mesa.", environment=at)
    good, bad = (line.split(maxsplit=1) for line in run.stdout.decode().splitlines())
    assert (good[1], bad[1]) == ("Bom dia.", "Mesa.")
    assert float(good[0]) > float(bad[0])
    arguments = ("score", "--json", "Good morning.", "Bom dia.")
    (found,) = json.loads(dragoman(*arguments, environment=at).stdout)
    with Client(running.server.address) as client:
        assert found["score"] == client.score([("Good morning.", "Bom dia.")])[0].score
    assert found["tokens"][0]["piece"]


def test_an_alignment_is_drawn_whole_or_not_at_all(at: dict[str, str], tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    cache = {**at, "MPLCONFIGDIR": str(tmp_path / "cache")}
    arguments = ("alignment", "Where is the $5 station?", "--output", picture)
    run = dragoman(*arguments, environment=cache)
    assert run.returncode == 0, run.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run.stdout.decode().splitlines()[1] == str(picture)

    whole = picture.read_bytes()
    for name in ("picture.png", "picture.svg"):
        output = tmp_path / name
        run = dragoman(*arguments[:3], output, environment=cache, before=SMALL_FILES)
        assert error_of(run, 1) == f"{output}: File too large"
    assert picture.read_bytes() == whole
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cache", "picture.png"]
