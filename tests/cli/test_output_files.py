"""``dragoman translate --output``: nothing is lost, and a cut run says how to go on."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest

from support.client_servers import (
    COMMAND,
    Scripted,
    dragoman,
    error_of,
    listening,
    nobody,
    running_dragoman,
    status,
    write_lines,
)
from support.service_process import SMALL, started
from support.service_running import PATIENCE, Running, held, wait_until

TEXT = "Hello.\nGood night.\n"
TRANSLATED = "Olá.\nBoa noite.\n"


class Echo(Scripted):
    """A peer that answers some texts with themselves, and then fails for good."""

    def __init__(self, texts: int, code: grpc.StatusCode = grpc.StatusCode.INTERNAL) -> None:
        super().__init__()
        self._left = texts
        self._code = code

    def TranslateBulk(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        for response in super().TranslateBulk(requests, context):
            if not self._left:
                self._end(context, status(self._code, reason="ENGINE_FAULT"))
            self._left -= 1
            yield response


def linked(directory: Path, kind: str) -> Path:
    """Another name of the file ``text``."""
    source, other = directory / "text", directory / "other"
    if kind == "symbolic link":
        other.symlink_to(source)
    elif kind == "hard link":
        other.hardlink_to(source)
    elif kind == "directory":
        (directory / "deep").mkdir()
        return directory / "deep" / ".." / "text"
    return other if kind.endswith("link") else source


@pytest.mark.parametrize("kind", ["same name", "symbolic link", "hard link", "directory"])
def test_a_file_is_not_replaced_by_its_own_translation(
    at: dict[str, str], tmp_path: Path, kind: str
) -> None:
    source = tmp_path / "text"
    source.write_text(TEXT)
    output = linked(tmp_path, kind)
    asked = ("translate", "--file", source, "--output", output, "--overwrite")
    says = error_of(dragoman(*asked, environment=at), 2)
    assert says == f"{output}: is the file that is translated; give --output another name"
    # The other way round: the source is the link.
    says = error_of(dragoman("translate", "-f", output, "-o", source, environment=at), 2)
    assert "is the file that is translated" in says
    assert source.read_text() == TEXT
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", [".out.partial", ".out.partial.json", ".out.partial.failed"])
def test_a_file_of_an_interrupted_run_is_not_translated_over_itself(
    at: dict[str, str], tmp_path: Path, name: str
) -> None:
    source = tmp_path / name
    source.write_text(TEXT)
    asked = ("translate", "--file", source, "--output", tmp_path / "out", "--overwrite")
    assert "would be replaced" in error_of(dragoman(*asked, environment=at), 2)
    assert source.read_text() == TEXT


def test_a_file_is_not_appended_to_itself(at: dict[str, str], tmp_path: Path) -> None:
    source = tmp_path / "text"
    source.write_text(TEXT)
    command = f"{' '.join(COMMAND)} translate --file {source} >> {source}"
    run = dragoman("", environment=at, before=("bash", "-c", command))
    assert "standard output is the same file" in error_of(run, 2)
    assert source.read_text() == TEXT


def test_an_output_that_is_there_is_replaced_only_when_asked(
    at: dict[str, str], tmp_path: Path
) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text(TEXT)
    output.write_text("mine")
    asked = ("translate", "--file", source, "--output", output)
    says = error_of(dragoman(*asked, environment=at), 2)
    assert says == f"{output}: is there already; --overwrite replaces it"
    says = error_of(dragoman(*asked, "--resume", environment=at), 2)
    assert "there is nothing to resume; --overwrite replaces it" in says
    assert output.read_text() == "mine"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in", "out"]
    assert dragoman(*asked, "--overwrite", environment=at).returncode == 0
    assert output.read_text() == TRANSLATED
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in", "out"]


def test_lines_of_a_run_that_was_cut_off_are_discarded_only_when_asked(
    at: dict[str, str], tmp_path: Path
) -> None:
    source, output = write_lines(tmp_path / "in", 60), tmp_path / "out"
    asked = ("translate", "--file", source, "--output", output)
    with listening(Echo(45)) as peer:
        run = dragoman(*asked, "--address", peer)
    assert "45 lines are done: the same command with --resume goes on after them" in error_of(
        run, 4
    )
    partial = tmp_path / ".out.partial"
    done = partial.read_bytes()
    assert done.count(b"\n") == 45
    says = error_of(dragoman(*asked, environment=at), 2)
    assert says == (
        f"{output}: 45 lines of a run that was cut off are there: --resume goes on after them, and "
        "--overwrite begins anew"
    )
    assert partial.read_bytes() == done
    assert dragoman(*asked, "--resume", environment=at).returncode == 0
    resumed = output.read_bytes()
    assert resumed.startswith(done)
    assert resumed.count(b"\n") == 61

    partial.write_bytes(done)
    assert dragoman(*asked, "--overwrite", environment=at).returncode == 0
    assert output.read_bytes() == dragoman("translate", "-f", source, environment=at).stdout
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in", "out"]


def test_a_run_that_has_done_nothing_leaves_nothing(at: dict[str, str], tmp_path: Path) -> None:
    source, output = write_lines(tmp_path / "in", 3), tmp_path / "out"
    asked = ("translate", "--file", source, "--output", output)
    with nobody() as address:
        run = dragoman(*asked, "--address", address)
    assert "--resume" not in error_of(run, 3)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in"]
    assert dragoman(*asked, environment=at).returncode == 0


def test_two_runs_do_not_write_one_file(
    running: Running, at: dict[str, str], tmp_path: Path
) -> None:
    source, output = write_lines(tmp_path / "in", 5), tmp_path / "out"
    asked = ("translate", "--file", source, "--output", output)
    with ExitStack() as stack:
        with held(running.engine) as gate:
            first = stack.enter_context(running_dragoman(*asked, environment=at))
            gate.wait()
            for flag in ("--overwrite", "--resume"):
                says = error_of(dragoman(*asked, flag, environment=at), 2)
                assert says == f"{output}: another run is writing it"
        assert first.wait(PATIENCE) == 0
    assert output.read_bytes() == dragoman("translate", "-f", source, environment=at).stdout


def test_ctrl_c_without_a_file_says_where_the_lines_are(at: dict[str, str], tmp_path: Path) -> None:
    output, partial = tmp_path / "out", tmp_path / ".out.partial"
    with running_dragoman("translate", "--output", output, environment=at) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"Hello.\n" * 20)
        process.stdin.flush()
        wait_until(lambda: partial.exists() and partial.stat().st_size > 0, "some lines")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        said = process.stderr.read().decode()
    assert f"they are in {partial}, and can't be resumed without --file" in said
    says = error_of(dragoman("translate", "--output", output, given=b"", environment=at), 2)
    assert "they can't be resumed, and --overwrite begins anew" in says


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--resume", "--overwrite"), "choose one"),
        (("--overwrite",), "--overwrite needs --output"),
    ],
)
def test_flags_that_do_not_go_together(flags: tuple[str, ...], says: str) -> None:
    assert says in error_of(dragoman("translate", *flags), 2)


def test_several_addresses_translate_a_file_together(tmp_path: Path) -> None:
    """And when one of them dies, the other one finishes."""
    source, output = write_lines(tmp_path / "in", 400), tmp_path / "out"
    (tmp_path / "other").mkdir()
    partial = tmp_path / ".out.partial"
    with started(tmp_path, *SMALL) as goes, started(tmp_path / "other", *SMALL) as stays:
        whole = dragoman("translate", "--file", source, "--address", stays.address)
        before = translated_by(stays)
        asked = ("translate", "--file", source, "--output", output)
        both = f"{goes.address}, {stays.address}"
        with running_dragoman(*asked, "--address", both) as process:
            wait_until(lambda: partial.exists() and partial.stat().st_size > 2000, "some lines")
            assert translated_by(goes) > 0
            assert translated_by(stays) > before
            goes.signal(signal.SIGKILL)
            assert process.wait(PATIENCE) == 0
    assert output.read_bytes() == whole.stdout


def translated_by(server: Any) -> float:
    """Target tokens of all translations of a server."""
    return float(
        sum(
            value
            for name, value in server.metrics().items()
            if name.startswith("dragoman_target_tokens_total")
        )
    )


def test_files_have_the_mode_that_the_user_wants(at: dict[str, str], tmp_path: Path) -> None:
    source, output = write_lines(tmp_path / "in", 2), tmp_path / "out"
    asked = ("translate", "--file", source, "--output", output)
    umask = ("bash", "-c", 'umask 027 && exec "$@"', "bash")
    assert dragoman(*asked, environment=at, before=umask).returncode == 0
    assert os.stat(output).st_mode & 0o777 == 0o640  # noqa: PTH116
