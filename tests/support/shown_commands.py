"""The commands that pages of documentation show: found, split into words, and checked."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import typer

from support import ROOT

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "models").glob("*.md"),
        *(ROOT / "benchmarks").glob("*.md"),
    ]
)
_OPERATORS = {"|", "||", "&", "&&", ";", ";;", "(", ")", "{", "}"}
_REDIRECTIONS = {">", ">>", "<", "2>", ">&", "<<<"}
_IN_THE_REPOSITORY = re.compile(r"^(benchmarks|deploy|examples|recipes|scripts|tests)/[^…*$]*$")
_ONE_OF_OURS = re.compile(r"^[A-Za-z0-9_./-]+$")


@dataclass(frozen=True)
class Block:
    """Lines of a page that are meant for a shell."""

    page: Path
    heading: str
    text: str

    def commands(self) -> Iterator[list[str]]:
        """Yield the words of each simple command, without comments and redirections."""
        for line in self.text.replace("\\\n", " ").splitlines():
            yield from _simple_commands(line)


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that are indented or said to be for a shell.

    A block without a language is what a program prints; of it, lines after ``$`` are commands.
    """
    found: list[Block] = []
    heading, fence, lines = "", None, list[str]()
    in_list = False
    before = ""
    for line in [*page.read_text().splitlines(), ""]:
        if fence is not None:
            if line.startswith("```"):
                if fence in ("sh", "bash"):
                    found.append(Block(page, heading, "\n".join(lines)))
                elif fence in ("", "console"):
                    told = [each[2:] for each in lines if each.startswith("$ ")]
                    found.append(Block(page, heading, "\n".join(told)))
                fence, lines = None, []
            else:
                lines.append(line)
        elif line.startswith("```"):
            if lines:
                found.append(Block(page, heading, "\n".join(lines).strip("\n")))
            fence, lines = line.removeprefix("```").strip(), []
        elif line.startswith("    ") and not in_list and (lines or not before.strip()):
            lines.append(line[4:])
        elif not line.strip() and lines:
            lines.append("")
        else:
            if lines:
                found.append(Block(page, heading, "\n".join(lines).strip("\n")))
                lines = []
            if line.startswith("#"):
                heading = line.lstrip("# ")
            if line.strip():
                goes_on = in_list and line.startswith(" ")
                in_list = goes_on or bool(re.match(r"(- |\* |\d+\. )", line))
        before = line
    if lines:
        found.append(Block(page, heading, "\n".join(lines).strip("\n")))
    return [block for block in found if block.text]


def _simple_commands(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a quotation that goes on in the next line: no command of ours
        return
    command: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in _OPERATORS:
            if command:
                yield command
            command = []
        elif word in _REDIRECTIONS:
            skip = True
        else:
            command.append(word)
    if command:
        yield command


@cache
def entries() -> dict[str, EntryPoint]:
    """Return the subcommands of ``dragoman`` by name."""
    return {entry.name: entry for entry in entry_points(group="dragoman.commands")}


@cache
def _parsers() -> Any:
    app = typer.Typer()
    for name, entry in entries().items():
        app.command(name)(entry.load())
    return typer.main.get_command(app)


def calls_of_dragoman(block: Block) -> Iterator[list[str]]:
    """Yield the arguments of each call of the command in a block."""
    for words in block.commands():
        if "dragoman" in words and not {"pip", "git", "cd"} & {words[0]}:
            arguments = words[words.index("dragoman") + 1 :]
            yield [each for each in arguments if not re.fullmatch(r"\$\w+", each)]


def fault(arguments: list[str]) -> str | None:
    """Return what the command would say against these arguments, before it does anything."""
    if not arguments or arguments[0].startswith("-"):
        return None
    name, *rest = arguments
    if name not in entries():
        return f"there is no command {name!r}"
    if "--help" in rest:
        return None
    try:
        _parsers().commands[name].make_context(name, rest)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        message = str(error.format_message())
        # The files of examples are the reader's.
        return None if "does not exist" in message or "no such file" in message else message
    return None


def missing_files(block: Block) -> list[str]:
    """Return the files of the repository that a block names and that are not there."""
    words = [word for command in block.commands() for word in command]
    named = [word for word in words if _IN_THE_REPOSITORY.match(word) and _ONE_OF_OURS.match(word)]
    return [name for name in named if not (ROOT / name).exists()]


def unknown_flags(block: Block) -> list[str]:
    """Return the flags of programs in benchmarks/ that nothing there mentions."""
    found = []
    for words in block.commands():
        script = next((word for word in words if re.match(r"benchmarks/\S+\.py$", word)), None)
        if script is None or not (ROOT / script).exists():
            continue
        known = (ROOT / script).read_text() + _shared_by_benchmarks()
        flags = {word.partition("=")[0] for word in words if word.startswith("--")}
        found += [f"{script} {flag}" for flag in sorted(flags) if f'"{flag}"' not in known]
    return found


@cache
def _shared_by_benchmarks() -> str:
    return "".join(p.read_text() for p in (ROOT / "benchmarks").rglob("*/*.py"))


@cache
def targets() -> frozenset[str]:
    """Return the targets of the Makefile that people call."""
    return frozenset(re.findall(r"^## ([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
