"""What docs/training.md shows of several corpora, run as it says."""

import gzip
import re
import shlex
from pathlib import Path

import pytest

from dragoman_training.config.data_settings import CorpusSettings, ValidationText
from dragoman_training.config.recipe import load_recipe
from support import ROOT
from support.command import dragoman
from support.corpora import numbered

PAGE = (ROOT / "docs" / "training.md").read_text()
SMALL = [
    "tokenizer.vocabulary=380",
    "model.preset=tiny",
    "model.width=32",
    "training.max_steps=2",
    "training.batch_tokens=512",
    "validation.sentences=2",
]
"""What makes the documentation's recipes quick."""


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def commands(title: str) -> list[list[str]]:
    return [
        shlex.split(line.strip())[1:]
        for line in section(title).splitlines()
        if line.startswith("    dragoman ")
    ]


def recipe_in(title: str) -> str:
    found = re.search(r"```toml\n(.*?)```", section(title), re.DOTALL)
    assert found is not None
    return found[1]


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    text = "".join(f"{line}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A place to run the commands, with the files that the recipe of several corpora names."""
    (tmp_path / "several.toml").write_text(recipe_in("Several corpora"))
    recipe = load_recipe(tmp_path / "several.toml", [])
    pairs = [(f"{source} with Tom", f"{target} com Tom") for source, target in numbered(0, 120)]
    texts: list[CorpusSettings | ValidationText] = [*recipe.data.corpora]
    for text in [*texts, *recipe.data.validation]:
        for files, side in ((text.source, 0), (text.target, 1)):
            for name in files:
                write(tmp_path / "text" / name, [pair[side] for pair in pairs])
        for name in text.labels if isinstance(text, CorpusSettings) else ():
            write(tmp_path / "text" / name, ["press/pt", "press/pt-PT", "machine"] * 40)
    return tmp_path


def run(arguments: list[str], directory: Path, *settings: str) -> tuple[str, str]:
    sets = [part for setting in (*SMALL, *settings) for part in ("--set", setting)]
    is_training = arguments[0] == "train"
    code, stdout, stderr = dragoman(*arguments, *(sets if is_training else []), cwd=directory)
    assert code == 0, stderr
    return stdout, stderr


def test_several_corpora(directory: Path) -> None:
    show, placeholders, train = commands("Several corpora")
    stdout, _ = run(show, directory)
    assert stdout.count("    [news press/pt") + stdout.count("    [teacher") == 50
    # 40 pairs twice, 40 of which one in five is drawn, and 40 that are not.
    (news,) = (line for line in stdout.splitlines() if line.startswith("news: "))
    found = re.fullmatch(r"news: (\d+) examples in an epoch; dropped: 40 weightless; .*", news)
    assert found is not None
    assert 88 <= int(found[1]) < 120  # and their variants
    stdout, _ = run(placeholders, directory)
    assert re.search(r"⟨\d⟩.*\n    .*⟨\d⟩.*\n    \[news press/pt(-PT)? placeholders\]", stdout)
    _, stderr = run(train, directory)
    assert re.search(r"on cpu, 1 thread, b?float\d\d \(.* times as fast as .* here\)", stderr)
    assert re.search(r"validation .* BLEU .* news \d.* talks \d", stderr)


def test_a_run_begins_with_a_bundle(directory: Path) -> None:
    recipe = (directory / "several.toml").rename(directory / "my.toml")
    plain = "training.precision=float32"  # which needs no trial
    run(["train", recipe.name, "--output", "runs/my"], directory, plain)
    run(["export", "runs/my", "models/my"], directory)
    _, begin = commands("Going on from a model")
    _, stderr = run(begin, directory, plain)
    assert "the final model is in runs/again/final" in stderr
    (threads,) = commands("Threads")
    _, stderr = run(threads, directory, plain)
    assert "on cpu, 1 thread" in stderr


def test_every_setting_of_a_corpus_is_told() -> None:
    told = set(re.findall(r"^\| `(\w+)` \|", section("Several corpora"), re.MULTILINE))
    of_files = {"name", "source", "target"}
    assert told == CorpusSettings.__dataclass_fields__.keys() - of_files
