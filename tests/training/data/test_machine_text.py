"""Faults of machine translation: which are found, which are mended, and what passes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_training.data.rules.machine_text import Fault, check_machine_made
from dragoman_training.data.text.corpus import Pair
from dragoman_training.data.text.filters import FilterReport


def fault(source: str, target: str) -> Fault | None:
    return check_machine_made(Pair(source, target)).fault


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Hello.", "Olá."),
        ("I have 3 cats and 1,250.50 reais.", "Tenho 3 gatos e 1.250,50 reais."),
        ("There are 10,000 of them.", "Há 10\u00a0000 deles."),
        ("There are 10,000 of them.", "Há 10\u202f000 deles."),
        ("Since the 21st century began", "Desde que o século XXI começou"),
        ("No, no, no!", "Não, não, não!"),
        ("Hotel Central", "Hotel Central"),  # names stay
        ('He said "yes" to me.', "Ele me disse “sim”."),
        ("The Ω symbol 😀", "O símbolo Ω 😀"),
        ("Thank you very much indeed", "Obrigado"),  # short text varies more
        ("R&D", "P&D"),
    ],
)
def test_good_pairs_pass_as_they_are(source: str, target: str) -> None:
    checked = check_machine_made(Pair(source, target))
    assert checked == ((source, target), None, False)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("It is a long sentence that goes on and on for a while.", "É.", "length"),
        ("Yes, I do.", "Sim, " + "é claro que eu quero " * 3, "length"),
        ("I have 3 cats.", "Tenho 4 gatos.", "numbers"),
        ("I have 3 cats.", "Tenho gatos.", "numbers"),
        ("I have cats.", "Tenho 3 gatos.", "numbers"),
        ("Chapter 21 begins here", "O capítulo XXI começa aqui", "numbers"),
        ('He said "yes" to me.', "Ele me disse sim.", "quotes"),
        ('He said "yes" to me.', 'Ele me disse "sim.', "quotes"),
        ("I really like it here.", "Eu gosto, gosto, gosto daqui.", "repeated"),
        ("We went to the market today.", "Fomos ao Fomos ao Fomos ao mercado.", "repeated"),
        (
            "This is only what she told him about it.",
            "This is only what she told ele sobre it.",
            "untranslated",
        ),
        ("I like the sea.", "Eu gosto do 海.", "characters"),
        ("I like the sea.", "Eu gosto do mar ♪.", "characters"),
        ("I like the sea.", "Eu gosto do mar\ufffd.", "characters"),
    ],
)
def test_faults_are_found(source: str, target: str, expected: Fault) -> None:
    assert fault(source, target) == expected


@pytest.mark.parametrize(
    ("pair", "target"),
    [
        (Pair('"Come in."', "Entre."), '"Entre."'),
        (Pair("“Come in.”", "Entre."), "“Entre.”"),
        (Pair("It costs $5.", "Custa US $ 5."), "Custa US$ 5."),
        (Pair("It costs R$ 5.", "Custa R $5."), "Custa R$ 5."),
    ],
)
def test_what_the_source_tells_is_mended(pair: Pair, target: str) -> None:
    assert check_machine_made(pair) == ((pair.source, target), None, True)


@pytest.mark.parametrize(
    "pair",
    [
        Pair('"No" and "yes"', "Não e sim"),  # which words were quoted can't be told
        Pair('He said "come in"', "Ele disse para entrar"),
    ],
)
def test_quotes_that_can_not_be_placed_are_not_made_up(pair: Pair) -> None:
    checked = check_machine_made(pair)
    assert (checked.pair, checked.fault) == (pair, "quotes")


def test_a_mended_pair_is_checked_too() -> None:
    checked = check_machine_made(Pair('"I have 3 cats."', "Tenho 4 gatos."))
    assert (checked.fault, checked.mended) == ("numbers", True)


@given(st.integers(1, 6), st.integers(1, 5))
def test_up_to_six_words_that_stand_three_times_are_a_repetition(words: int, times: int) -> None:
    phrase = " ".join(f"palavra{chr(97 + n)}" for n in range(words))
    source = " ".join(f"word{chr(97 + n)}{chr(97 + m)}" for n in range(words) for m in range(times))
    found = fault(source, " ".join([phrase] * times))
    assert found == ("repeated" if times >= 3 else None)


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_has_an_answer_that_the_report_can_count(source: str, target: str) -> None:
    checked = check_machine_made(Pair(source, target))
    assert checked == check_machine_made(Pair(source, target))
    assert checked.mended == (checked.pair.target != target)
    assert checked.pair.source == source
    if checked.fault is not None:
        report = FilterReport()
        report.count(checked.fault)
        assert report.read == 1


@given(st.text(st.sampled_from('abc 12.,"“”!?R$')), st.text(st.sampled_from('abc 12.,"“”!?R$')))
def test_mending_again_changes_nothing(source: str, target: str) -> None:
    once = check_machine_made(Pair(source, target)).pair
    assert check_machine_made(once).pair == once
