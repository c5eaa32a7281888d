"""Help of every command wraps well, in a narrow terminal and in a wide one."""

import re
import subprocess
import sys
from importlib.metadata import entry_points
from itertools import pairwise

import pytest

from dragoman_cli.help import MAX_WIDTH
from support.command import clean_environment

# All commands in one process: each takes half a second to load what they need.
RUN = """
import sys
from dragoman_cli.main import main
for name in sys.argv[1:]:
    sys.argv = ["dragoman", *([name] if name != "dragoman" else []), "--help"]
    try:
        main()
    except SystemExit:
        print("\\0", end="")
"""
NAMES = ["dragoman", *sorted(each.name for each in entry_points(group="dragoman.commands"))]
FLAG = re.compile(r"--[a-z][\w-]*")


def helps(columns: int) -> dict[str, list[str]]:
    """Return the lines of each command's help."""
    run = subprocess.run(
        [sys.executable, "-c", RUN, *NAMES],
        capture_output=True,
        text=True,
        env=clean_environment({"COLUMNS": str(columns), "TERM": "dumb"}),
    )
    assert run.stderr == ""
    texts = run.stdout.split("\0")[:-1]
    return {name: text.splitlines() for name, text in zip(NAMES, texts, strict=True)}


@pytest.fixture(scope="module", params=[80, 120])
def shown(request: pytest.FixtureRequest) -> tuple[int, dict[str, list[str]]]:
    return request.param, helps(request.param)


def test_no_line_is_longer_than_the_terminal(shown: tuple[int, dict[str, list[str]]]) -> None:
    columns, found = shown
    for name, lines in found.items():
        assert [line for line in lines if len(line) > columns] == [], name


def test_lines_are_broken_only_where_they_are_full(
    shown: tuple[int, dict[str, list[str]]],
) -> None:
    """A line that goes on in the next one has no room for the next one's first word."""
    columns, found = shown
    for name, lines in found.items():
        for line, after in pairwise(lines):
            if not line.strip() or not after.strip() or line.endswith(":"):
                continue
            if not goes_on(line, after):
                continue
            note = re.match(r"\s*(\[[^\]]{,40}[\];]|\w+: [^\]]{,40}\])", after)  # kept whole
            word = note[0].strip() if note else after.split()[0]
            assert len(line.rstrip()) + 1 + len(word) > columns - 2, f"{name}: {line!r}, {after!r}"


def goes_on(line: str, after: str) -> bool:
    """Whether a line is continued by the next: of a paragraph, or in the column of the words."""
    indent = len(after) - len(after.lstrip())
    if indent == 0:
        return not line.startswith(" ")
    return indent > 4 and (line[:indent].isspace() or (line[indent - 1] == " " != line[indent]))


def test_no_name_is_cut(shown: tuple[int, dict[str, list[str]]]) -> None:
    _, found = shown
    flags = {flag for line in found["translate"] for flag in FLAG.findall(line)}
    assert {"--keep-untranslatable", "--no-keep-untranslatable", "--root-certificates"} <= flags
    for name, lines in found.items():
        assert "…" not in "\n".join(lines), name
        assert not any(line.rstrip().endswith("-") for line in lines), name


def test_every_command_has_an_example() -> None:
    for name, lines in helps(MAX_WIDTH).items():
        if name != "dragoman":
            assert f"dragoman {name}" in "\n".join(lines[1:]), name


def test_a_very_wide_terminal_has_lines_that_can_be_read() -> None:
    assert max(len(line) for line in helps(300)["translate"]) <= MAX_WIDTH
