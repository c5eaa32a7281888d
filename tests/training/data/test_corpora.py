"""Several corpora: their labels, weights, filters, reports and variants."""

import gzip
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman_training.config.data_settings import CorpusSettings
from dragoman_training.config.recipe import Recipe
from dragoman_training.data.joined import JoinedPairs
from dragoman_training.data.prepare import prepare
from dragoman_training.data.prepared import PreparedData
from dragoman_training.data.text.corpus import LabelledText, Pair, ParallelText
from dragoman_training.data.text.examples import CorpusReader, CorpusReport, Example
from dragoman_training.errors import CorpusError
from support.corpora import Table, corpus_of, labels_of, numbered, prepared, quiet, recipe_of


def reports_of(data: PreparedData) -> dict[str, Table]:
    return {report["name"]: report for report in data.provenance["corpora"]}


def examples_of(
    pairs: Sequence[tuple[str, str]],
    directory: Path,
    labels: Sequence[str] = (),
    *,
    seed: int = 1,
    share: float = 1.0,
    **settings: Any,
) -> tuple[list[Example], CorpusReport]:
    """Read a corpus of these pairs, as training would."""
    table = corpus_of(directory, "corpus", pairs)
    files = (directory / labels_of(directory, "corpus.labels", labels),) if labels else ()
    chosen = CorpusSettings(
        name="corpus",
        source=(table["source"],),
        labels=tuple(map(str, files)),
        **settings,
    )
    text = ParallelText((directory / table["source"],), (directory / table["target"],))
    reader = CorpusReader(chosen, LabelledText(text, files), seed)
    reader.scan(quiet)
    report = CorpusReport("corpus")
    return list(reader.examples(report, share)), report


def epoch_texts(data: PreparedData, recipe: Recipe, epoch: int) -> Counter[str]:
    """The targets of an epoch's examples, without joined ones, by how often they are drawn."""
    examples = JoinedPairs(
        data.train, share=0.0, most=2, max_tokens=64, seed=recipe.seed, mixture=data.mixture
    )
    numbers = examples.draw(epoch, np.arange(len(examples)))
    return Counter(data.tokenizers.target.decode(examples[int(n)].target) for n in numbers)


# Labels


def test_the_first_pattern_that_matches_a_label_counts() -> None:
    settings = CorpusSettings(
        name="a",
        source=("a",),
        labels=("l",),
        weight=0.5,
        label_weights={"docs/pt-PT": 0.0, "docs/*": 3.0, "*": 2.0},
    )
    assert [settings.weight_of(x) for x in ("docs/pt-PT", "docs/pt", "other")] == [0.0, 1.5, 1.0]
    plain = replace(settings, label_weights={"docs/*": 3.0})
    assert plain.weight_of("other") == 0.5  # what none matches has the weight of the corpus


@pytest.mark.parametrize(("lines", "which"), [(4, "fewer"), (7, "more")])
def test_a_label_file_of_another_length_is_named(tmp_path: Path, lines: int, which: str) -> None:
    labels = labels_of(tmp_path, "a.labels", ["x"] * lines)
    table = corpus_of(tmp_path, "a", numbered(0, 5), labels=labels)
    with pytest.raises(CorpusError) as caught:
        prepare(recipe_of(tmp_path, table), tmp_path / "data", quiet)
    line = min(lines, 5) + 1
    files = f"{tmp_path / 'a.labels'} has {which} lines than {tmp_path / 'a.en'}"
    assert str(caught.value) == f"{files} (line {line}): they must be equal"
    assert not (tmp_path / "data").exists()


def test_each_file_has_its_own_labels(tmp_path: Path) -> None:
    """A line too many in one file and one too few in another would shift every label between."""
    for name, count in (("a", 3), ("b", 2)):
        corpus_of(tmp_path, name, numbered(0, count))
    sources, targets = ((tmp_path / f"a.{x}", tmp_path / f"b.{x}") for x in ("en", "pt"))
    text = ParallelText(sources, targets)

    def labelled(*counts: int) -> LabelledText:
        names = [labels_of(tmp_path, f"{n}", [f"{n}"] * c) for n, c in enumerate(counts)]
        return LabelledText(text, tuple(tmp_path / name for name in names))

    assert [label for _, label in labelled(3, 2)] == ["0", "0", "0", "1", "1"]
    with pytest.raises(CorpusError, match=r"0 has fewer lines than .*a\.en"):
        list(labelled(2, 3))
    with pytest.raises(CorpusError, match="2 source files but 1 label files: give one label file"):
        labelled(5)


def test_labels_and_tsv_may_be_compressed(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.tsv.gz", "wt") as file:
        file.write("one\tum\ntwo\tdois\n")
    with gzip.open(tmp_path / "a.labels.gz", "wt") as file:
        file.write("x\ny\n")
    text = LabelledText(ParallelText((tmp_path / "a.tsv.gz",)), (tmp_path / "a.labels.gz",))
    assert list(text) == [(Pair("one", "um"), "x"), (Pair("two", "dois"), "y")]


# Weights


def test_weights_above_and_below_one(tmp_path: Path) -> None:
    """Everything from the recipe to what an epoch has, with labels and whole corpora."""
    labels = labels_of(tmp_path, "often.labels", ["x", "y", "none", "x"] * 10)
    recipe = recipe_of(
        tmp_path,
        corpus_of(
            tmp_path,
            "often",
            numbered(0, 40),
            weight=2.0,
            labels=labels,
            label_weights={"y": 0.25, "none": 0},
        ),
        corpus_of(tmp_path, "seldom", numbered(100, 40), weight=0.25),
        corpus_of(tmp_path, "never", numbered(200, 10), weight=0.0),
    )
    data = prepared(recipe, tmp_path / "data")
    total: Counter[str] = Counter()
    for epoch in range(4):
        texts = epoch_texts(data, recipe, epoch)
        assert sum(texts.values()) == 20 * 2 + 10 // 2 + 40 // 4
        total += texts
    targets = [target for _, target in numbered(0, 40)]
    for n, target in enumerate(targets):
        assert total[target] == {0: 8, 1: 2, 2: 0, 3: 8}[n % 4]
    for _, target in numbered(100, 40):
        assert total[target] == 1  # every pair once in four epochs
    assert all(total[target] == 0 for _, target in numbered(200, 10))
    reports = reports_of(data)
    assert reports["often"]["labels"] == {"x": 20, "y": 10}
    assert reports["often"]["pairs"]["weightless"] == 10
    assert reports["never"]["pairs"]["weightless"] == 10
    assert [reports[name]["epoch_examples"] for name in ("often", "seldom", "never")] == [45, 10, 0]


def test_a_corpus_of_one_weight_is_drawn_without_a_mixture(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, corpus_of(tmp_path, "a", numbered(0, 30)))
    assert prepared(recipe, tmp_path / "data").mixture is None


def test_corpora_without_any_weight_are_an_error(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, corpus_of(tmp_path, "a", numbered(0, 30), weight=0.0))
    with pytest.raises(CorpusError, match="the training text is empty"):
        prepare(recipe, tmp_path / "data", quiet)


# Filters


def test_duplicates_are_dropped_within_a_corpus_but_not_across(tmp_path: Path) -> None:
    pairs = numbered(0, 20)
    recipe = recipe_of(
        tmp_path,
        corpus_of(tmp_path, "a", [*pairs, *pairs[:5]]),
        corpus_of(tmp_path, "b", pairs),
        corpus_of(tmp_path, "c", [*pairs, *pairs], remove_duplicates=False),
    )
    reports = reports_of(prepared(recipe, tmp_path / "data"))
    kept = {name: report["pairs"]["kept"] for name, report in reports.items()}
    dropped = {name: report["pairs"]["duplicate"] for name, report in reports.items()}
    assert kept == {"a": 20, "b": 20, "c": 40}
    assert dropped == {"a": 5, "b": 0, "c": 0}


def test_a_pair_is_no_duplicate_of_one_that_weighs_nothing(tmp_path: Path) -> None:
    pairs = [("one", "um"), ("one", "um"), ("one", "um")]
    examples, report = examples_of(
        pairs, tmp_path, ["none", "some", "some"], label_weights={"none": 0.0}
    )
    assert [(example.pair, example.label) for example in examples] == [(("one", "um"), "some")]
    assert (report.pairs.weightless, report.pairs.duplicate) == (1, 1)


def test_filters_for_machine_made_text_are_for_the_corpora_that_say_so(tmp_path: Path) -> None:
    pairs = [
        ("I have 3 cats.", "Tenho 4 gatos."),
        ('"Come on in."', "Entre."),
        ("I like the sea.", "Gosto do mar."),
        ("", "Nada"),
    ]
    examples, report = examples_of(pairs, tmp_path, machine_made=True)
    assert [example.pair.target for example in examples] == ['"Entre."', "Gosto do mar."]
    assert (report.pairs.numbers, report.pairs.empty, report.mended) == (1, 1, 1)
    examples, report = examples_of(pairs, tmp_path)
    assert [example.pair for example in examples] == pairs[:3]
    assert report.mended == 0


def test_each_corpus_has_its_own_ratio(tmp_path: Path) -> None:
    pairs = [*numbered(0, 20), ("sea", "o mar e a casa e o livro e a noite e a flor e a rua")]
    recipe = recipe_of(
        tmp_path,
        corpus_of(tmp_path, "strict", pairs, max_ratio=3),
        corpus_of(tmp_path, "dictionary", pairs, max_ratio=50),
    )
    reports = reports_of(prepared(recipe, tmp_path / "data"))
    assert reports["strict"]["pairs"]["ratio"] == 1
    assert reports["dictionary"]["pairs"]["ratio"] == 0


def test_the_report_of_all_is_the_sum_of_the_corpora(tmp_path: Path) -> None:
    recipe = recipe_of(
        tmp_path,
        corpus_of(tmp_path, "a", [*numbered(0, 20), ("", "x"), *numbered(0, 3)]),
        corpus_of(tmp_path, "b", [*numbered(30, 20), ("word " * 99, "palavra " * 99)]),
    )
    data = prepared(recipe, tmp_path / "data")
    reports = reports_of(data)
    total = data.provenance["report"]
    assert total == {key: sum(r["pairs"][key] for r in reports.values()) for key in total}
    assert (total["kept"], total["empty"], total["duplicate"], total["too_long"]) == (40, 1, 3, 1)
    assert len(data.train) == 40
    tokens = sum(report["epoch_target_tokens"] for report in reports.values())
    assert tokens == data.train.tokens[1] + 40  # each has an end token


# Variants


def test_variants_follow_their_pair_and_are_counted(tmp_path: Path) -> None:
    pairs = numbered(0, 60)
    variants = {"upper": 0.5, "lower": 0.2}
    table = corpus_of(tmp_path, "a", pairs, weight=2.0, variants=variants)
    recipe = recipe_of(tmp_path, table, tokenizer={"vocabulary": 330})
    data = prepared(recipe, tmp_path / "data")
    report = reports_of(data)["a"]
    assert report["pairs"]["kept"] == 60
    assert 15 < report["variants"]["upper"] < 45
    # The pairs have no capitals and no final marks: lower case would be the pair again.
    assert set(report["variants"]) == {"upper"}
    assert len(data.train) == 60 + report["variants"]["upper"]
    texts = epoch_texts(data, recipe, 0)
    upper = [target.upper() for _, target in pairs if texts[target.upper()]]
    assert len(upper) == report["variants"]["upper"]
    assert all(texts[text] == 2 for text in upper)  # as often as what they were made of
    assert report["epoch_examples"] == sum(texts.values())


def test_variants_are_not_joined(tmp_path: Path) -> None:
    table = corpus_of(tmp_path, "a", numbered(0, 30), variants={"upper": 1.0})
    recipe = recipe_of(tmp_path, table, tokenizer={"vocabulary": 330})
    mixture = prepared(recipe, tmp_path / "data").mixture
    assert mixture is not None
    assert (len(mixture), mixture.joinable) == (60, 30)


def test_the_same_seed_gives_the_same_data(tmp_path: Path) -> None:
    variants = dict.fromkeys(("upper", "typos", "items", "emoji", "placeholders"), 0.3)
    table = corpus_of(tmp_path, "a", numbered(0, 80), weight=0.5, variants=variants)
    vocabulary = {"vocabulary": 400, "placeholders": 9}

    def files(name: str, seed: int) -> dict[str, bytes]:
        recipe = replace(recipe_of(tmp_path, table, tokenizer=vocabulary), seed=seed)
        prepare(recipe, tmp_path / name, quiet)
        names = ("tokenizer.spm", "train/source.ids", "train/target.ids", "groups/members")
        return {path: (tmp_path / name / path).read_bytes() for path in names}

    assert files("one", 1) == files("again", 1)
    assert files("one", 1) != files("other", 2)


def test_a_share_of_the_lines_has_the_examples_that_all_lines_have(tmp_path: Path) -> None:
    """A vocabulary is learnt from a sample of what is trained on."""
    kinds = ("upper", "typos", "items", "emoji")
    variants = CorpusSettings(name="a", source=("a",)).variants
    variants = replace(variants, **dict.fromkeys(kinds, 0.3))
    whole, _ = examples_of(numbered(0, 300), tmp_path, variants=variants)
    some, _ = examples_of(numbered(0, 300), tmp_path, variants=variants, share=0.3)
    assert set(some) < set(whole)
    assert 60 < sum(not example.variant for example in some) < 120
