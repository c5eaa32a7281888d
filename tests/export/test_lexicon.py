"""Shortlists learnt from parallel text, of languages that are made up."""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from dragoman_export import lexicon
from dragoman_export.errors import ExportError
from dragoman_export.lexicon import LexiconSettings, shortlist_from
from dragoman_server.bundle.shortlist import MAX_SHORTLIST_TOKENS, Shortlist
from support.corpora import quiet

END = 3
WORDS = 30
SOURCE_VOCABULARY = 50
"""The words are 10 to 39; nothing else occurs."""
TARGET_VOCABULARY = 100
FUNCTION = 97

Pair = tuple[Sequence[int], Sequence[int]]


def learnt(pairs: Iterable[Pair], end: int = END, **settings: Any) -> Shortlist:
    """Where nothing else is said, lines have all tokens but the end token: nothing is for all."""
    settings.setdefault("always", 1)
    return shortlist_from(
        pairs,
        source_vocabulary=SOURCE_VOCABULARY,
        target_vocabulary=TARGET_VOCABULARY,
        end=end,
        settings=LexiconSettings(**settings),
        watch=quiet,
    )


def translations(word: int) -> tuple[int, int]:
    """Ids that other words have on the source side."""
    return 2 * (39 - word) + 10, 2 * (39 - word) + 11


def sentence_pairs(count: int, *, both: bool) -> list[Pair]:
    """Words with both of their translations, or with one of them; and a token of no word."""
    draw = random.Random(1)
    pairs: list[Pair] = []
    for _ in range(count):
        source = draw.choices(range(10, 10 + WORDS), k=draw.randint(2, 4))
        target = [FUNCTION] * 2
        for word in source:
            target += translations(word) if both else [draw.choice(translations(word))]
        draw.shuffle(target)
        pairs.append((source, target))
    return pairs


def same(a: Shortlist, b: Shortlist) -> bool:
    return np.array_equal(a.always, b.always) and np.array_equal(a.likely, b.likely)


def test_the_right_translations_come_first() -> None:
    found = learnt(sentence_pairs(500, both=True))
    for word in range(10, 10 + WORDS):
        assert set(found.likely[word, :2].tolist()) == set(translations(word))


def test_function_tokens_are_translations_of_nothing() -> None:
    """Beside a word they are more frequent than its translations: only NULL explains them."""
    found = learnt(sentence_pairs(500, both=False))
    for word in range(10, 10 + WORDS):
        assert set(found.likely[word, :2].tolist()) == set(translations(word))
    assert learnt(sentence_pairs(500, both=False), always=2).always[1] == FUNCTION


def test_ranks_are_those_of_a_plain_implementation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "_CHUNK_LINKS", 100)
    pairs = sentence_pairs(60, both=True)
    expected = plain_model_1(pairs, iterations=3)
    found = learnt(pairs, iterations=3, likely=TARGET_VOCABULARY)
    for word in range(10, 10 + WORDS):
        line = [token for token in found.likely[word].tolist() if token >= 0]
        ranked = [expected[word, token] for token in line]
        assert sorted(line) == sorted(t for w, t in expected if w == word)
        assert ranked == pytest.approx(sorted(ranked, reverse=True), abs=1e-6)


def plain_model_1(pairs: Iterable[Pair], iterations: int) -> dict[tuple[int, int], float]:
    null = -1
    table: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(iterations):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        totals: dict[int, float] = defaultdict(float)
        for source, target in pairs:
            for token in target:
                whole = sum(table[word, token] for word in [*source, null])
                for word in [*source, null]:
                    counts[word, token] += table[word, token] / whole
                    totals[word] += table[word, token] / whole
        table = {entry: count / totals[entry[0]] for entry, count in counts.items()}
    return table


def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = sentence_pairs(200, both=True)
    whole = learnt(pairs)
    for together in (1, 97, 1000):
        monkeypatch.setattr(lexicon, "_CHUNK_LINKS", together)
        assert same(learnt(pairs), whole)


def test_of_equals_the_smaller_comes_first() -> None:
    pairs = [((10, 11), (60, 40, 50))]
    found = learnt(pairs, likely=3)
    assert found.likely[10].tolist() == found.likely[11].tolist() == [40, 50, 60]
    assert learnt(pairs, always=3).always.tolist() == [END, 40, 50]


def test_what_every_sentence_has_takes_no_place_in_a_line() -> None:
    found = learnt([((10, 11), (60, 40, 50, 40))], likely=3, always=2)
    assert found.always.tolist() == [END, 40]
    assert found.likely[10].tolist() == [50, 60, -1]


def test_the_line_of_a_token_that_occurs_is_never_empty() -> None:
    found = learnt([((10,), (40, 41, 41))], likely=3, always=9)
    assert found.always.tolist() == [END, 41, 40]
    assert found.likely[10].tolist() == [41, -1, -1]
    assert found.tokens_for((10,)) is not None
    assert found.tokens_for((10, 11)) is None


@pytest.mark.parametrize("sizes", [*permutations((2, 3, 7))])
def test_what_differs_by_rounding_is_equal(sizes: tuple[int, ...]) -> None:
    """Each token has 1/2 + 1/3 + 1/7 of the word's links, added up in another order."""
    pairs = [((10,) + (11,) * (size - 2), (40,)) for size in (2, 3, 7)]
    pairs += [((10,) + (11,) * (size - 2), (41,)) for size in sizes]
    assert learnt(pairs, iterations=1).likely[10, :2].tolist() == [40, 41]


def test_order_of_the_pairs_makes_no_difference() -> None:
    pairs = sentence_pairs(200, both=True)
    assert same(learnt(pairs), learnt(pairs[::-1]))


def test_lines_end_in_padding() -> None:
    found = learnt([((10, 10), (40, 40, 41)), ((11,), (42, 43, 44, 45))], likely=3)
    assert found.likely.shape == (SOURCE_VOCABULARY, 3)
    assert found.likely[10].tolist() == [40, 41, -1]
    assert found.likely[11].tolist() == [42, 43, 44]
    others = np.delete(found.likely, [10, 11], axis=0)
    assert (others == -1).all()


def test_frequent_tokens_follow_the_end_token() -> None:
    pairs = [((10,), (50, 40, 50)), ((10,), (END, 60, 50, END, 40))]
    assert learnt(pairs, always=3).always.tolist() == [END, 50, 40]
    assert learnt(pairs, always=1).always.tolist() == [END]
    assert learnt(pairs, always=9).always.tolist() == [END, 50, 40, 60]


def test_empty_and_overlong_pairs_are_skipped() -> None:
    short: list[Pair] = [((10,) * 4, (40, 41)), ((11,), (42,) * 4)]
    skipped: list[Pair] = [((), (50,)), ((12,), ()), ((13,) * 5, (51,)), ((14,), (52,) * 5)]
    found = learnt([*skipped, *short, *skipped], max_sentence_tokens=4, always=9)
    assert same(found, learnt(short, always=9))
    assert sorted(found.always[1:].tolist()) == [40, 41, 42]


@pytest.mark.parametrize("settings", [{"max_pairs": 2}, {"max_links": 4}])
def test_no_more_pairs_are_read_than_are_used(settings: dict[str, int]) -> None:
    pairs: list[Pair] = [((), ()), ((10,), (40,)), ((), ()), ((11,), (41,)), ((12,), (42,))]
    remaining = iter(pairs)
    found = learnt(remaining, always=9, **settings)
    assert next(remaining) == pairs[4]
    assert sorted(found.always[1:].tolist()) == [40, 41]


@pytest.mark.parametrize("pairs", [[], [((), (40,))], [((10,) * 129, (40,))]])
def test_no_pair_to_learn_from(pairs: list[Pair]) -> None:
    with pytest.raises(ExportError, match=r"^no sentence pair .* more than 128 tokens$"):
        learnt(pairs)


@pytest.mark.parametrize(
    ("pair", "complaint"),
    [
        (((10, SOURCE_VOCABULARY), (40,)), "source token 50 is outside the vocabulary of 50"),
        (((10, -1), (40,)), "source token -1 is outside the vocabulary of 50"),
        (((10,), (40, TARGET_VOCABULARY)), "target token 100 is outside the vocabulary of 100"),
        (((10,), (-7, 40)), "target token -7 is outside the vocabulary of 100"),
    ],
)
def test_tokens_outside_the_vocabulary(pair: Pair, complaint: str) -> None:
    with pytest.raises(ExportError, match=f"^{complaint}$"):
        learnt([pair])


def test_an_end_token_outside_the_vocabulary() -> None:
    with pytest.raises(ExportError, match=r"^end token 100 is outside the vocabulary of 100$"):
        learnt([((10,), (40,))], end=TARGET_VOCABULARY)


def test_the_last_tokens_of_both_vocabularies() -> None:
    found = learnt([((SOURCE_VOCABULARY - 1, 0), (TARGET_VOCABULARY - 1, 1))], end=0)
    assert found.likely[SOURCE_VOCABULARY - 1, :2].tolist() == [1, TARGET_VOCABULARY - 1]
    found.check(SOURCE_VOCABULARY, TARGET_VOCABULARY, 0)


def test_the_shortlist_is_one_of_such_a_model() -> None:
    found = learnt(sentence_pairs(200, both=True))
    found.check(SOURCE_VOCABULARY, TARGET_VOCABULARY, END)
    candidates = found.tokens_for((10, 11))
    assert candidates is not None
    assert candidates[0] == END
    assert set(translations(10)) <= set(candidates.tolist())


def test_progress_reaches_its_end() -> None:
    stages: dict[str, list[tuple[int, int]]] = defaultdict(list)
    shortlist_from(
        sentence_pairs(20, both=True),
        source_vocabulary=SOURCE_VOCABULARY,
        target_vocabulary=TARGET_VOCABULARY,
        end=END,
        watch=lambda stage, done, total: stages[stage].append((done, total)),
    )
    assert list(stages) == ["pairing tokens", "learning translations of tokens"]
    for steps in stages.values():
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1]


@pytest.mark.parametrize(
    "name", ["likely", "always", "iterations", "max_pairs", "max_links", "max_sentence_tokens"]
)
def test_settings_below_one(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} is 0: it must be at least 1$"):
        LexiconSettings(**{name: 0})


def test_frequent_tokens_leave_room_for_the_likely_ones() -> None:
    assert LexiconSettings(always=MAX_SHORTLIST_TOKENS // 2).always == 512
    with pytest.raises(ValueError, match=r"^always is 513: it must be at most 512$"):
        LexiconSettings(always=MAX_SHORTLIST_TOKENS // 2 + 1)
