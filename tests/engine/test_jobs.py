"""How a sentence is decoded is decided when its job is made."""

import pytest

from dragoman_server.engine.core import Options, Sampling, Sentence
from dragoman_server.engine.jobs import Decoding, JobMaker, Selection
from dragoman_server.runtime.limits import MAX_CANDIDATES
from dragoman_training.data.tokenizer import END
from support.engine_bundles import seeded_bundle

PLAIN = Sentence((5, 6))
FEW, ALL = Sampling(top_k=9, seed=1), Sampling(seed=1)


def decoding(sentence: Sentence, options: Options) -> Decoding:
    return (
        JobMaker(seeded_bundle().manifest, max_beam=8).job(sentence, options, stream=False).decoding
    )


@pytest.mark.parametrize(
    ("options", "selection", "candidates"),
    [
        (Options(), Selection.GREEDY, 1),
        (Options(beam=4), Selection.BEAM, 8),
        (Options(sampling=FEW), Selection.SAMPLE_CANDIDATES, 9),
        (Options(sampling=ALL), Selection.SAMPLE_VOCABULARY, 1),
        (
            Options(sampling=Sampling(top_k=MAX_CANDIDATES)),
            Selection.SAMPLE_CANDIDATES,
            MAX_CANDIDATES,
        ),
        (Options(sampling=Sampling(top_k=MAX_CANDIDATES + 1)), Selection.SAMPLE_VOCABULARY, 1),
    ],
    ids=str,
)
def test_the_selection_follows_from_the_options(
    options: Options, selection: Selection, candidates: int
) -> None:
    found = decoding(PLAIN, options)
    assert (found.selection, found.candidates, found.beam) == (selection, candidates, options.beam)


@pytest.mark.parametrize(
    ("sentence", "options", "is_plain_greedy", "is_constrained", "may_use_shortlist"),
    [
        (PLAIN, Options(), True, False, True),
        (PLAIN, Options(beam=2), False, False, True),
        (PLAIN, Options(alignment=True), False, False, True),
        (PLAIN, Options(min_tokens=3), True, True, True),
        (PLAIN, Options(suppressed=(7,)), True, True, False),
        (PLAIN, Options(no_repeat_ngram=2), True, True, False),
        (PLAIN, Options(repetition_penalty=1.2), True, True, False),
        (PLAIN, Options(sampling=FEW), False, False, False),
        (Sentence((5,), start=(9,)), Options(), False, False, True),
        (Sentence((5,), prefix=(9,)), Options(), False, False, False),
        (Sentence((5,), target=(9,)), Options(suppressed=(7,)), False, False, False),
    ],
    ids=str,
)
def test_what_a_step_has_to_know_follows_from_sentence_and_options(
    sentence: Sentence,
    options: Options,
    is_plain_greedy: bool,
    is_constrained: bool,
    may_use_shortlist: bool,
) -> None:
    found = decoding(sentence, options)
    assert found.is_plain_greedy is is_plain_greedy
    assert found.is_constrained is is_constrained
    assert found.may_use_shortlist is may_use_shortlist
    assert found.keeps_alignment is options.alignment


def test_a_target_is_scored_whatever_the_search_options_say() -> None:
    options = Options(beam=4, repetition_penalty=2.0, length_penalty=0.5)
    job = JobMaker(seeded_bundle().manifest, max_beam=8).job(
        Sentence((5,), target=(8, 9), start=(7,)), options, stream=False
    )
    assert job.decoding.selection is Selection.GREEDY
    assert job.forced == (7, 8, 9, END)
    assert (job.limit, job.options.length_penalty) == (3, 0.5)
