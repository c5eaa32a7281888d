"""Faults that a translation shows by itself."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.faults import Fault, cut_loop, examiner_for, is_loop

EXAMINER = examiner_for("en", "pt")

LOOPS = [
    "PVIIIIIIIIIIII",
    "Oi Oi Oi",
    "para fora para fora para fora de livre",
    "Eu sei, eu sei, eu sei.",
    "o que é o que é o que é",
    "hahahahahahahaha",
]
FINE = [
    "Olá!",
    "Muito, muito obrigado.",
    "1000000000",  # digits may repeat
    "..........",
    "Não, não, eu não quero.",
    "um dois um dois três",
]


@pytest.mark.parametrize("text", LOOPS)
def test_a_loop_is_found_and_cut(text: str) -> None:
    assert is_loop(text, "Something else.")
    assert EXAMINER.fault("Something else.", text) is Fault.LOOP
    cut = cut_loop(text)
    assert cut
    assert text.startswith(cut)
    assert not is_loop(cut, "")


@pytest.mark.parametrize("text", FINE)
def test_what_is_no_loop_stays(text: str) -> None:
    assert not is_loop(text, "")
    assert cut_loop(text) == text


def test_a_source_may_repeat_itself() -> None:
    assert not is_loop("não não não", "no no no")
    assert EXAMINER.fault("no no no", "não não não") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Eu sei, eu sei, eu sei.", "Eu sei,"),
        ("Ele foi para fora para fora para fora.", "Ele foi para fora"),
        ("PVIIIIIIIII", "PVI"),
    ],
)
def test_a_loop_is_cut_after_its_first_time(text: str, expected: str) -> None:
    assert cut_loop(text) == expected


@pytest.mark.parametrize("target", ["", " ", ".", "123", "—"])
def test_a_source_with_letters_has_a_translation_with_letters(target: str) -> None:
    assert EXAMINER.fault("Monday", target) is Fault.EMPTY


def test_what_has_no_letters_may_have_no_letters() -> None:
    assert EXAMINER.fault("12 + 3", "12 + 3") is None


def test_other_numbers_are_a_fault() -> None:
    assert EXAMINER.fault("350 dollars", "35 dólares") is Fault.NUMBERS
    assert EXAMINER.fault("1,250.50 dollars", "1.250,50 dólares") is None


@given(st.text(alphabet="ab c.é", max_size=80))
def test_what_is_cut_begins_the_text_and_does_not_loop(text: str) -> None:
    cut = cut_loop(text)
    assert text.startswith(cut)
    assert (cut == text) == (not is_loop(text, "") or cut == text)


def test_a_long_text_is_looked_through_quickly() -> None:
    text = " ".join(f"w{n % 997}" for n in range(20_000))
    began = time.process_time()
    assert not is_loop(text, "")
    assert time.process_time() - began < 2
