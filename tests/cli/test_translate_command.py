"""``dragoman translate`` as a process against a real server: text, files, interrupted runs."""

import hashlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.client_servers import COMMAND, dragoman, error_of, running_dragoman, write_lines
from support.service_running import PATIENCE, Running, held, wait_until


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
        *("translate", "--json", "--beam-size", "2", "--alternatives", "2"),
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
    with running_dragoman(*asked, "--output", output, "--overwrite", environment=at) as process:
        wait_until(lambda: partial.exists() and partial.stat().st_size > 500, "some lines")
        with held(running.engine):  # so that it is killed before it is done
            process.kill()
            process.wait(PATIENCE)
    assert output.read_text() == "from before"
    done = partial.read_bytes()
    assert 0 < len(done) < len((tmp_path / "unbroken").read_bytes())
    partial.write_bytes(done[:-3])  # a line that is not whole, as after a crash
    refused = dragoman(*asked, "--beam-size", "2", "--output", output, "--resume", environment=at)
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
        said = process.stderr.read().decode()
    assert re.fullmatch(
        r"dragoman: stopped after \d+ lines: the same command with --resume goes on after them\n",
        said,
    )
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
