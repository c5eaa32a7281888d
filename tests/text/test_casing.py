"""Capitals and Title Case, undone before translation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.casing import recase
from dragoman_server.text.masks import MaskSet
from dragoman_server.text.plan import Planner, PlanOptions
from dragoman_server.text.segments import Span
from support.vocabularies import VOCABULARIES

VOCABULARY = VOCABULARIES["en-pt"]
NAMES = Planner(VOCABULARY, "en", 255)
PLACEHOLDERS = Planner(VOCABULARY, "en", 255, masks=MaskSet.placeholders(9))
WORDS = st.sampled_from(
    [
        "PLEASE",
        "NATO",
        "PARIS",
        "I",
        "DON'T",
        "ÉTÉ",
        "STRASSE",
        "ẞ",
        "Ω",
        "İ",
        "ŉ",
        "А",
        "日本",
        "7",
    ]
)


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("PLEASE DO NOT ENTER", "Please do not enter"),
        ("STOP!", "Stop!"),
        ("I LOVE YOU", "I love you"),
        ("DON'T CALL JOHN'S MOTHER", "Don't call John's mother"),
        ("NATO IS READY FOR TALKS IN PARIS", "NATO is ready for talks in Paris"),
        ("COVID-19 CASES RISE IN BRAZIL", "COVID-19 cases rise in Brazil"),
        ("- WE WON 3-1", "- we won 3-1"),
    ],
)
def test_a_sentence_in_capitals_is_written_as_usual(text: str, usual: str) -> None:
    found = recase(text, VOCABULARY.cost)
    assert found is not None
    assert (found.text, found.in_capitals) == (usual, True)


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("How To Make A Cake At Home", "How to make a cake at home"),
        ("He Told Me to Wait for the Bus", "He told me to wait for the bus"),
        ("The New York Times Reports Record Profits", "The New York Times reports record profits"),
    ],
)
def test_so_is_title_case_but_for_names(text: str, usual: str) -> None:
    found = recase(text, VOCABULARY.cost)
    assert found is not None
    assert (found.text, found.in_capitals) == (usual, False)


@pytest.mark.parametrize(
    "text",
    [
        *("NASA", "OK", "HTML", "John Smith And Mary Jones", "New York City", "The cat sat."),
        *("He works for NASA and IBM", "Please do NOT enter", "日本", "", "...", "MAX_ROWS = 12"),
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert recase(text, VOCABULARY.cost) is None


@given(st.lists(WORDS, min_size=1, max_size=6).map(" ".join))
def test_capitals_come_back(text: str) -> None:
    for planner in (NAMES, PLACEHOLDERS):
        for part in planner.plan(text, PlanOptions()):
            assert part.masked.restore(part.masked.source) == part.span.of(text)


@pytest.mark.parametrize("planner", [NAMES, PLACEHOLDERS])
def test_what_is_kept_is_in_its_own_letters(planner: Planner) -> None:
    (part,) = planner.plan("WRITE TO Anna@Example.com OR CALL ME", PlanOptions())
    (mask,) = (name for name, _ in part.masked.masks)
    assert part.masked.source == f"Write to {mask} or call me"
    restored = part.masked.restore(f"Ligue para {mask} já")
    assert restored == "LIGUE PARA Anna@Example.com JÁ"
    assert part.masked.restore("Ligue") is None


def test_numbers_that_are_masked_later_keep_the_sentence_recased() -> None:
    text = "CALL 1,250 PEOPLE"
    (part,) = PLACEHOLDERS.plan(text, PlanOptions())
    again = PLACEHOLDERS.with_numbers(text, part, {Span(5, 10): "1.250"})
    assert again is not None
    assert again.masked.source == "Call ⟨1⟩ people"
    assert again.masked.restore("Ligue para ⟨1⟩ pessoas") == "LIGUE PARA 1.250 PESSOAS"


def test_it_can_be_switched_off() -> None:
    for planner in (NAMES, PLACEHOLDERS):
        (part,) = planner.plan("PLEASE DO NOT ENTER", PlanOptions(recase=False))
        assert part.masked.source == "PLEASE DO NOT ENTER"
        assert part.masked.restore("Não entre") == "Não entre"
