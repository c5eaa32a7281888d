"""The picture of an alignment shows words, whatever pieces a vocabulary cuts them into."""

import pytest

from dragoman_cli.heat_map import by_words, words_of
from dragoman_client import Alignment


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ("▁Where ▁is ▁Ann a ? </s>", "Where is Anna ? </s>"),
        ("▁O ' B r ien ' s ▁e - mail , </s>", "O'Brien's e-mail , </s>"),
        ("▁( no ! ) ▁— ▁$ 5 . 9 9", "( no ! ) — $ 5.99"),
        ("▁ <0xE2> <0x98> <0x83> ▁ ( x )", "☃ ( x )"),
        ("▁我 喜欢 猫 。 </s>", "我 喜欢 猫 。 </s>"),
    ],
)
def test_pieces_are_joined_to_words(pieces: str, words: str) -> None:
    found = words_of(pieces.split(" "))
    assert [word for word, _ in found] == words.split(" ")
    places = [place for _, each in found for place in each]
    assert places == list(range(len(pieces.split(" "))))


def test_weights_of_a_word_are_those_of_its_pieces() -> None:
    alignment = Alignment(
        source_pieces=("▁Ann", "a", "</s>"),
        target_pieces=("▁A", "na", "</s>"),
        weights=((0.5, 0.25, 0.25), (0.0, 0.75, 0.25), (0.0, 0.0, 1.0)),
    )
    sources, targets, weights = by_words(alignment)
    assert (sources, targets) == (["Anna", "</s>"], ["Ana", "</s>"])
    assert weights == [[0.75, 0.25], [0.0, 1.0]]
