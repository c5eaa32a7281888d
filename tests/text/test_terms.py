"""Terms of a glossary: found as whole words, the longest first, and written as the glossary has
them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.glossaries.terms import Entry, EntryError, Glossary

ENTRIES = (
    *(Entry("red car", "viatura"), Entry("car", "automóvel"), Entry("city", "urbe")),
    *(Entry("Apple", ""), Entry("C++", "C++"), Entry("bus stop", "paragem")),
)


def found(text: str, **options: bool) -> list[tuple[str, str]]:
    glossary = Glossary(ENTRIES, **options)
    return [(term.span.of(text), term.target) for term in glossary.find(text, "pt")]


def test_terms_are_whole_words_and_the_longest_goes_first() -> None:
    assert found("A red car, a car; scar cars red  car Red\ncar") == [
        *(("red car", "viatura"), ("car", "automóvel"), ("red  car", "viatura")),
        ("car", "automóvel"),
    ]


def test_capitals_make_no_difference_unless_they_are_to() -> None:
    assert found("A Car, a CAR. apple") == [
        *(("Car", "automóvel"), ("CAR", "AUTOMÓVEL"), ("apple", "apple")),
    ]
    assert found("A Car, a CAR. apple Apple", case_sensitive=True) == [("Apple", "Apple")]


def test_plurals_are_found_on_request() -> None:
    assert found("two cars and cities, red cars, bus stops") == []
    assert found("two cars and cities, red cars, bus stops", plurals=True) == [
        *(("cars", "automóveis"), ("cities", "urbes"), ("red cars", "viaturas")),
        ("bus stops", "paragens"),
    ]


def test_marks_may_be_part_of_a_term() -> None:
    assert found("I like C++, and C.") == [("C++", "C++")]


def test_nothing_is_found_within_an_address() -> None:
    assert found("See http://x.example/car or car@x.example, my car.") == [("car", "automóvel")]


@pytest.mark.parametrize(
    ("entries", "number"),
    [
        ([Entry("a", "b"), Entry("", "x")], 1),
        ([Entry("12", "b")], 0),
        ([Entry("Car", "b"), Entry("car", "x")], 1),
    ],
)
def test_entries_that_are_no_use_are_refused(entries: list[Entry], number: int) -> None:
    with pytest.raises(EntryError) as raised:
        Glossary(entries)
    assert raised.value.number == number


@given(st.lists(st.sampled_from(("red", "car", "Car", " ", " ", "city", ".", "\n", "bus stop"))))
def test_terms_are_in_order_and_none_overlaps(words: list[str]) -> None:
    text = "".join(words)
    spans = [term.span for term in Glossary(ENTRIES, plurals=True).find(text)]
    for one, other in pairwise(spans):
        assert one.end <= other.start
    for span in spans:
        assert span.of(text).strip() == span.of(text)
