"""Single words and their translations, found in sentence pairs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman_training.config.data_settings import WordSettings
from dragoman_training.config.recipe import Recipe, recipe_from_dict
from dragoman_training.data.prepare import prepare
from dragoman_training.data.preview import draw_examples
from dragoman_training.data.rules.word_pairs import find_word_pairs
from dragoman_training.data.text.corpus import Pair
from dragoman_training.errors import RecipeError
from support import SUPPORT
from support.corpora import quiet

NOUNS = {"house": "casa", "dog": "cão", "sea": "mar", "Lisbon": "Lisboa", "VMware": "VMware"}
VERBS = {"sees": "vê", "likes": "gosta", "has": "tem"}
PAIRS = [
    Pair(f"He {verb} the {noun} and {n} more.", f"Ele {verbo} o {nome} e mais {n}.")
    for verb, verbo in VERBS.items()
    for noun, nome in NOUNS.items()
    for n in range(4)
]
SETTINGS = WordSettings(weight=1, min_sentences=4, min_dice=0.5)


def found(pairs: list[Pair], settings: WordSettings = SETTINGS) -> dict[str, str]:
    return {pair.source: pair.target for pair in find_word_pairs(lambda: pairs, settings)}


def test_a_word_goes_with_what_it_occurs_with_most() -> None:
    words = found(PAIRS)
    for word, translation in {**NOUNS, **VERBS}.items():
        assert words[word] == translation


def test_a_name_keeps_its_capitals_and_the_first_word_of_a_sentence_does_not() -> None:
    words = found([*PAIRS, *[Pair("So he went.", "E ele foi.")] * 20])
    assert words["he"] == "ele"
    assert "Lisbon" in words


def test_the_same_words_are_found_in_every_process() -> None:
    script = (
        "from test_word_pairs import PAIRS, SETTINGS, find_word_pairs\n"
        "print(find_word_pairs(lambda: PAIRS, SETTINGS))"
    )
    path = os.pathsep.join((str(Path(__file__).parent), str(SUPPORT.parent)))
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1


def test_rare_words_and_loose_company_are_left_out() -> None:
    rare = [*PAIRS, Pair("He has a kite.", "Ele tem uma pipa.")]
    assert "kite" not in found(rare)
    assert found(rare, WordSettings(weight=1, min_sentences=40, min_dice=0.5)).keys() <= {
        *("he", "the", "and", "more"),
    }
    assert not found(PAIRS, WordSettings(weight=1, min_sentences=1000))
    assert not found([])


def test_long_sentences_are_not_looked_at() -> None:
    long = [Pair("one two three four five six", "um dois três quatro cinco seis")] * 20
    assert found(long)
    assert not found(long, WordSettings(weight=1, max_words=5))


def test_only_so_many_are_found() -> None:
    few = find_word_pairs(lambda: PAIRS, WordSettings(weight=1, count=3, min_dice=0.1))
    assert len(few) <= 3


def test_counting_in_chunks_is_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = found(PAIRS)
    monkeypatch.setattr("dragoman_training.data.rules.word_pairs._CHUNK", 50)
    assert found(PAIRS) == whole


@pytest.mark.parametrize(
    ("field", "value"), [("weight", -1.0), ("count", 0), ("min_dice", 0.0), ("min_dice", 1.5)]
)
def test_settings_that_make_no_sense_are_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field):
        WordSettings(**{field: value})


def recipe_with_words(directory: Path, book: str = "", **words: Any) -> Recipe:
    """``book`` is a second corpus as TSV, in a directory of its own."""
    for side in ("source", "target"):
        lines = [getattr(pair, side) for pair in PAIRS]
        (directory / f"text.{side}").write_text("\n".join(lines) + "\n")
    corpora: list[dict[str, Any]] = [
        {"name": "text", "source": ["text.source"], "target": ["text.target"]}
    ]
    if book:
        (directory / "beside").mkdir(exist_ok=True)
        (directory / "beside" / "book.tsv").write_text(book)
        own = str(directory / "beside")
        corpora.append({"name": "book", "source": ["book.tsv"], "directory": own})
    return recipe_from_dict(
        {
            "data": {
                "source_language": "en",
                "target_language": "pt",
                "directory": str(directory),
                "corpora": corpora,
                "words": {"weight": 2.0, "min_sentences": 4, "min_dice": 0.5, **words},
            },
            "tokenizer": {"kind": "bpe", "vocabulary": 330},
        }
    )


def test_words_are_a_corpus_of_a_recipe(tmp_path: Path) -> None:
    recipe = recipe_with_words(tmp_path, variants={"upper": 1.0})
    prepare(recipe, tmp_path / "data", quiet)
    meta = json.loads((tmp_path / "data" / "prepared.json").read_text())
    text, words = meta["corpora"]
    assert (text["name"], words["name"]) == ("text", "words")
    assert words["pairs"]["kept"] >= len(NOUNS) + len(VERBS)
    assert words["variants"] == {"upper": words["pairs"]["kept"]}
    assert words["epoch_examples"] == 4 * words["pairs"]["kept"]


def test_words_can_be_looked_at(tmp_path: Path) -> None:
    shown = draw_examples(recipe_with_words(tmp_path), 100, quiet, corpus="words")
    assert {(e.pair.source, e.pair.target) for e in shown.examples} >= NOUNS.items()
    with pytest.raises(RecipeError, match="must be one of text"):
        draw_examples(recipe_with_words(tmp_path, weight=0.0), 1, quiet, corpus="words")


def test_words_that_a_corpus_knows_are_not_looked_for(tmp_path: Path) -> None:
    def words(*known_from: str) -> dict[str, str]:
        recipe = recipe_with_words(tmp_path, "House\tlar\nthe sea\to mar\n", known_from=known_from)
        shown = draw_examples(recipe, 200, quiet, corpus="words")
        return {example.pair.source: example.pair.target for example in shown.examples}

    assert words()["house"] == "casa"
    known = words("book")
    assert "house" not in known
    assert known["sea"] == "mar"
    with pytest.raises(RecipeError, match=r"words.known_from has 'books', which no corpus"):
        words("books")


def test_a_corpus_can_not_be_called_words_beside_them(tmp_path: Path) -> None:
    table = {"source_language": "en", "target_language": "pt", "words": {"weight": 1.0}}
    corpus = {"name": "words", "source": ["a"]}
    with pytest.raises(RecipeError, match="'words' is the name"):
        recipe_from_dict({"data": {**table, "corpora": [corpus]}})
