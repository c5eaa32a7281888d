"""Search against exhaustive enumeration, and against itself in other company."""

import itertools
import math

import pytest
import torch

from dragoman_training.data.batch import pad_sources
from dragoman_training.data.tokenizer import BEGIN, END
from dragoman_training.models.transformer import Transformer
from dragoman_training.translate.search import (
    Hypothesis,
    beam_search,
    default_limit,
    greedy_search,
    length_score,
)
from support.models import random_sources, tiny_model

CPU = torch.device("cpu")


def log_prob_of(model: Transformer, source: list[int], target: list[int]) -> float:
    """Return the log-probability of a target and its end token, by teacher forcing."""
    ids, lengths = pad_sources([source], CPU)
    with torch.no_grad():
        log_probs = model(ids, lengths, torch.tensor([[BEGIN, *target]]))[0].log_softmax(-1)
    return sum(log_probs[t, token].item() for t, token in enumerate([*target, END]))


def search(
    model: Transformer, sources: list[list[int]], limit: int, beam: int, **options: float
) -> list[list[Hypothesis]]:
    ids, lengths = pad_sources(sources, CPU)
    limits = [limit] * len(sources)
    return beam_search(model, ids, lengths, limits, beam, **options)  # type: ignore[arg-type]


def test_greedy_takes_the_most_probable_token_each_time() -> None:
    model = tiny_model(seed=1)
    for source in random_sources(20, seed=4):
        ids, lengths = pad_sources([source], CPU)
        (found,) = greedy_search(model, ids, lengths, [8])
        target: list[int] = []
        with torch.no_grad():
            while len(target) < 7:
                scores = model(ids, lengths, torch.tensor([[BEGIN, *target]]))[0, -1]
                if int(scores.argmax()) == END:
                    break
                target.append(int(scores.argmax()))
        assert list(found.ids) == target
        assert found.log_prob == pytest.approx(log_prob_of(model, source, target), abs=1e-4)
        assert found.score == pytest.approx(found.log_prob / (len(target) + 1))


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_a_wide_beam_finds_what_enumeration_finds(alpha: float) -> None:
    """Seven tokens and at most four of them: every hypothesis can be tried."""
    model = tiny_model(seed=2, vocabulary=7)
    source = [4, 6, 5]
    others = [token for token in range(7) if token != END]
    every = [list(target) for n in range(4) for target in itertools.product(others, repeat=n)]
    ranked = sorted(
        every,
        key=lambda t: length_score(log_prob_of(model, source, t), len(t) + 1, alpha),
        reverse=True,
    )
    (found,) = search(model, [source], limit=4, beam=300, alpha=alpha, n_best=5)
    assert [list(h.ids) for h in found] == ranked[:5]
    for hypothesis in found:
        expected = log_prob_of(model, source, list(hypothesis.ids))
        assert hypothesis.log_prob == pytest.approx(expected, abs=1e-4)


def test_scores_are_those_of_the_found_translations() -> None:
    model = tiny_model(seed=3)
    sources = random_sources(30, seed=5)
    for source, hypotheses in zip(
        sources, search(model, sources, limit=10, beam=4, alpha=0.7, n_best=4), strict=True
    ):
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({h.ids for h in hypotheses}) == 4
        for h in hypotheses:
            assert len(h.ids) < 10
            assert h.log_prob == pytest.approx(log_prob_of(model, source, list(h.ids)), abs=1e-4)
            assert h.score == pytest.approx(h.log_prob / (len(h.ids) + 1) ** 0.7)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_sentence_is_translated_the_same_in_company(beam: int) -> None:
    model = tiny_model(seed=6)
    sources = random_sources(25, seed=6)
    limits = [default_limit(len(s), 40) for s in sources]
    ids, lengths = pad_sources(sources, CPU)
    together = beam_search(model, ids, lengths, limits, beam)
    for source, limit, (expected,) in zip(sources, limits, together, strict=True):
        ((alone,),) = beam_search(model, *pad_sources([source], CPU), [limit], beam)
        assert alone.ids == expected.ids
        assert alone.log_prob == pytest.approx(expected.log_prob, abs=1e-4)


def test_a_beam_scores_at_least_as_well_as_greedy_on_average() -> None:
    model = tiny_model(seed=7)
    sources = random_sources(40, seed=7)
    greedy = search(model, sources, limit=12, beam=1)
    beam = search(model, sources, limit=12, beam=5)
    gain = sum(b[0].score - g[0].score for g, b in zip(greedy, beam, strict=True))
    assert gain > 0


def test_a_limit_of_one_forces_the_end() -> None:
    model = tiny_model(seed=8)
    for beam in (1, 3):
        ((found,),) = search(model, [[5, 6]], limit=1, beam=beam)
        assert found.ids == ()
        assert found.log_prob == pytest.approx(log_prob_of(model, [5, 6], []), abs=1e-4)


GOLDEN_GREEDY = ((10, 10, 10, 21, 21, 21, 47, 42), -13.992)
GOLDEN_BEAM = [((21, 45, 35, 21, 21, 21, 45, 15), -12.5), ((10, 19, 22, 42), -7.163)]


def test_golden_translations_of_a_seeded_model() -> None:
    """Pinned, so that a change of definition does not go unseen."""
    model = tiny_model(seed=1)
    ((greedy,),) = search(model, [[5, 6, 7, 8]], limit=9, beam=1)
    (beam,) = search(model, [[5, 6, 7, 8]], limit=9, beam=3, n_best=2)
    assert (greedy.ids, round(greedy.log_prob, 3)) == GOLDEN_GREEDY
    assert [(h.ids, round(h.log_prob, 3)) for h in beam] == GOLDEN_BEAM


def test_default_limit_is_twice_the_source_and_ten_within_the_model() -> None:
    assert default_limit(5, 256) == 20
    assert default_limit(200, 256) == 256


def test_more_hypotheses_than_the_beam_are_refused() -> None:
    with pytest.raises(ValueError, match="n_best is 5"):
        search(tiny_model(), [[5]], limit=5, beam=4, n_best=5)


def test_scores_without_length_penalty_are_log_probabilities() -> None:
    ((found,),) = search(tiny_model(seed=9), [[9, 9]], limit=9, beam=4, alpha=0.0)
    assert found.score == found.log_prob
    assert math.isfinite(found.score)
