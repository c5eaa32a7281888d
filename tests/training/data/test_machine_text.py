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
        ("Hello to you.", "Olá."),
        ("I have 3 cats and 1,250.50 reais.", "Tenho 3 gatos e 1.250,50 reais."),
        ("There are 10,000 of them.", "Há 10\u00a0000 deles."),
        ("There are 10,000 of them.", "Há 10\u202f000 deles."),
        ("Since the 21st century began", "Desde que o século XXI começou"),
        ("No, no, no!", "Não, não, não!"),
        ("The Hotel Central", "O Hotel Central"),  # names stay
        ('He said "yes" to me.', "Ele me disse “sim”."),
        ("The Ω symbol 😀", "O símbolo Ω 😀"),
        ("Thank you very much indeed", "Obrigado"),  # short text varies more
        ("R&D of ours", "P&D nossos"),
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
        ("Thanks, Tom.", "Obrigado, Tom.", "short"),
        ("I like the sea.", "Eu gosto do mar (em português).", "brackets"),
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
        (Pair('"Come on in."', "Entre."), '"Entre."'),
        (Pair("“Come on in.”", "Entre."), "“Entre.”"),
        (Pair("It costs $5.", "Custa US $ 5."), "Custa US$ 5."),
        (Pair("It costs R$ 5.", "Custa R $5."), "Custa R$ 5."),
    ],
)
def test_what_the_source_tells_is_mended(pair: Pair, target: str) -> None:
    assert check_machine_made(pair) == ((pair.source, target), None, True)


@pytest.mark.parametrize(
    ("source", "target", "mended"),
    [
        ("It is 5:30 pm.", "São 17:30.", "São 5:30 da tarde."),
        ("It is 5:30 pm.", "São 5:30.", "São 5:30 da tarde."),
        ("It is 5.30 p.m. now.", "São 17h30 agora.", "São 5:30 da tarde agora."),
        ("Call me at 8 PM.", "Me ligue às 20:00.", "Me ligue às 8 da noite."),
        ("Call me at 8 pm, Ana.", "Me ligue às 8 p.m., Ana.", "Me ligue às 8 da noite, Ana."),
        ("Call me at 1 pm.", "Me ligue às 13h.", "Me ligue à 1 da tarde."),
        ("From 9 am to 12:15 pm", "Das 9 horas às 12:15", "Das 9 da manhã às 12:15 da tarde"),
        ("At 9:30 a.m. local time", "Às 9:30 hora local", "Às 9:30 da manhã hora local"),
        ("It costs £5 or £6.50.", "Custa 5 euros ou 6,50 euros.", "Custa 5 libras ou 6,50 libras."),
        ("It costs €1 a day.", "Custa 1 libra por dia.", "Custa 1 euro por dia."),
        ("I am fine. Thanks.", "Bem. Obrigado por enviar uma edição.", "Bem. Obrigado."),
        ("It is by J. Smith.", "É de J. Smith (em inglês).", "É de J. Smith."),
    ],
)
def test_times_currencies_and_what_was_added_are_mended_in_portuguese(
    source: str, target: str, mended: str
) -> None:
    pair = Pair(source, target)
    assert check_machine_made(pair, ("en", "pt-BR")) == ((source, mended), None, True)
    assert check_machine_made(pair, ("en", "es")).pair == pair


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("I wake up at 6 am.", "Eu acordo às 6 da manhã.", None),
        ("Pounds, £5 and €6", "Libras, 5 libras e 6 euros", None),
        ("It costs £5 or 7 euros.", "Custa £ 5 ou 7 euros.", None),
        ("I am here at 10, am I?", "Estou aqui às 10, não?", None),
        ("The fire of 10.25 pm", "O fogo de 10,25", "times"),
        ("It was 7 pm.", "Eram 7h30.", "numbers"),
        ("A charge of £1", "Uma cobrança de 1", "currency"),
        ("£5 and €6", "5 euros e 6 euros", "currency"),
        ("Thank you for coming!", "Obrigado por enviar uma edição!", "made_up"),
        ("It was gross.", "Foi uma grande surpresa.", "made_up"),
        ("It is in English (UK).", "É em inglês (em inglês).", None),
    ],
)
def test_what_can_not_be_mended_in_portuguese_is_found(
    source: str, target: str, expected: Fault | None
) -> None:
    assert check_machine_made(Pair(source, target), ("en", "pt")) == (
        (source, target), expected, False
    )  # fmt: skip


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
    found = fault(f"{source} and so on", f"{' '.join([phrase] * times)} e assim")
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


@given(
    st.text(st.sampled_from('abc 12.,"“”!?R$£€')),
    st.text(st.sampled_from('abc 12.,"“”!?R$')),
    st.sampled_from(["", " 1 pm", " at 11:12 a.m."]),
    st.sampled_from(["", " às 13h", " às 11:12", " 1 p.m. libras"]),
)
def test_mending_again_changes_nothing(source: str, target: str, time: str, same: str) -> None:
    once = check_machine_made(Pair(source + time, target + same), ("en", "pt")).pair
    assert check_machine_made(once, ("en", "pt")).pair == once
