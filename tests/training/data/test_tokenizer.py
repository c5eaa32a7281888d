"""Tokenizers: no text is unknown, and decoding gives back what was encoded."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_training.config.recipe import recipe_from_dict
from dragoman_training.data.prepare import prepare
from dragoman_training.data.prepared import load_prepared
from dragoman_training.data.tokenizer import (
    UNKNOWN,
    TokenizerPair,
    TokenizerSettings,
    train_tokenizer,
)
from dragoman_training.errors import CheckpointError, RecipeError
from support.corpora import quiet
from support.tokenizers import SENTENCES, TRAINED, trained


@pytest.mark.parametrize("kind", TRAINED)
@given(text=st.text())
def test_any_text_comes_back(kind: str, text: str) -> None:
    tokenizer = TRAINED[kind]
    ids = tokenizer.encode(text)
    assert UNKNOWN not in ids
    assert all(0 <= i < tokenizer.size for i in ids)
    # SentencePiece marks spaces with this character, so it can't tell the two apart; and it takes
    # a space at the very start for its own.
    assert tokenizer.decode(ids) == text.replace("▁", " ")


def test_common_words_are_one_piece() -> None:
    tokenizer = TRAINED["unigram"]
    assert "▁the" in tokenizer.pieces(tokenizer.encode("the house"))


def test_normalization_is_a_setting() -> None:
    folded = trained("unigram", "nmt_nfkc_cf")
    assert folded.decode(folded.encode("  THE   House ")) == "the house"


def test_the_same_text_gives_the_same_model() -> None:
    assert trained("unigram").model == TRAINED["unigram"].model


def test_a_vocabulary_too_large_for_the_text_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"tokenizer\.vocabulary is 9000: ") as caught:
        train_tokenizer(SENTENCES, TokenizerSettings(vocabulary=9000), seed=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("joint", [True, False])
def test_a_pair_survives_being_stored(tmp_path: Path, joint: bool) -> None:
    source = TRAINED["unigram"]
    pair = TokenizerPair(source, source if joint else TRAINED["bpe"])
    for name, model in pair.files().items():
        (tmp_path / name).write_bytes(model)
    loaded = TokenizerPair.load(tmp_path)
    assert loaded.joint == joint
    assert loaded.target.encode("the goat") == pair.target.encode("the goat")


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.spm").write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match=r"tokenizer\.spm"):
        TokenizerPair.load(tmp_path)


def test_characters_that_are_required_have_an_entry() -> None:
    text = [*SENTENCES, "€ 25 → 30"]
    plain = TokenizerSettings(vocabulary=300, character_coverage=0.98)
    required = TokenizerSettings(vocabulary=300, character_coverage=0.98, required_characters="€→")
    for settings, expected in ((plain, False), (required, True)):
        tokenizer = train_tokenizer(text, settings, seed=1)
        for letter in "€→":
            assert (letter in tokenizer.pieces(tokenizer.encode(letter))) == expected


@pytest.mark.parametrize(("sample", "vocabulary"), [(40, 320), (59, 330)])
def test_a_tokenizer_learns_from_a_sample_of_the_whole_corpus(
    tmp_path: Path, sample: int, vocabulary: int
) -> None:
    """Every pair has a letter of its own, and a letter that was seen gets an entry."""
    letters = [chr(0x4E00 + n) for n in range(120)]
    files = tmp_path / "text.source", tmp_path / "text.target"
    for file in files:
        file.write_text("".join(f"casa {letter} mar\n" for letter in letters))
    recipe = recipe_from_dict(
        {
            "data": {
                "source_language": "en",
                "target_language": "pt",
                "train_source": [str(files[0])],
                "train_target": [str(files[1])],
            },
            "tokenizer": {"kind": "bpe", "vocabulary": vocabulary, "sample": sample},
        }
    )
    prepare(recipe, tmp_path / "data", quiet)
    tokenizer = load_prepared(tmp_path / "data").tokenizers.source
    seen = [
        n for n, x in enumerate(letters) if tokenizer.pieces(tokenizer.encode(x))[-1].endswith(x)
    ]
    assert 0.6 * sample < len(seen) < 1.4 * sample
    assert seen[0] < 20
    assert seen[-1] > 100  # of 120
    assert max(after - before for before, after in pairwise(seen)) < 20
