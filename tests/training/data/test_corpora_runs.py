"""Whole runs over several corpora and several validation texts."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman_training.errors import CorpusError, RecipeError
from dragoman_training.report.records import Observer
from dragoman_training.train.run import train
from support.corpora import LANGUAGES, corpus_of, labels_of, numbered, recipe_of
from support.training_runs import metrics
from support.training_runs import train as train_command


def test_a_run_goes_on_where_its_text_has_moved_and_nowhere_else(tmp_path: Path) -> None:
    labels = labels_of(tmp_path, "a.labels", ["x", "y"] * 20)
    more = {"labels": labels, "label_weights": {"x": 0.5}}
    table = corpus_of(tmp_path, "a", numbered(0, 40), **more)
    recipe = recipe_of(tmp_path, table)
    train(recipe, tmp_path / "run", Observer())
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in ("a.en", "a.pt", "a.labels"):
        (tmp_path / file).rename(moved / f"new.{file}")
    paths = {key: f"new.{table[key]}" for key in ("source", "target", "labels")}
    longer = {"max_steps": 5}
    train(recipe_of(moved, {**table, **paths}, training=longer), tmp_path / "run", Observer())
    other = {**table, **paths, "weight": 2.0}
    with pytest.raises(RecipeError, match=r"data\.corpora\.0\.weight = 1\.0, not 2\.0"):
        train(recipe_of(moved, other), tmp_path / "run", Observer())
    (moved / "new.a.labels").write_text("x\n" * 40)
    with pytest.raises(CorpusError, match=r"new\.a\.labels is not the file"):
        train(recipe_of(moved, {**table, **paths}), tmp_path / "run", Observer())


RECIPE = """
[data]
source_language = "en"
target_language = "pt"
directory = "{directory}"
max_tokens = 64

[[data.corpora]]
name = "often"
source = "often.en"
target = "often.pt"
weight = 2

[data.corpora.variants]
upper = 0.2

[[data.corpora]]
name = "seldom"
source = "seldom.en"
target = "seldom.pt"
weight = 0.5

[[data.validation]]
name = "news"
source = "news.en"
target = "news.pt"

[[data.validation]]
name = "talks"
source = "talks.en"
target = "talks.pt"

[tokenizer]
vocabulary = 320

[model]
preset = "tiny"
width = 16
max_length = 64

[training]
max_steps = 4
batch_tokens = 256
warmup_steps = 2
log_every = 1

[validation]
every = 4
sentences = 3
"""


def test_a_whole_run_reports_each_corpus_and_each_validation_text(tmp_path: Path) -> None:
    for number, name in enumerate(("often", "seldom", "news", "talks")):
        corpus_of(tmp_path, name, numbered(number * 100, 40 if number < 2 else 5 * number))
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.format(directory=tmp_path))
    code, _, stderr = train_command(path, tmp_path / "run")
    assert code == 0, stderr
    (line,) = [line.split() for line in stderr.splitlines() if line.startswith("  often ")]
    assert line[:4] == ["often", "40", "pairs,", "in"]
    assert "  seldom                      40 pairs, in an epoch        20 examples" in stderr
    (record,) = [each for each in metrics(tmp_path / "run") if each["kind"] == "validation"]
    news, talks = record["by_text"]["news"], record["by_text"]["talks"]
    assert set(news) == {"loss", "bleu", "chrf"}
    assert record["bleu"] == pytest.approx((news["bleu"] + talks["bleu"]) / 2)
    assert record["chrf"] == pytest.approx((news["chrf"] + talks["chrf"]) / 2)
    low, high = sorted((news["loss"], talks["loss"]))
    assert low < record["loss"] < high  # of all tokens together
    assert len(record["samples"]) == 4
    assert f"news {news['bleu']:.1f}  talks {talks['bleu']:.1f}" in stderr
    config = json.loads((tmp_path / "run" / "final" / "config.json").read_text())
    assert [corpus["name"] for corpus in config["data"]["corpora"]] == ["often", "seldom"]
    assert scalars(tmp_path / "run") >= {"valid/bleu", "valid/news/bleu", "valid/talks/loss"}


def scalars(run: Path) -> set[str]:
    """The names of the curves that TensorBoard shows."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    return set(events.Tags()["scalars"])


def test_the_loss_of_a_validation_text_is_that_of_a_run_with_it_alone(tmp_path: Path) -> None:
    tables = {name: corpus_of(tmp_path, name, numbered(n, 9)) for n, name in enumerate("ab")}
    corpus = corpus_of(tmp_path, "train", numbered(50, 60))
    found: dict[str, list[float]] = {"a": [], "b": []}
    for names in ("ab", "a", "b"):
        recipe = recipe_of(
            tmp_path,
            corpus,
            data={
                **LANGUAGES,
                "directory": str(tmp_path),
                "corpora": [corpus],
                "max_tokens": 64,
                "validation": [tables[name] for name in names],
            },
            validation={"sentences": 0, "metric": "loss", "every": 3},
        )
        records = _Validations()
        train(recipe, tmp_path / f"run-{names}", records)
        for name in names:
            by_text = records.last.by_text
            found[name].append(by_text[name]["loss"] if by_text else records.last.loss)
    for one, alone in found.values():
        assert one == pytest.approx(alone, abs=1e-6)
    assert found["a"][0] != found["b"][0]


class _Validations(Observer):
    def validated(self, record: Any) -> None:
        self.last = record
