"""Variants: what users type, made of a pair by rules."""

import random
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_training.config.data_settings import VariantSettings
from dragoman_training.data.rules.variants import VARIANTS, variants_of
from dragoman_training.data.text.corpus import Pair

KINDS = [each.name for each in fields(VariantSettings)]
ALL = VariantSettings(**dict.fromkeys(KINDS, 1.0))
TEXT = st.text(st.sampled_from("abcçéTMo .!?…,1%🎉⟨"), min_size=1, max_size=30).map(str.strip)
PAIRS = st.builds(Pair, TEXT.filter(bool), TEXT.filter(bool))

COFFEE = Pair("Would Tom like a cup of coffee?", "O Tom gostaria de um café?")
CODE = Pair("Open %s in the <b>browser</b>.", "Abra %s no <b>navegador</b>.")


def made(kind: str, pair: Pair, seed: int = 0) -> Pair | None:
    return VARIANTS[kind](pair, random.Random(seed))


def drawn(pair: Pair, seed: object = 0, **shares: float) -> list[tuple[str, Pair]]:
    settings = VariantSettings(**shares) if shares else ALL
    return list(variants_of(pair, settings, random.Random(str(seed))))


def test_every_setting_has_its_rule() -> None:
    assert list(VARIANTS) == KINDS


@given(PAIRS, st.integers())
def test_the_same_generator_draws_the_same(pair: Pair, seed: int) -> None:
    assert drawn(pair, seed) == drawn(pair, seed)


@given(PAIRS, st.integers())
def test_a_variant_is_another_pair_with_text_on_both_sides(pair: Pair, seed: int) -> None:
    for _, variant in drawn(pair, seed):
        assert variant != pair
        assert variant.source.strip()
        assert variant.target.strip()


@pytest.mark.parametrize("pair", [Pair("?!", "?!"), Pair("...", "…")])
def test_nothing_but_marks_is_not_made_empty(pair: Pair) -> None:
    assert drawn(pair, lower=1.0, bare=1.0) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_share_is_of_the_pairs(kind: str) -> None:
    pair = Pair("olá, it is a réal Day 25 for Tom.", "Olá, é um dia 25 de verdade.")
    made = sum(len(drawn(pair, n, **{kind: 0.1})) for n in range(3000))
    assert 220 < made < 380
    assert drawn(pair, 1, **{kind: 0.0}) == []


def test_capitals() -> None:
    assert made("upper", COFFEE) == (COFFEE.source.upper(), COFFEE.target.upper())
    assert made("upper", Pair("a" * 161, "b")) is None


def test_a_heading_has_capitals_in_the_source_only() -> None:
    variants = {made("title", COFFEE, seed) for seed in range(20)}
    assert variants == {
        ("Would Tom Like A Cup Of Coffee", "O Tom gostaria de um café"),
        ("Would Tom Like a Cup of Coffee", "O Tom gostaria de um café"),
    }
    assert made("title", Pair("Coffee", "Café")) is None


def test_the_first_word_of_a_heading_has_a_capital_even_if_it_is_small() -> None:
    small = Pair("the end", "o fim")
    assert {made("title", small, seed) for seed in range(20)} == {("The End", "o fim")}


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (COFFEE, ("would tom like a cup of coffee", "o Tom gostaria de um café")),
        # A name at the beginning keeps its capital in the target, and so does an abbreviation.
        (Pair("Tom slept.", "Tom dormiu."), ("tom slept", "Tom dormiu")),
        (Pair("The EU agreed.", "UE concordou."), ("the eu agreed", "UE concordou")),
        (Pair("A dog barks.", "A cadela late."), ("a dog barks", "a cadela late")),
        # A mark that only one side has stays.
        (Pair("Go on!", "Continue"), ("go on!", "continue")),
    ],
)
def test_lower_case(pair: Pair, expected: tuple[str, str]) -> None:
    assert made("lower", pair) == expected


def test_final_marks_go_from_both_sides_or_none() -> None:
    assert made("bare", Pair("Really?!", "Sério?")) == ("Really", "Sério")
    assert made("bare", Pair("Really?", "Sério")) == ("Really?", "Sério")
    assert made("bare", Pair("Mr. Tom", "Sr. Tom")) == ("Mr. Tom", "Sr. Tom")


def test_first_capitals() -> None:
    assert made("capital", Pair("water", "água")) == ("Water", "Água")


def test_no_accents() -> None:
    assert made("no_accents", Pair("Um café à tarde, não?", "x")) == ("Um cafe a tarde, nao?", "x")


def edits(left: str, right: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours between two texts."""
    previous: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        before, previous, row = previous, row, [i]
        for j, b in enumerate(right, start=1):
            best = min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and b == left[i - 2]:
                best = min(best, before[j - 2] + 1)
            row.append(best)
    return row[-1]


def test_typing_errors_are_one_or_two_and_in_the_source() -> None:
    counts = []
    for seed in range(300):
        variant = made("typos", COFFEE, seed)
        assert variant is not None
        assert variant.target == COFFEE.target
        counts.append(edits(COFFEE.source, variant.source))
    assert set(counts) <= {0, 1, 2}  # 0: two equal letters were swapped, or a second undid a first
    assert counts.count(1) > 100
    assert counts.count(2) > 30
    assert counts.count(0) < 30
    assert made("typos", Pair("No.", "Não.")) == ("No.", "Não.")  # too short to be recognised


def test_the_first_letter_of_a_word_is_typed_right() -> None:
    for seed in range(300):
        variant = made("typos", Pair("strange translations", "traduções estranhas"), seed)
        assert variant is not None
        first, second = variant.source.split(" ")
        # The second letter may have slipped before it.
        assert first.startswith(("s", "ts"))
        assert second.startswith(("t", "rt"))


def test_items_have_the_same_mark_on_both_sides() -> None:
    marks = set()
    for seed in range(300):
        variant = made("items", Pair("Buy milk", "Comprar leite"), seed)
        assert variant is not None
        mark = variant.source.removesuffix("Buy milk")
        assert mark.endswith(" ")
        assert variant == (f"{mark}Buy milk", f"{mark}Comprar leite")
        marks.add(mark)
    assert {"- ", "• ", "a) "} <= marks
    assert any(mark[0].isdigit() for mark in marks)
    assert made("items", Pair("x" * 121, "y")) is None


def test_emoji_are_the_same_on_both_sides() -> None:
    seen = set()
    for seed in range(300):
        variant = made("emoji", COFFEE, seed)
        assert variant is not None
        around = tuple(text.split(own) for text, own in zip(variant, COFFEE, strict=True))
        assert around[0] == around[1]
        before, after = around[0]
        assert (before == "") != (after == "")
        seen.add((before + after).strip())
    assert len(seen) > 40


@pytest.mark.parametrize("kind", ["upper", "title", "lower", "typos"])
@pytest.mark.parametrize(
    "pair",
    [CODE, Pair("See http://x.org.", "Veja http://x.org."), Pair("Ask ⟨1⟩ it.", "Peça a ⟨1⟩.")],
)
def test_what_is_no_prose_is_not_changed_letter_by_letter(kind: str, pair: Pair) -> None:
    assert made(kind, pair) is None


@pytest.mark.parametrize(("value", "bound"), [(1.5, "most 1"), (-0.1, "least 0")])
def test_a_share_is_between_0_and_1(value: float, bound: str) -> None:
    wrong: dict[str, Any] = {"typos": value}
    with pytest.raises(ValueError, match=f"typos is {value}: it must be at {bound}"):
        VariantSettings(**wrong)
