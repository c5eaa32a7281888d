"""Placeholders in training pairs: what is replaced, and that nothing else changes."""

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_training.data.rules.placeholders import (
    MAX_PLACEHOLDERS,
    contains_placeholder,
    placeholder,
    replace_numbers,
    replace_shared_spans,
)
from dragoman_training.data.text.corpus import Pair
from dragoman_training.data.tokenizer import Tokenizer, TokenizerSettings, train_tokenizer
from dragoman_training.errors import RecipeError
from support.tokenizers import SENTENCES

PLACEHOLDER = re.compile(r"⟨[1-9]⟩")
WORDS = st.sampled_from(
    ["Tom", "Maria", "tom", "casa", "the", "42", "1,250.50", "1.250,50", "R$", "$5", "50%", "(3)"]
    + ['"Anna"', "x=1", "a@b.org", "http://x.org/y", "—", "...", "U.S.", "10:30", "São", "%d", "⟨"]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=14).map(" ".join)
PAIRS = st.builds(Pair, TEXTS, TEXTS)


def numbers_of(text: str) -> list[str]:
    return PLACEHOLDER.findall(text)


Meanings = frozenset[tuple[str, str]]


def meanings_of(original: str, replaced: str) -> set[Meanings]:
    """What the placeholders may stand for, so that restoring them gives the original.

    Figures count without what separates them. Where placeholders are neighbours, there may be
    several answers.
    """
    found = PLACEHOLDER.search(replaced)
    if found is None:
        return {frozenset()} if original == replaced else set()
    before, rest = replaced[: found.start()], replaced[found.end() :]
    if not original.startswith(before):
        return set()
    after = PLACEHOLDER.split(rest)[0]
    answers: set[Meanings] = set()
    for end in range(len(before) + 1, len(original) + 1):
        if original.startswith(after, end):
            span = original[len(before) : end]
            alike = span if re.search(r"[^\d.,]", span) else re.sub(r"\D", "", span)
            answers |= {
                others | {(found.group(), alike)} for others in meanings_of(original[end:], rest)
            }
    return answers


def made(pair: Pair, seed: int) -> Pair:
    variant = replace_shared_spans(pair, random.Random(seed))
    assert variant is not None
    return variant


@given(PAIRS, st.integers(0, 1000))
def test_each_placeholder_is_once_on_each_side_and_restores_the_pair(pair: Pair, seed: int) -> None:
    variant = made(pair, seed)
    source, target = map(numbers_of, variant)
    assert 1 <= len(source) <= MAX_PLACEHOLDERS
    assert max(Counter(source).values()) == 1
    assert sorted(source) == sorted(target)
    if len(source) == 1 and any(
        variant == (form.format(pair.source), form.format(pair.target))
        for form in (f"{source[0]} {{}}", f"{{}} {source[0]}")
    ):
        return  # one that stands for nothing, at an end
    assert meanings_of(pair.source, variant.source) & meanings_of(pair.target, variant.target)


@given(PAIRS, st.integers(0, 1000))
def test_the_same_generator_replaces_the_same(pair: Pair, seed: int) -> None:
    assert made(pair, seed) == made(pair, seed)


@pytest.mark.parametrize(
    ("pair", "span"),
    [
        (Pair("I saw Tom.", "Eu vi o Tom."), ("Tom", "Tom")),
        (Pair("I saw Anna Smith there.", "Vi Anna Smith lá."), ("Anna Smith", "Anna Smith")),
        (Pair("Write to a@b.org, now", "Escreva a a@b.org agora"), ("a@b.org", "a@b.org")),
        (Pair("Open %d now", "Abra %d agora"), ("%d", "%d")),
        (Pair("Yes & no", "Sim & não"), None),  # no letter or figure in it
        # Numbers are alike whatever separates their digits; signs of money stay outside.
        (Pair("It was $1,250.50!", "Foi R$ 1.250,50!"), ("1,250.50", "1.250,50")),
        (Pair("About 50% off", "Cerca de 50 % a menos"), ("50", "50")),
        # Words that two languages happen to share are words still.
        (Pair("a hotel", "um hotel"), None),
        # What stands twice on a side could come back at the wrong place.
        (Pair("Tom and Tom", "o Tom"), None),
        (Pair("only Tom", "o Tom e o Tom"), None),
        (Pair("3 of 3", "3 de 3"), None),
        (Pair("Tom and Ann", "Ann e a mãe"), ("Ann", "Ann")),
    ],
)
def test_what_both_sides_have_alike_once_is_replaced(
    pair: Pair, span: tuple[str, str] | None
) -> None:
    for seed in range(30):
        variant = made(pair, seed)
        (number,) = numbers_of(variant.source)
        if span is None:
            assert variant in (
                (f"{number} {pair.source}", f"{number} {pair.target}"),
                (f"{pair.source} {number}", f"{pair.target} {number}"),
            )
        else:
            assert variant == (
                pair.source.replace(span[0], number),
                pair.target.replace(span[1], number),
            )


def test_the_order_of_two_languages_may_differ() -> None:
    pair = Pair("Tom gave Maria 5 of them.", "A Maria ganhou 5 do Tom.")
    seen = {tuple(numbers_of(made(pair, seed).target)) for seed in range(200)}
    assert ("⟨2⟩", "⟨3⟩", "⟨1⟩") in seen  # numbered by the source, as a server does
    assert len({len(numbers) for numbers in seen}) == 3  # one, two or all of them
    assert any(sorted(numbers) != list(numbers) and "⟨9⟩" in numbers for numbers in seen)


def test_all_numbers_come_about_equally_often() -> None:
    pair = Pair("Nothing is shared", "Nada em comum")
    counts = Counter(numbers_of(made(pair, seed).source)[0] for seed in range(900))
    assert set(counts) == {placeholder(n) for n in range(1, 10)}
    assert min(counts.values()) > 60


def test_at_most_nine_are_replaced() -> None:
    text = " and ".join(f"X{n}" for n in range(30))
    assert max(len(numbers_of(made(Pair(text, text), seed).source)) for seed in range(20)) == 9


@pytest.mark.parametrize("pair", [Pair("a ⟨1⟩", "b"), Pair("a", "b ⟨9⟩")])
def test_a_pair_with_placeholders_is_left_alone(pair: Pair) -> None:
    assert replace_shared_spans(pair, random.Random(1)) is None


def test_only_one_to_nine_are_placeholders() -> None:
    assert all(contains_placeholder(f"x{placeholder(n)}y") for n in range(1, 10))
    assert not any(map(contains_placeholder, ["⟨0⟩", "⟨10⟩", "<1>", "⟨⟩", "1"]))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    settings = TokenizerSettings(vocabulary=300, placeholders=9)
    return train_tokenizer(SENTENCES, settings, seed=1)


def test_a_placeholder_is_one_piece_wherever_it_stands(tokenizer: Tokenizer) -> None:
    assert tokenizer.placeholders == 9
    ids = {tokenizer.encode(f"a{placeholder(n)}")[-1] for n in range(1, 10)}
    assert len(ids) == 9
    for n in range(1, 10):
        (piece,) = [
            p for p in tokenizer.pieces(tokenizer.encode(f"({placeholder(n)}x")) if "⟨" in p
        ]
        assert piece == placeholder(n)
        text = f"a {placeholder(n)}, b{placeholder(n)}c"
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_vocabulary_knows_how_many_it_has() -> None:
    for count in (0, 4):
        settings = TokenizerSettings(vocabulary=300, placeholders=count)
        assert train_tokenizer(SENTENCES, settings, seed=1).placeholders == count
    with pytest.raises(ValueError, match="placeholders is 10: it must be at most 9"):
        TokenizerSettings(placeholders=10)


def test_digits_may_be_pieces_of_their_own() -> None:
    text = [*SENTENCES, *(f"2010 {n}" for n in range(50))]
    apart, together = (
        train_tokenizer(text, TokenizerSettings(vocabulary=300, split_digits=split), seed=1)
        for split in (True, False)
    )
    assert apart.pieces(apart.encode("2010"))[-4:] == ["2", "0", "1", "0"]
    assert len(together.encode("2010")) < 4


def test_vocabulary_and_variants_must_fit() -> None:
    from dragoman_training.config.recipe import recipe_from_dict

    table = {
        "data": {
            "source_language": "en",
            "target_language": "pt",
            "corpora": [{"name": "prose", "source": "a.tsv", "variants": {"placeholders": 0.1}}],
        },
        "tokenizer": {"placeholders": 9},
    }
    assert recipe_from_dict(table)
    for too_few in (0, 8):
        table["tokenizer"]["placeholders"] = too_few  # type: ignore[index]
        with pytest.raises(
            RecipeError, match=r"prose has placeholders, which need tokenizer\.placeholders = 9"
        ):
            recipe_from_dict(table)


def test_numbers_get_other_digits_in_the_same_spelling() -> None:
    pair = Pair("It cost $1,250.50 in 1999.", "Em 1999 custou US$ 1.250,50.")
    drawn = {replace_numbers(pair, random.Random(seed)) for seed in range(20)}
    assert len(drawn) > 15
    for other in drawn:
        assert other is not None
        price, year = re.findall(r"[\d.,]*\d", other.source)
        assert re.fullmatch(r"[1-9],\d{3}\.\d{2}", price)
        respelt = price.translate(str.maketrans(",.", ".,"))
        assert other.target == f"Em {year} custou US$ {respelt}."


def test_numbers_that_are_not_on_both_sides_stay() -> None:
    rng = random.Random(0)
    assert replace_numbers(Pair("3 and 3", "3 e 3"), rng) is None  # which is which?
    assert replace_numbers(Pair("two", "2"), rng) is None
    other = replace_numbers(Pair("At 12 in room 007", "No 007 ao meio-dia"), rng)
    assert other is not None
    assert other.source.startswith("At 12 in room 0")
    assert other.target.startswith("No 0")
