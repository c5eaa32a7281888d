"""``dragoman data``: what training sees, printed by the real command."""

import re
from pathlib import Path

import pytest

from support.command import dragoman
from support.corpora import corpus_of, labels_of, numbered

RECIPE = """
[data]
source_language = "en"
target_language = "pt"

[[data.corpora]]
name = "news"
source = "news.en"
target = "news.pt"
labels = "news.labels"
weight = 3

[data.corpora.label_weights]
secret = 0

[data.corpora.variants]
upper = 1.0

[[data.corpora]]
name = "teacher"
source = "teacher.en"
target = "teacher.pt"
machine_made = true
weight = 0.5

[tokenizer]
placeholders = 9
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    pairs = numbered(0, 100)
    corpus_of(tmp_path, "news", [*pairs, *pairs[:7], ("", "vazio")])
    labels_of(tmp_path, "news.labels", ["press"] * 60 + ["secret"] * 40 + ["press"] * 8)
    made = [
        *numbered(500, 60),
        ('"A good word."', "Boa palavra."),
        ("I have 3 cats.", "Tenho gatos."),
    ]
    corpus_of(tmp_path, "teacher", made)
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def shown(stdout: str) -> list[tuple[str, str, str]]:
    """The source, target and origin of each example."""
    return re.findall(r"^(\S.*)\n    (.*)\n    \[(.*)\]$", stdout, re.MULTILINE)


def data(recipe: Path, *arguments: str) -> tuple[int, str, str]:
    directory = f"data.directory={recipe.parent}"
    return dragoman("data", recipe, "--set", directory, *arguments)


def test_examples_are_drawn_by_weight_and_say_where_they_come_from(recipe: Path) -> None:
    before = sorted(recipe.parent.iterdir())
    code, stdout, stderr = data(recipe, "--show", "90")
    assert code == 0, stderr
    examples = shown(stdout)
    assert len(examples) == 90
    origins = [origin for _, _, origin in examples]
    assert set(origins) == {"news press", "news press upper", "teacher"}
    # Each of 120 examples weighs 3, each of 61 others 0.5.
    assert 0 < origins.count("teacher") < 20
    for source, target, origin in examples:
        if origin.endswith("upper"):
            assert (source, target) == (source.upper(), target.upper())
    assert not {source for source, *_ in examples} & {s for s, _ in numbered(60, 40)}  # secret
    news, teacher = stdout.splitlines()[-2:]
    dropped = "1 empty, 7 duplicate, 40 weightless"
    assert news == (
        f"news: 360 examples in an epoch; dropped: {dropped}; mended: 0; variants: 60 upper"
    )
    assert teacher == (
        "teacher: 30 examples in an epoch; dropped: 1 numbers; mended: 1; variants: none"
    )
    assert sorted(recipe.parent.iterdir()) == before  # nothing is written


def test_the_same_examples_every_time_and_others_with_another_seed(recipe: Path) -> None:
    first, again, other = (
        data(recipe, "--show", "30", "--set", f"seed={seed}")[1] for seed in (1, 1, 2)
    )
    assert first == again
    assert shown(first) != shown(other)


def test_one_corpus_or_one_form_alone(recipe: Path) -> None:
    _, stdout, _ = data(recipe, "--show", "10", "--corpus", "teacher")
    assert {origin for _, _, origin in shown(stdout)} == {"teacher"}
    assert "news:" not in stdout
    _, stdout, _ = data(recipe, "--show", "10", "--variant", "upper")
    assert {origin for _, _, origin in shown(stdout)} == {"news press upper"}
    _, stdout, _ = data(recipe, "--show", "0")
    assert shown(stdout) == []
    assert len(stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--corpus", "talks"], "--corpus is 'talks': it must be one of news, teacher"),
        (["--variant", "shout"], "--variant is 'shout': it must be one of upper, title"),
        (["--set", "data.directory=nowhere"], "nowhere/news.en: no such file"),
        (["--set", "data.corpora=[]"], "data.train_source is empty"),
    ],
)
def test_a_mistake_is_one_line(recipe: Path, arguments: list[str], message: str) -> None:
    code, stdout, stderr = data(recipe, *arguments)
    assert (code, stdout) == (2, "")
    assert message in stderr.splitlines()[-1]
    assert "Traceback" not in stderr


def test_labels_of_another_length_are_one_line(recipe: Path) -> None:
    labels_of(recipe.parent, "news.labels", ["press"] * 10)
    code, stdout, stderr = data(recipe)
    assert (code, stdout) == (2, "")
    last = stderr.splitlines()[-1]
    assert "news.labels has fewer lines than" in last
    assert "news.en (line 11): they must be equal" in last


def test_a_toy_has_nothing_to_show(tmp_path: Path) -> None:
    path = tmp_path / "toy.toml"
    path.write_text('[toy]\ntask = "reverse"\n')
    code, _, stderr = dragoman("data", path)
    assert code == 2
    assert "a toy recipe makes up its text: there is nothing to show" in stderr
