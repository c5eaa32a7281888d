"""Three searches, one definition: of the training package, of the runtime, and of the engine."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
import torch

from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.engine.core import Options, Sentence
from dragoman_server.engine.translator import Translator
from dragoman_server.runtime import reference_search, scoring
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_training.data.batch import pad_sources
from dragoman_training.translate import search
from support.engine_bundles import graph_bundle, one_lane
from support.models import random_sources, tiny_model

NEAR = 1e-4
"""PyTorch and onnxruntime add up in another order."""
MAX_TIES = 2
"""Hypotheses of near equal score that may change places between the two."""
SEEDS = (1, 2)
SOURCES = random_sources(30, seed=31)
Found = list[list[tuple[tuple[int, ...], float, float]]]
"""The hypotheses of each sentence: token ids, log-probability and score."""


@cache
def bundle_of(seed: int, ends_in_beam: bool) -> UncheckedBundle:
    bundle = graph_bundle(tiny_model(seed=seed))
    return replace(bundle, manifest=replace(bundle.manifest, ends_in_beam=ends_in_beam))


def by_training(seed: int, ends_in_beam: bool, options: Options) -> Found:
    model = tiny_model(seed=seed)
    limits = [search.default_limit(len(s), model.settings.max_length) for s in SOURCES]
    found = search.beam_search(
        model,
        *pad_sources(SOURCES, torch.device("cpu")),
        limits,
        options.beam,
        options.length_penalty,
        options.n_best,
        ends_in_beam=ends_in_beam,
    )
    return [[(h.ids, h.log_prob, h.score) for h in hypotheses] for hypotheses in found]


def by_reference(seed: int, ends_in_beam: bool, options: Options) -> Found:
    bundle = bundle_of(seed, ends_in_beam)
    graphs = Graphs(bundle, GraphSettings(rows=options.beam))
    found: Found = []
    for source in SOURCES:
        limit = scoring.default_limit(len(source), bundle.manifest.max_target_tokens)
        if options.beam == 1:
            decoded = reference_search.greedy(graphs, [source], [limit], options.length_penalty)
        else:
            decoded = reference_search.beam(
                graphs, source, limit, options.beam, options.length_penalty, options.n_best
            )
        found.append([(d.ids, d.log_prob, d.score) for d in decoded])
    return found


def by_engine(seed: int, ends_in_beam: bool, options: Options) -> Found:
    with Translator(bundle_of(seed, ends_in_beam), one_lane()) as translator:
        answers = translator.translate([Sentence(tuple(s)) for s in SOURCES], options)
    return [[(h.ids, h.log_prob, h.score) for h in a.hypotheses] for a in answers]


def ids_of(found: Found) -> list[tuple[int, ...]]:
    return [ids for hypotheses in found for ids, _, _ in hypotheses]


def numbers_of(found: Found) -> list[float]:
    """Return all log-probabilities and scores, one after the other."""
    return [number for hypotheses in found for _, *numbers in hypotheses for number in numbers]


@pytest.mark.parametrize(
    ("beam", "n_best", "alpha"), [(1, 1, 1.0), (2, 2, 0.0), (4, 1, 1.0), (5, 5, 0.6)]
)
@pytest.mark.parametrize("ends_in_beam", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_all_searches_find_the_same(
    seed: int, ends_in_beam: bool, beam: int, n_best: int, alpha: float
) -> None:
    options = Options(beam=beam, n_best=n_best, length_penalty=alpha)
    training, reference, engine = (
        found(seed, ends_in_beam, options) for found in (by_training, by_reference, by_engine)
    )
    assert all(len(hypotheses) == n_best for hypotheses in engine)
    # The reference and the engine run the same graphs, so there is nothing to round differently.
    assert ids_of(reference) == ids_of(engine)
    assert numbers_of(reference) == pytest.approx(numbers_of(engine), rel=1e-12)
    ties = sum(
        ours != theirs for ours, theirs in zip(ids_of(training), ids_of(engine), strict=True)
    )
    assert ties <= MAX_TIES
    scores = [[score for _, _, score in hypotheses] for hypotheses in engine]
    for hypotheses, expected in zip(training, scores, strict=True):
        assert [score for _, _, score in hypotheses] == pytest.approx(expected, abs=NEAR)


@pytest.mark.parametrize("find", [by_training, by_reference, by_engine])
def test_where_a_hypothesis_may_end_makes_a_difference(
    find: Callable[[int, bool, Options], Found],
) -> None:
    """Or the test above would not see the rule."""
    options = Options(beam=4, n_best=4)
    unlike = sum(
        one != other
        for one, other in zip(
            ids_of(find(1, False, options)), ids_of(find(1, True, options)), strict=True
        )
    )
    assert unlike > len(SOURCES) // 3


@pytest.mark.parametrize("source_tokens", [0, 1, 7, 200])
def test_both_packages_have_the_same_rules(source_tokens: int) -> None:
    assert scoring.default_limit(source_tokens, 256) == search.default_limit(source_tokens, 256)
    for alpha in (0.0, 0.6, 1.0):
        ours = scoring.length_score(-3.7, source_tokens + 1, alpha)
        assert ours == search.length_score(-3.7, source_tokens + 1, alpha)
