"""Numbers in two languages: compared by value, and respelt for the target."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.numbers import COMMA, POINT, Numbers, spelling_of
from dragoman_server.text.segments import Span

EN_PT = Numbers(POINT, COMMA)
UNKNOWN = Numbers(POINT, None)


@pytest.mark.parametrize(
    ("language", "expected"),
    [("en", POINT), ("pt", COMMA), ("pt-BR", COMMA), ("pt_PT", COMMA), ("EN-us", POINT)],
)
def test_a_language_has_a_spelling(language: str, expected: object) -> None:
    assert spelling_of(language) == expected


def test_a_language_that_is_not_known_has_none() -> None:
    assert spelling_of("xx") is None
    assert spelling_of("") is None


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("It cost 350 dollars.", "Custou 350 dólares."),
        ("It cost $1,250.50.", "Custou US$ 1.250,50."),
        ("It cost $1,250.50.", "Custou 1250,50 dólares."),
        ("About 1,234,567 people", "Cerca de 1.234.567 pessoas"),
        ("About 1,234,567 people", "Cerca de 1\u00a0234\u00a0567 pessoas"),
        ("5.5% of 20", "5,5% de 20"),
        ("at 10:30 on 12/03/2024", "às 10h30 de 12/03/2024"),
        ("at 09:05", "às 9h05"),
        ("version 1.2.3", "versão 1.2.3"),
        ("in 1999 and 2001", "em 2001 e 1999"),
        ("two cats", "2 gatos"),  # written out, which is no fault
        ("no numbers", "sem números"),
    ],
)
def test_the_same_numbers(source: str, target: str) -> None:
    assert not EN_PT.differ(source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("It cost 350 dollars.", "Custou 35 dólares."),
        ("It cost 350 dollars.", "Custou dólares."),
        ("It cost $1,250.50.", "Custou 1,250.50."),  # in the source's spelling
        ("1.5 metres", "15 metros"),
        ("1.5 metres", "1.5 metros"),
        ("3 and 3", "3"),
        ("3", "3 e 4"),
        ("1,234", "1,234"),
    ],
)
def test_other_numbers(source: str, target: str) -> None:
    assert EN_PT.differ(source, target)


def test_without_a_known_spelling_only_the_digits_count() -> None:
    assert not UNKNOWN.differ("1,250.50", "1.250,50")
    assert UNKNOWN.differ("1,250.50", "1.250")


def respelt(text: str, numbers: Numbers = EN_PT) -> list[str]:
    return list(numbers.respelt(text, Span(0, len(text))).values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$1,250.50 or 3", ["1.250,50", "3"]),
        ("1,234,567", ["1.234.567"]),
        ("5.5%", ["5,5"]),
        ("2024", ["2024"]),
        ("version 1.2.3", ["1.2.3"]),
        ("12,34,567", ["12,34,567"]),  # not English: left as it is
        ("10:30", ["10", "30"]),
    ],
)
def test_numbers_are_respelt_for_the_target(text: str, expected: list[str]) -> None:
    assert respelt(text) == expected


def test_only_the_numbers_of_the_span_are_respelt() -> None:
    assert EN_PT.respelt("1.5 and 2.5", Span(4, 11)) == {Span(8, 11): "2,5"}


def test_between_unknown_spellings_numbers_stay() -> None:
    assert respelt("1,250.50", UNKNOWN) == ["1,250.50"]
    assert respelt("1,250.50", Numbers(POINT, POINT)) == ["1,250.50"]


@given(st.lists(st.decimals(0, 10**9, places=2, allow_nan=False), min_size=1, max_size=5))
def test_what_is_respelt_has_the_same_numbers(values: list[object]) -> None:
    source = " and ".join(f"{value:,}" for value in values)
    target = " e ".join(respelt(source))
    assert not EN_PT.differ(source, target)
    assert not Numbers(COMMA, POINT).differ(target, source)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("It cost $350 in 2024.", "Custou US$ 35 em 2024.", "Custou US$ 350 em 2024."),
        ("About 50,000 of 7", "Cerca de 50.0000 de 7", "Cerca de 50.000 de 7"),
        ("About 50,000 of 7", "Cerca de 50 de 7", "Cerca de 50.000 de 7"),
        ("From 5 to 6", "De 7 a 8", None),
        ("From 5 to 6", "De 5 a 6", None),
        ("From 5 to 6", "De 5 a 6 ou 7", None),
        ("From 5 to 6", "De 5", None),
        ("Only 5 of 6", "Só 6 de 6", None),  # which of both is wrong?
        ("On 12/03/2024", "Em 12/03/2025", "Em 12/03/2024"),
        ("Version 1.2.3", "Versão 1.2.4", "Versão 1.2.3"),
    ],
)
def test_one_wrong_number_is_corrected(source: str, target: str, expected: str | None) -> None:
    assert EN_PT.corrected(source, target) == expected


def test_nothing_is_corrected_where_a_spelling_is_not_known() -> None:
    assert UNKNOWN.corrected("It cost 350.", "Custou 35.") is None
