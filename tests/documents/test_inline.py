"""Inline tags: which translations have the tags of their source, and texts piece by piece."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.inline import by_pieces, join, one_line, split, tags_hold, texts_of

SOURCE = "Press <x1>the <x2/>big</x1> button &amp; <x3>wait</x3>"


@pytest.mark.parametrize(
    ("translation", "holds"),
    [
        (SOURCE, True),
        ("<x3>Espere</x3> e <x1>aperte <x2/></x1> o botão &lt; x", True),
        ("<x1>a</x1><x2/><x3>b</x3>", True),
        ("<x1>a<x3>b</x1>c</x3><x2/>", False),
        ("</x1>a<x1><x2/><x3>b</x3>", False),
        ("<x1>a</x1><x2/>", False),
        ("<x1>a</x1><x2/><x2/><x3>b</x3>", False),
        ("<x1>a</x1><x2></x2><x3>b</x3>", False),
        ("<x1>a</x1><x2/><x3>b</x3><b>", False),
        ("<x1>a</x1><x2/><x3>b</x3> 3 < 4", False),
        ("", False),
    ],
)
def test_tags_hold(translation: str, holds: bool) -> None:
    assert tags_hold(SOURCE, translation) == holds


def test_piece_by_piece() -> None:
    assert texts_of(SOURCE) == ["Press", "the", "big", "button &", "wait"]
    shouted = by_pieces(SOURCE, str.upper)
    assert shouted == "PRESS <x1>THE <x2/>BIG</x1> BUTTON &amp; <x3>WAIT</x3>"
    assert tags_hold(SOURCE, by_pieces(SOURCE, lambda text: "<x9>"))


@given(st.lists(st.one_of(st.text(alphabet="ab <>&;x1/", min_size=1), st.just("&amp;"))))
def test_text_survives_being_escaped(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert "".join(map(str, split(join([text])))) == text


def test_spaces_that_do_not_break_stay() -> None:
    assert one_line(" a \n\t b\u00a0c ") == "a b\u00a0c"
