"""Which words of a source stand for unknown tokens, and how they stand in a text."""

import pytest

from dragoman_server.text.unknown import SourceWords, words_for_unknown
from support.vocabularies import TINY, VOCABULARIES

LETTERS = VOCABULARIES["without bytes"]


def place_of(text: str, letters: str) -> int:
    """The place of the token of a text that has these letters."""
    (place,) = [n for n, piece in enumerate(TINY.split(text)) if piece.strip("▁") == letters]
    return place


def test_pieces_of_a_text_are_as_many_as_its_tokens() -> None:
    for vocabulary in VOCABULARIES.values():
        for text in ("the house", "goat ж", "日本", ""):
            assert len(vocabulary.split(text)) == len(vocabulary.encode(text))


def test_a_token_is_part_of_a_word() -> None:
    text = "the housegoat, of"
    words = SourceWords(TINY, text)
    assert len(words) == len(TINY.encode(text))
    assert {words.word(place) for place in range(len(words))} == {"the", "housegoat", "of"}


def test_letters_that_are_spelt_in_bytes_or_not_at_all_are_those_of_the_text() -> None:
    for vocabulary in (TINY, LETTERS):
        words = SourceWords(vocabulary, "the жук of")
        assert {words.word(place) for place in range(len(words))} == {"the", "жук", "of"}


def test_of_a_text_without_spaces_only_a_piece_is_taken() -> None:
    words = SourceWords(TINY, "the" * 20)
    assert all(len(words.word(place)) <= 6 for place in range(len(words)))


def test_unknown_tokens_in_a_row_from_one_word_are_that_word_once() -> None:
    text = "the goat of"
    words = SourceWords(TINY, text)
    the, goat = place_of(text, "the"), place_of(text, "goat")
    unknown, known = TINY.unknown, TINY.encode("house")[0]
    ids = [unknown, unknown, unknown, known, unknown]
    assert words_for_unknown(ids, unknown, [the, goat, goat, the, goat], words) == [
        *("the", "goat", "", "goat")
    ]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["Zyx", "Abc"], "the Zyx goat Abc"),
        (["", "Abc"], "the goat Abc"),
        (["Zyx"], "the Zyx goat"),
        ([], "the goat"),
    ],
)
def test_words_stand_where_the_unknown_tokens_are(words: list[str], text: str) -> None:
    (the,), (goat,) = TINY.encode("the"), TINY.encode("goat")
    ids = [the, TINY.unknown, goat, TINY.unknown]
    assert TINY.decode(ids, words) == text


def test_the_space_before_an_unknown_token_is_the_words() -> None:
    (the,), space = TINY.encode("the"), TINY.find("▁")
    assert space is not None
    assert TINY.decode([the, space, TINY.unknown, the], ["Zyx"]) == "the Zyx the"
    assert TINY.decode([the, space, TINY.unknown, the]) == "the the"
