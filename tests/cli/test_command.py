"""The ``dragoman`` command itself: help, version, missing extras."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from dragoman_cli.extras import how_to_install

RUN = "import sys; from dragoman_cli.main import main; sys.argv[0] = 'dragoman'; main()"


def dragoman(*arguments: str, without: str | None = None) -> subprocess.CompletedProcess[str]:
    hide = f"import sys; sys.modules[{without!r}] = None; " if without else ""
    return subprocess.run(
        [sys.executable, "-c", hide + RUN, *arguments],
        capture_output=True,
        text=True,
        env={"PATH": "", "TERM": "dumb", "COLUMNS": "100"},
    )


def test_help_lists_every_subcommand() -> None:
    run = dragoman("--help")
    assert run.returncode == 0
    for command in ("train", "evaluate", "plot", "attention", "tokenize", "serve", "translate"):
        assert command in run.stdout


def test_help_of_a_subcommand_has_an_example() -> None:
    run = dragoman("train", "--help")
    assert run.returncode == 0
    assert "dragoman train recipes/reverse.toml" in run.stdout


def test_version() -> None:
    run = dragoman("--version")
    assert (run.returncode, run.stdout) == (0, f"dragoman {version('dragoman')}\n")


def test_help_works_without_torch() -> None:
    assert dragoman("--help", without="torch").returncode == 0


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")  # as the command has it
    run = dragoman("plot", "nowhere", without="torch")
    assert run.returncode == 2
    assert run.stderr == f"dragoman: 'plot' needs torch: {how_to_install('training')}\n"


def test_a_missing_command_line_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    run = dragoman("--help", without="typer")
    assert run.returncode == 1
    assert run.stderr == f"dragoman: the command needs an extra: {how_to_install('cli')}\n"


def test_an_unknown_subcommand_is_a_usage_error() -> None:
    run = dragoman("trian")
    assert run.returncode == 2
    assert "trian" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_usage_error_is_one_line_that_names_the_help() -> None:
    run = dragoman("translate", "--nope")
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert run.stderr.endswith("see 'dragoman translate --help'\n")


def test_without_anything_help_is_shown() -> None:
    run = dragoman()
    assert (run.returncode, run.stderr) == (2, "")
    assert "translate" in run.stdout


def test_a_shell_can_complete_subcommands() -> None:
    run = subprocess.run(
        [sys.executable, "-c", RUN],
        capture_output=True,
        text=True,
        env={
            "PATH": "",
            "_DRAGOMAN_COMPLETE": "complete_bash",
            "COMP_WORDS": "dragoman trans",
            "COMP_CWORD": "1",
        },
    )
    assert run.stdout.split() == ["translate"]
