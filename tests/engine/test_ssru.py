"""The engine with an SSRU decoder: states are reset, moved and copied with their rows."""

import random
from functools import cache

import numpy as np
import pytest
import torch

from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.engine.core import Failure, Options, Sampling, Sentence
from dragoman_server.engine.engine import Engine
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import beam, greedy
from dragoman_server.runtime.scoring import default_limit
from dragoman_training.data.tokenizer import END
from dragoman_training.models.transformer import Transformer
from support.engine_bundles import Bits, bits, graph_bundle, one_lane, running, sentences
from support.engine_reference import expect
from support.models import VOCABULARY, ssru_model

NEAR = 1e-4
SENTENCES = sentences(24, seed=3)
BEGUN = [Sentence(s.source, prefix=(9, 8)) for s in SENTENCES[:6]]
SCORED = [Sentence(s.source, target=(5, 6, 7, 5)) for s in SENTENCES[:6]]
SEARCHES = [
    Options(),
    Options(beam=4, n_best=3),
    Options(beam=3, alignment=True, length_penalty=0.6),
    Options(beam=2, min_tokens=6, max_tokens=9),
]
OTHERS = [
    Options(sampling=Sampling(temperature=1.5, top_k=9, seed=7)),
    Options(repetition_penalty=1.5, beam=2),
    Options(no_repeat_ngram=2, suppressed=(7, 8)),
]
"""Options of searches that may take any token, whether there is a shortlist or not."""
SUBJECTS = [
    *((s, options) for s in SENTENCES[:10] for options in [*SEARCHES, *OTHERS]),
    *((s, options) for s in (*BEGUN, *SCORED) for options in SEARCHES[:2]),
]


@cache
def model() -> Transformer:
    return ssru_model(seed=1, decoder_start="zero", output_bias=True)


@cache
def bundle_of(kind: str) -> UncheckedBundle:
    """Return the model in a precision, or in int8 with a shortlist."""
    if kind != "shortlist":
        return graph_bundle(model(), kind)
    rng = np.random.default_rng(5)
    always = np.array([END, *range(4, 16)], np.int32)
    likely = rng.integers(END + 1, VOCABULARY, (VOCABULARY, 4)).astype(np.int32)
    return graph_bundle(model(), "int8", Shortlist(always, likely))


@pytest.mark.parametrize("options", [*SEARCHES, OTHERS[1], OTHERS[2]], ids=str)
def test_the_engine_finds_what_a_plain_search_in_pytorch_does(options: Options) -> None:
    asked = [*SENTENCES[:8], *BEGUN[:3], *SCORED[:3]]
    with Translator(bundle_of("float32"), one_lane()) as translator:
        answers = translator.translate(asked, options)
    ties = 0
    for sentence, answer in zip(asked, answers, strict=True):
        expected = expect(model(), sentence, options)
        if expected.margin < NEAR:
            ties += 1
            continue
        assert [h.ids for h in answer.hypotheses] == [h.ids for h in expected.found]
        for ours, theirs in zip(answer.hypotheses, expected.found, strict=True):
            assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=NEAR)
            assert ours.finish == theirs.finish
    assert ties <= 2


def test_the_engine_finds_what_the_reference_search_does() -> None:
    bundle = bundle_of("int8")
    graphs = Graphs(bundle, GraphSettings(rows=4))
    with Translator(bundle, one_lane()) as translator:
        for sentence in SENTENCES[:12]:
            limit = default_limit(len(sentence.source), bundle.manifest.max_target_tokens)
            ((plain,),) = [greedy(graphs, [sentence.source], [limit])]
            (found,) = translator.translate([sentence])[0].hypotheses
            assert found.ids == plain.ids
            assert found.token_log_probs == plain.token_log_probs
            answer = translator.translate([sentence], Options(beam=4, n_best=2))[0]
            for ours, theirs in zip(
                answer.hypotheses, beam(graphs, sentence.source, limit, 4, n_best=2), strict=True
            ):
                assert ours.ids == theirs.ids
                assert ours.token_log_probs == theirs.token_log_probs


@cache
def alone(kind: str) -> list[Bits]:
    """Translate each subject with no other sentence in the engine."""
    with running(bundle_of(kind), one_lane(8)) as watched:
        return [bits(watched.translate([s], options)[0]) for s, options in SUBJECTS]


@pytest.mark.parametrize(("rows", "lanes"), [(64, 1), (18, 3)])
@pytest.mark.parametrize("kind", ["float32", "int8", "shortlist"])
def test_a_sentence_is_translated_as_if_it_were_alone(kind: str, rows: int, lanes: int) -> None:
    """Greedy, with beams, drawn, scored and begun; some of the company leaves before its end."""
    rng = random.Random(rows)
    settings = EngineSettings(rows=rows, lanes=lanes, threads=1, max_beam=4)
    with Translator(bundle_of(kind), settings) as translator:
        places = rng.sample(range(len(SUBJECTS)), len(SUBJECTS))
        pending = {}
        for place in places:
            pending[place] = translator.submit([SUBJECTS[place][0]], SUBJECTS[place][1])
            leaves = translator.submit(sentences(2, seed=place), rng.choice(SEARCHES))
            if place % 3 == 0:
                translator.engine.cancel(leaves.request)
        together = [bits(pending[place].result()[0]) for place in range(len(SUBJECTS))]
    different = [
        place
        for place, (one, other) in enumerate(zip(alone(kind), together, strict=True))
        if one != other
    ]
    assert different == []


@pytest.mark.parametrize("options", SEARCHES, ids=str)
def test_a_shortlist_finds_what_a_search_does_with_all_others_banned(options: Options) -> None:
    """Alone, and beside a sentence that may take any token, for which both graphs do all rows."""
    listed, full = bundle_of("shortlist"), bundle_of("int8")
    shortlist = listed.shortlist
    assert shortlist is not None
    with running(listed, one_lane()) as some, running(full, one_lane()) as every:
        for sentence in SENTENCES[:6]:
            (found,) = some.translate([sentence], options)
            beside = some.engine.submit([sentence], options)
            some.engine.submit(SENTENCES[10:14], OTHERS[0])
            assert bits(some.answers_of(beside)[0]) == bits(found)
            tokens = shortlist.tokens_for(sentence.source)
            assert tokens is not None
            others = {*range(VOCABULARY)} - {*tokens.tolist()}
            banned = Options(**{**vars(options), "suppressed": tuple(others)})
            (expected,) = every.translate([sentence], banned)
            for ours, theirs in zip(found.hypotheses, expected.hypotheses, strict=True):
                assert ours.ids == theirs.ids
                assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=1e-5)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_poisoned_sentence_leaves_nothing_in_its_rows(precision: str) -> None:
    sick_token = 8
    poisonous = ssru_model(seed=1)
    with torch.no_grad():
        poisonous.target_embedding.table.weight[sick_token] = torch.nan
    with np.errstate(invalid="ignore"):
        bundle = graph_bundle(poisonous, precision)
    sick = Sentence((5, 6), prefix=(9, sick_token, 10))
    options = Options(beam=2, suppressed=(sick_token,))
    with running(bundle, one_lane(4)) as watched:
        clean = SENTENCES[:6]
        expected = [bits(answer) for answer in watched.translate(clean, options)]
        for sentence, wanted in zip(clean, expected, strict=True):
            failed, found = watched.translate([sick, sentence], options)
            assert failed.failure is Failure.POISONED
            assert bits(found) == wanted
            # The rows of the other are what this one gets.
            assert bits(watched.translate([sentence], options)[0]) == wanted


def test_memory_is_that_of_the_states() -> None:
    settings = EngineSettings(rows=10, lanes=1, threads=1, max_beam=2)
    engines = [Engine(bundle_of(kind), settings, print) for kind in ("int8", "shortlist")]
    rows = engines[0].lanes[0].graphs.settings.rows
    sizes = [engine.lanes[0].graphs._caches.bytes for engine in engines]
    assert sizes[0] == rows * engines[0].manifest.cache_bytes_per_row
    # A trial among listed tokens writes the states of one layer elsewhere.
    assert sizes[1] == sizes[0] + rows * 16 * 4
    for engine in engines:
        engine.close()
