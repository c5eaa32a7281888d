"""A sentence's answer, to the last bit, whatever else runs and wherever it runs."""

import random
from functools import cache

import pytest

from dragoman_server.engine.core import Options, Sampling, Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from support.bundles import TEXTS, trained_bundle
from support.engine_bundles import Bits, bits, sentences
from support.tokenizers import PAIR

KNOWN = [Sentence(tuple(ids)) for ids in PAIR.source.encode_all(TEXTS[::3])]
SENTENCES = [*KNOWN, *sentences(200 - len(KNOWN), seed=41, longest=5)]
DRAWN = SENTENCES[::10]
SUBJECTS = [
    *((sentence, Options()) for sentence in SENTENCES),
    *((sentence, Options(beam=4, n_best=2)) for sentence in SENTENCES),
    *((s, Options(sampling=Sampling(temperature=1.5, top_k=9, seed=7))) for s in DRAWN),
    *((s, Options(sampling=Sampling(temperature=1.5, top_p=0.9, seed=8))) for s in DRAWN),
]
COMPANY = [
    Options(beam=5, n_best=5, length_penalty=0.0),
    Options(beam=2, repetition_penalty=1.5, alignment=True),
    Options(no_repeat_ngram=2, suppressed=(7, 8), min_tokens=4, alignment=True),
    Options(sampling=Sampling(top_k=64)),
    Options(sampling=Sampling(temperature=3.0)),
    Options(max_tokens=3, repetition_penalty=0.5),
]


def engine_of(rows: int, lanes: int) -> EngineSettings:
    return EngineSettings(
        rows=rows, lanes=lanes, threads=1, max_beam=5, max_encode_tokens=max(32, 2 * rows)
    )


@cache
def alone(precision: str) -> list[Bits]:
    """Translate each subject with no other sentence in the engine."""
    with Translator(trained_bundle(precision), engine_of(rows=5, lanes=1)) as translator:
        return [bits(translator.translate([s], options)[0]) for s, options in SUBJECTS]


@pytest.mark.parametrize(("rows", "lanes"), [(64, 1), (18, 3)])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_sentence_is_translated_as_if_it_were_alone(
    precision: str, rows: int, lanes: int
) -> None:
    """Greedy, with a beam and drawn, shuffled among others, of which some are cancelled."""
    rng = random.Random(rows)
    company = [
        *((sentences(rng.randint(1, 4), seed), rng.choice(COMPANY)) for seed in range(60)),
        *(([Sentence(s.source, target=(5, 6, 7))], Options()) for s in SENTENCES[:20]),
    ]
    asked = [*(([sentence], options) for sentence, options in SUBJECTS), *company]
    with Translator(trained_bundle(precision), engine_of(rows, lanes)) as translator:
        pending = {
            place: translator.submit(
                *asked[place], flow=rng.randrange(5), priority=rng.randrange(2)
            )
            for place in rng.sample(range(len(asked)), len(asked))
        }
        for place in rng.sample(range(len(SUBJECTS), len(asked)), 20):
            translator.engine.cancel(pending[place].request)
        found = [bits(pending[place].result()[0]) for place in range(len(SUBJECTS))]
    different = [
        place
        for place, (ours, expected) in enumerate(zip(found, alone(precision), strict=True))
        if ours != expected
    ]
    assert different == []
