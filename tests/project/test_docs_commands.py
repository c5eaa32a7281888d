"""Commands that the README and the documentation show: they exist, and take what they are given.

Every call of ``dragoman`` is parsed by the command itself, with all of its options. Here nothing is
run; ``test_docs_run.py`` does that with the pages that can be run.
"""

import ast
import re
from pathlib import Path

import pytest

import dragoman_client
from support import ROOT
from support.shown_commands import (
    PAGES,
    Block,
    blocks,
    calls_of_dragoman,
    entries,
    fault,
    missing_files,
    targets,
    unknown_flags,
)

README = ROOT / "README.md"
GUIDES = [page for page in PAGES if page.parent.name != "decisions"]
"""Pages that say how to do something, and not how it was measured."""
COVERED = {"cli": {"cli", "server", "training", "export"}, "plot": {"plot", "training", "export"}}
COVERED |= {"server": {"server", "export"}, "training": {"training", "export"}}
COVERED |= {"export": {"export"}}
"""Extras, and those that bring the same."""
MADE = {"cli", "server"}
"""What `make run` installs."""

PARSED_ONLY = {
    "docs/argos.md": "imports downloaded models; tests/export/argos imports others",
    "docs/attention.md": "trains for hours on downloaded text; tests/training trains",
    "docs/bridges.md": "imports downloaded models; tests/export/hf imports others",
    "docs/documents.md": "translates the reader's files; tests/documents translates others",
    "docs/export.md": "needs a run that was trained; tests/export exports others",
    "docs/fine-tuning.md": "trains a downloaded model; tests/training fine-tunes others",
    "docs/marian.md": "imports downloaded models; tests/export/marian imports others",
    "docs/markup.md": "needs a server and a glossary; tests/cli and tests/service run all of it",
    "docs/operations.md": "needs Docker or a cluster; tests/deploy checks what they are given",
    "docs/options.md": "tests/cli runs every option",
    "docs/sdk.md": "puts load on a server for minutes; tests/cli runs all of these commands",
    "docs/service.md": "serves until it is stopped; tests/service does so",
    "docs/training.md": "trains for hours on the reader's text; tests/training trains",
}
"""Guides whose commands are parsed and not run, and why; ``test_docs_run.py`` runs the others."""


def extra_of(arguments: list[str]) -> str:
    """Return the extra that a call of the command needs."""
    name = arguments[0]
    if name == "alignment" or "--plot" in arguments:
        return "plot"
    return entries()[name].module.partition(".")[0].removeprefix("dragoman_")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_exist_and_take_what_they_are_given(page: Path) -> None:
    problems: list[str] = []
    for block in blocks(page):
        problems += [
            f"dragoman {' '.join(arguments)}: {found}"
            for arguments in calls_of_dragoman(block)
            if (found := fault(arguments))
        ]
        problems += [f"{name} is not there" for name in missing_files(block)]
        problems += [f"{flag}: no such flag" for flag in unknown_flags(block)]
        for command in block.commands():
            if command[0] == "make":
                made = [word for word in command[1:] if "=" not in word]
                problems += [f"make {word}: no target" for word in made if word not in targets()]
    assert problems == []


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_the_extra_that_its_commands_need(page: Path) -> None:
    text = " ".join(page.read_text().split())
    calls = [call for block in blocks(page) for call in calls_of_dragoman(block)]
    needed = {extra_of(call) for call in calls if call and call[0] in entries()} - MADE
    for extra in needed:
        named = [e for e in COVERED[extra] if f"[{e}]" in text or f"extra `{e}`" in text]
        assert named, f"does not say that it needs the extra {extra!r}"


def test_the_index_of_the_guides_has_them_all() -> None:
    guides = ROOT / "docs" / "how-to"
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (guides / "index.md").read_text())
    assert sorted(["index.md", *listed]) == sorted(each.name for each in guides.glob("*.md"))
    assert len(listed) >= 7


def test_every_guide_is_run_or_has_a_reason_not_to_be() -> None:
    shown = {
        str(page.relative_to(ROOT))
        for page in GUIDES
        if any(call for block in blocks(page) for call in calls_of_dragoman(block))
    }
    run = {"README.md", *(str(p.relative_to(ROOT)) for p in (ROOT / "docs/how-to").glob("*.md"))}
    assert shown - run == set(PARSED_ONLY), "add a page without a reason to test_docs_run.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_on_a_page_is_python_and_imports_what_there_is(page: Path) -> None:
    for source in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module == "dragoman_client":
                assert {name.name for name in node.names} <= set(dragoman_client.__all__)


def test_faults_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Text.\n\n    dragoman translate --nope x | dragoman trian  # --ignored\n"
        "    cat a > b && python benchmarks/gone.py --x\n\n"
        "- a list\n\n    dragoman not-in-a-block\n\n"
        "Text.\n\n    dragoman translate --to \\\n        pt 'a | b'; make cake PORT=1\n\n"
        "```\n$ dragoman serve\nno command\n```\n```sh\nexport A=1 && dragoman score a b\n```\n"
    )
    first, second, third, fourth = blocks(page)
    unknown_option, unknown_command = (fault(call) for call in calls_of_dragoman(first))
    assert "No such option: --nope" in str(unknown_option)
    assert unknown_command == "there is no command 'trian'"
    assert missing_files(first) == ["benchmarks/gone.py"]
    (call,) = calls_of_dragoman(second)
    assert call == ["translate", "--to", "pt", "a | b"]
    assert "No such option: --to" in str(fault(call))
    assert list(second.commands())[1] == ["make", "cake", "PORT=1"]
    assert "BUNDLE" in str([fault(call) for call in calls_of_dragoman(third)])
    assert [fault(call) for call in calls_of_dragoman(fourth)] == [None]
    flags = Block(page, "", "python benchmarks/engine.py --nope")
    assert unknown_flags(flags) == ["benchmarks/engine.py --nope"]


def test_the_readme_has_every_command_beside_its_extra() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", README.read_text(), re.MULTILINE)
    found = {
        command: extra
        for extra, commands in rows
        for command in re.findall(r"`([a-z][\w-]*)`", commands)
        if not (extra == "plot" and command == "bench")
    }
    assert found == {name: extra_of([name]) for name in entries()}


def test_commands_of_the_readme_need_no_more_than_their_section_says() -> None:
    """What `make run` has made is enough, where nothing else is said."""
    text = README.read_text()
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    for block in blocks(README):
        for arguments in calls_of_dragoman(block):
            if not arguments or arguments[0] not in entries():
                continue
            said = set(re.findall(r"extra `(\w+)`", sections[block.heading]))
            allowed = MADE | said | ({"training", "plot"} if "export" in said else set())
            assert extra_of(arguments) in allowed, arguments
