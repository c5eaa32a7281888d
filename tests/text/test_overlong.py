"""Sentences that a model can't take in one go."""

import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.overlong import split_overlong
from dragoman_server.text.segments import Span, between

TEXTS = st.lists(
    st.sampled_from(
        [
            "house",
            "mouse,",
            "goat;",
            " ",
            "  ",
            "\t",
            "e\u0301",
            "👩\u200d👧",
            "日本、",
            "3,14",
            "\u0301",
        ]
    )
    | st.text(max_size=6),
    max_size=30,
).map("".join)


def split(text: str, most: int) -> list[str]:
    spans = split_overlong(text, Span(0, len(text)), lambda part: len(part) <= most)
    return [span.of(text) for span in spans]


def check(text: str, span: Span, fits: Callable[[str], bool]) -> list[Span]:
    parts = split_overlong(text, span, fits)
    for part in parts:
        assert fits(part.of(text))
        assert part.of(text)
        assert part.of(text) == part.of(text).strip()
    gaps = between(span, parts)
    assert all(gap.start <= gap.end and not gap.of(text).strip() for gap in gaps)
    return parts


@given(text=TEXTS, most=st.integers(1, 30), data=st.data())
def test_parts_fit_and_lose_nothing_but_white_space(
    text: str, most: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text)))
    span = Span(start, data.draw(st.integers(start, len(text))))
    parts = check(text, span, lambda part: len(part) <= most)
    if len(span.of(text).strip()) <= most:
        assert len(parts) <= 1
    check(text, span, lambda part: len(part.encode()) <= max(4, most))


@given(text=TEXTS)
def test_parts_fit_even_where_a_shorter_text_may_not(text: str) -> None:
    # As with a tokenizer, which may need more tokens for a part of a word than for the word.
    check(text, Span(0, len(text)), lambda part: len(part) < 2 or zlib.crc32(part.encode()) % 3 > 0)


def test_what_fits_is_asked_of_a_part_as_it_is_given_to_the_model() -> None:
    check("ab cd", Span(0, 5), lambda part: len(part) < 2 or part.endswith(" "))


@given(text=TEXTS)
def test_where_nothing_fits_each_letter_is_a_part(text: str) -> None:
    parts = split_overlong(text, Span(0, len(text)), lambda _: False)
    assert [part.of(text) for part in parts] == [*"".join(text.split())]


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        # After a clause in the second half, though another word would fit
        ("one two three, four five six", 20, ["one two three,", "four five six"]),
        ("one two (three) four five six", 20, ["one two (three)", "four five six"]),
        # not in the first
        ("one, two three four five six", 20, ["one, two three four", "five six"]),
        # nor within a number, even where the part would end there
        ("one two three 3,141592 four", 16, ["one two three", "3,141592 four"]),
        # At a space, even where it is the next letter
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 6, ["one", "two", "three"]),
        ("one  \t two", 5, ["one", "two"]),
        # In a word where it alone is too long
        ("a wonderful day", 4, ["a", "wond", "erfu", "l", "day"]),
        # Scripts that have no spaces
        ("日本日本日、本日本日本日本", 8, ["日本日本日、", "本日本日本日本"]),
        ("日本日本日、本日、日本", 8, ["日本日本日、", "本日、日本"]),
        # Not between a letter and its marks, unless these alone are too many
        ("abe\u0301e\u0301", 3, ["ab", "e\u0301", "e\u0301"]),
        ("e\u0301\u0301\u0301", 3, ["e\u0301\u0301", "\u0301"]),
        ("👩\u200d👧👩\u200d👧", 4, ["👩\u200d👧", "👩\u200d👧"]),
    ],
)
def test_a_part_ends_where_a_reader_would_pause(text: str, most: int, expected: list[str]) -> None:
    assert split(text, most) == expected


@pytest.mark.parametrize("unit", ["a", "a ", "a, ", ",", "日", "e\u0301", "\u0301"])
@pytest.mark.parametrize("most", [1, 500])
def test_work_grows_with_the_text_and_not_with_its_square(unit: str, most: int) -> None:
    text = (unit * 20_000)[:20_000]
    seen = 0

    def fits(part: str) -> bool:
        nonlocal seen
        seen += len(part)
        return len(part) <= most

    split_overlong(text, Span(0, len(text)), fits)
    assert seen < 40 * len(text)
