"""What is drawn follows the model's distribution, and repeats with its seed."""

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
import torch

from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.engine.core import Options, Sampling, Sentence
from dragoman_server.engine.search.sampling import uniform
from dragoman_server.engine.translator import Translator
from dragoman_server.runtime.limits import MAX_CANDIDATES
from dragoman_training.data.tokenizer import END
from dragoman_training.models.transformer import Transformer
from support.engine_bundles import graph_bundle, one_lane, seeded_bundle, sentences
from support.engine_reference import log_probs
from support.models import VOCABULARY, tiny_model

DRAWS = 5000
MODEL = tiny_model(seed=1)
WIDE_VOCABULARY = 3 * MAX_CANDIDATES
WIDE_MODEL = tiny_model(seed=3, vocabulary=WIDE_VOCABULARY)
SENTENCE = Sentence((5, 9, 30, 12))


@cache
def wide_bundle() -> UncheckedBundle:
    """Return a bundle with more tokens than a step lists."""
    return graph_bundle(WIDE_MODEL)


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with Translator(seeded_bundle(), one_lane(rows=64)) as running:
        yield running


def next_tokens(translator: Translator, sentence: Sentence, sampling: Sampling) -> Counter[int]:
    """Count the tokens drawn after the prefix with many seeds; the end token where none came."""
    at = len(sentence.prefix)
    pending = [
        translator.submit(
            [sentence],
            Options(
                max_tokens=at + 2,
                sampling=Sampling(
                    temperature=sampling.temperature,
                    top_k=sampling.top_k,
                    top_p=sampling.top_p,
                    seed=seed,
                ),
            ),
        )
        for seed in range(DRAWS)
    ]
    ids = (future.result()[0].hypotheses[0].ids for future in pending)
    return Counter((*found, END)[at] for found in ids)


def probabilities(model: Transformer, sentence: Sentence, sampling: Sampling) -> list[float]:
    """Apply the temperature, keep the k best, then the fewest of them that reach p: plainly."""
    values = log_probs(model, sentence, [sentence.prefix], Options())[0]
    scaled = (values / sampling.temperature).softmax(-1)
    best_first = scaled.argsort(descending=True).tolist()
    kept = best_first[: sampling.top_k or len(best_first)]
    weight = sum(scaled[token].item() for token in kept)
    nucleus: list[int] = []
    while sum(scaled[token].item() for token in nucleus) / weight < sampling.top_p:
        nucleus.append(kept[len(nucleus)])
        if len(nucleus) == len(kept):
            break
    result = torch.zeros_like(scaled)
    result[nucleus] = scaled[nucleus]
    return (result / result.sum()).tolist()


def chi_square_is_plausible(counts: Counter[int], expected: list[float]) -> bool:
    """Test at a level of one in a thousand; rare tokens are put together."""
    cells = [(counts[token], DRAWS * p) for token, p in enumerate(expected)]
    common = [cell for cell in cells if cell[1] >= 5]
    rare = [cell for cell in cells if 0 < cell[1] < 5]
    if rare:
        common.append((sum(seen for seen, _ in rare), math.fsum(wanted for _, wanted in rare)))
    statistic = sum((seen - wanted) ** 2 / wanted for seen, wanted in common)
    freedom = len(common) - 1
    # Wilson and Hilferty's approximation of the quantile.
    spread = 2 / (9 * freedom)
    return statistic <= freedom * (1 - spread + 3.09 * math.sqrt(spread)) ** 3


@pytest.mark.parametrize(
    ("sampling", "prefix"),
    [
        (Sampling(temperature=2.0), ()),
        (Sampling(temperature=2.0, top_p=0.7), ()),
        (Sampling(temperature=2.0, top_k=10, top_p=0.7), ()),
        (Sampling(temperature=0.7), (8, 11)),
    ],
    ids=str,
)
def test_draws_follow_the_models_distribution(
    translator: Translator, sampling: Sampling, prefix: tuple[int, ...]
) -> None:
    sentence = Sentence(SENTENCE.source, prefix=prefix)
    expected = probabilities(MODEL, sentence, sampling)
    counts = next_tokens(translator, sentence, sampling)
    assert sum(counts.values()) == DRAWS
    assert all(expected[token] for token in counts), "nothing else is ever drawn"
    assert chi_square_is_plausible(counts, expected)


@pytest.mark.parametrize(
    ("top_k", "top_p"), [(MAX_CANDIDATES, 1.0), (MAX_CANDIDATES + 1, 1.0), (0, 0.8)]
)
def test_draws_are_right_on_both_sides_of_the_list(top_k: int, top_p: float) -> None:
    """Up to the longest list that a step gives, and from all tokens above it."""
    sampling = Sampling(temperature=4.0, top_k=top_k, top_p=top_p)
    expected = probabilities(WIDE_MODEL, SENTENCE, sampling)
    with Translator(wide_bundle(), one_lane(rows=64)) as translator:
        counts = next_tokens(translator, SENTENCE, sampling)
    assert all(expected[token] for token in counts)
    assert chi_square_is_plausible(counts, expected)


def test_a_single_token_is_drawn_where_no_other_may_be(translator: Translator) -> None:
    wanted = sentences(20, seed=51)
    greedy = translator.translate(wanted)
    for sampling in (Sampling(temperature=5.0, top_k=1), Sampling(temperature=5.0, top_p=1e-9)):
        drawn = translator.translate(wanted, Options(sampling=sampling))
        assert [a.hypotheses[0].ids for a in drawn] == [a.hypotheses[0].ids for a in greedy]


@pytest.mark.parametrize("top_k", [0, 8])
def test_a_seed_repeats_the_draws_and_another_does_not(translator: Translator, top_k: int) -> None:
    wanted = sentences(20, seed=52)

    def drawn(seed: int | None) -> list[tuple[int, ...]]:
        options = Options(sampling=Sampling(temperature=2.0, top_k=top_k, seed=seed))
        return [answer.hypotheses[0].ids for answer in translator.translate(wanted, options)]

    assert drawn(0) == drawn(0)
    assert drawn(2**64 - 1) == drawn(2**64 - 1)
    different = [drawn(0), drawn(1), drawn(2**64 - 1), drawn(None), drawn(None)]
    assert all(one != other for n, one in enumerate(different) for other in different[:n])


def test_numbers_of_seeds_and_positions_are_even_and_unrelated() -> None:
    """Neighbouring seeds and neighbouring positions are what is used most."""
    numbers = np.stack(
        [uniform(np.arange(DRAWS, dtype=np.uint64), np.full(DRAWS, at)) for at in range(6)]
    )
    assert 0 <= numbers.min() <= numbers.max() < 1
    counts, _ = np.histogram(numbers, bins=20, range=(0, 1))
    assert abs(counts / numbers.size - 1 / 20).max() < 0.005
    by_position = np.corrcoef(numbers) - np.eye(6)
    assert abs(by_position).max() < 0.06
    by_seed = np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]
    assert abs(by_seed) < 0.03
    assert len(np.unique(numbers)) == numbers.size


def test_the_whole_vocabulary_is_small_enough_to_be_listed() -> None:
    assert VOCABULARY < MAX_CANDIDATES < WIDE_VOCABULARY
