"""The engine's answers against searches in PyTorch: the training package's own, and a plain one."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from dragoman_server.engine.core import Answer, Finish, Options, Sampling, Sentence
from dragoman_server.engine.translator import Translator
from dragoman_training.data.tokenizer import END
from support.engine_bundles import one_lane, seeded_bundle, sentences
from support.engine_reference import Expected, Ids, banned, expect, limit_of, price, score
from support.models import VOCABULARY, tiny_model

NEAR = 1e-4
MODEL = tiny_model(seed=1)


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with Translator(seeded_bundle(), one_lane()) as running:
        yield running


def search_options() -> st.SearchStrategy[Options]:
    """Draw options of any kind but sampling."""
    ids = st.integers(0, VOCABULARY - 1).filter(lambda token: token != END)

    def build(
        beam: int, n_best: int, min_tokens: int, more: int | None, **others: object
    ) -> Options:
        return Options(
            beam=beam,
            n_best=min(n_best, beam),
            min_tokens=min_tokens,
            max_tokens=None if more is None else min_tokens + more,
            **others,  # type: ignore[arg-type]
        )

    return st.builds(
        build,
        beam=st.sampled_from([1, 1, 2, 4, 8]),
        n_best=st.integers(1, 8),
        min_tokens=st.sampled_from([0, 0, 3, 14]),
        more=st.none() | st.integers(1, 12),
        length_penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
        repetition_penalty=st.sampled_from([1.0, 1.0, 0.7, 1.3, 3.0]),
        no_repeat_ngram=st.sampled_from([0, 0, 1, 2, 3]),
        suppressed=st.lists(ids, max_size=8).map(tuple),
    )


@st.composite
def asked(draw: st.DrawFn) -> tuple[Sentence, Options]:
    """Draw a sentence and options that the model takes."""
    ids = st.integers(4, VOCABULARY - 1)
    source = tuple(draw(st.lists(ids, max_size=8)))
    options = draw(search_options())
    if draw(st.integers(0, 4)) == 0:
        return Sentence(source, target=tuple(draw(st.lists(ids, max_size=10)))), options
    limit = limit_of(MODEL, Sentence(source), options)
    # A few tokens only, so that penalties and bans meet what was forced.
    prefix = draw(st.lists(st.integers(4, 7), max_size=min(limit - 1, 6)))
    return Sentence(source, prefix=tuple(prefix)), options


def assert_expected(
    answer: Answer, expected: Expected, sentence: Sentence, options: Options
) -> None:
    assert answer.failure is None
    found = answer.hypotheses
    if expected.margin < NEAR and [h.ids for h in found] != [h.ids for h in expected.found]:
        event("a tie")
        assert_priced_rightly(answer, sentence, options)
        return
    assert [h.ids for h in found] == [h.ids for h in expected.found]
    for ours, theirs in zip(found, expected.found, strict=True):
        assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=NEAR)
        assert ours.score == pytest.approx(theirs.score, abs=NEAR)
        assert ours.log_prob == pytest.approx(sum(ours.token_log_probs), abs=1e-6)
        assert ours.finish == theirs.finish or expected.margin < NEAR


def assert_priced_rightly(answer: Answer, sentence: Sentence, options: Options) -> None:
    """Check that what was found costs what it should, however it was found."""
    for found in answer.hypotheses:
        expected = price(MODEL, sentence, found.ids, options)
        assert found.token_log_probs == pytest.approx(expected, abs=NEAR)
        assert found.score == pytest.approx(score(expected, options), abs=NEAR)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(asked(), min_size=1, max_size=3))
def test_every_option_does_what_it_says(
    translator: Translator, requests: list[tuple[Sentence, Options]]
) -> None:
    """Requests with different options run together, and each equals the plain reference."""
    pending = [translator.submit([sentence], options) for sentence, options in requests]
    for future, (sentence, options) in zip(pending, requests, strict=True):
        (answer,) = future.result()
        assert_expected(answer, expect(MODEL, sentence, options), sentence, options)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked(), st.integers(0, 2**64 - 1), st.sampled_from([0, 5, 64, 65]))
def test_what_is_drawn_keeps_to_the_other_options(
    translator: Translator, request_: tuple[Sentence, Options], seed: int, top_k: int
) -> None:
    sentence, plain = request_
    options = Options(
        sampling=Sampling(temperature=2.0, top_k=top_k, seed=seed),
        **{
            name: getattr(plain, name)
            for name in (
                "length_penalty",
                "repetition_penalty",
                "no_repeat_ngram",
                "suppressed",
                "min_tokens",
                "max_tokens",
            )
        },
    )
    (answer,) = translator.translate([sentence], options)
    if sentence.target is not None:
        assert_expected(answer, expect(MODEL, sentence, options), sentence, options)
        return
    assert_priced_rightly(answer, sentence, options)
    (found,) = answer.hypotheses
    assert found.ids[: len(sentence.prefix)] == sentence.prefix
    assert options.min_tokens <= len(found.ids) < limit_of(MODEL, sentence, options)
    for at in range(len(sentence.prefix), len(found.ids)):
        assert found.ids[at] not in banned(found.ids[:at], options)


def test_a_forced_prefix_costs_what_the_model_says(translator: Translator) -> None:
    """Though its tokens are suppressed, repeated and penalised; what follows keeps to the rules."""
    sentence = Sentence((9, 8, 7), prefix=(5, 5, 5, 5))
    options = Options(
        suppressed=(5,), no_repeat_ngram=1, repetition_penalty=2.0, min_tokens=6, max_tokens=8
    )
    (answer,) = translator.translate([sentence], options)
    (found,) = answer.hypotheses
    assert found.ids[:4] == (5, 5, 5, 5)
    assert 5 not in found.ids[4:]
    (scored,) = translator.translate([Sentence((9, 8, 7), target=found.ids)])
    assert found.token_log_probs[:4] == scored.hypotheses[0].token_log_probs[:4]
    assert found.token_log_probs[4:] != scored.hypotheses[0].token_log_probs[4:]
    assert_expected(answer, expect(MODEL, sentence, options), sentence, options)


def test_the_forced_end_costs_what_penalties_leave_of_it(translator: Translator) -> None:
    """Bans and penalties hold at the limit too: the others' loss is the end token's gain."""
    sentence, limited = Sentence((9, 8, 7), prefix=(5, 6)), Options(max_tokens=3)
    (free,) = translator.translate([sentence], limited)
    for beam in (1, 3):
        options = Options(beam=beam, max_tokens=3, suppressed=tuple(range(4, 40)))
        (answer,) = translator.translate([sentence], options)
        (found,) = answer.hypotheses
        assert found.ids == (5, 6)
        assert found.token_log_probs[2] > free.hypotheses[0].token_log_probs[2] + NEAR
        assert_expected(answer, expect(MODEL, sentence, options), sentence, options)


def test_where_no_limit_is_given_there_is_room_for_what_must_come(translator: Translator) -> None:
    """12 tokens for a source of one, unless more are asked for."""
    for sentence, options, min_length in (
        (Sentence((5,)), Options(min_tokens=30), 30),
        (Sentence((5,), prefix=(9,) * 30), Options(), 30),
    ):
        (answer,) = translator.translate([sentence], options)
        assert len(answer.hypotheses[0].ids) >= min_length
        assert_expected(answer, expect(MODEL, sentence, options), sentence, options)


@pytest.mark.parametrize("sampling", [None, Sampling(top_k=1)], ids=["greedy", "sampled"])
def test_an_end_at_the_limit_is_the_models_own_where_it_chose_it(
    translator: Translator, sampling: Sampling | None
) -> None:
    ended = 0
    for sentence in sentences(40, seed=35):
        (free,) = translator.translate([sentence], Options(sampling=sampling))
        (found,) = free.hypotheses
        length = len(found.ids) + 1
        if found.finish is Finish.LENGTH or length == 1:
            continue
        ended += 1
        for limit, finish in ((length, Finish.END), (length - 1, Finish.LENGTH)):
            options = Options(sampling=sampling, max_tokens=limit)
            (answer,) = translator.translate([sentence], options)
            assert answer.hypotheses[0].ids == found.ids[: limit - 1]
            assert answer.hypotheses[0].finish is finish
    assert ended > 5


def test_a_scored_translation_costs_what_the_search_says(translator: Translator) -> None:
    options = Options(beam=4, n_best=4, length_penalty=0.6)
    for sentence in sentences(20, seed=33):
        (found,) = translator.translate([sentence], options)
        targets = [Sentence(sentence.source, target=h.ids) for h in found.hypotheses]
        for answer, wanted in zip(
            translator.translate(targets, options), found.hypotheses, strict=True
        ):
            (scored,) = answer.hypotheses
            assert scored.ids == wanted.ids
            assert scored.token_log_probs == wanted.token_log_probs
            assert scored.score == wanted.score
            assert scored.finish is Finish.END


@pytest.mark.parametrize(
    "options",
    [
        Options(alignment=True),
        Options(alignment=True, beam=4, n_best=4),
        Options(alignment=True, sampling=Sampling(temperature=2.0, seed=5)),
    ],
    ids=["greedy", "beam", "sampled"],
)
def test_alignment_follows_the_hypothesis(translator: Translator, options: Options) -> None:
    """It is that of the same translation when it is scored, though beams and rows have moved."""
    wanted = [
        Sentence(sentence.source, prefix=prefix)
        for sentence in sentences(30, seed=34)
        for prefix in ((), (6, 7))
    ]
    hypotheses: list[tuple[Ids, Ids]] = []
    found: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = []
    for sentence, answer in zip(wanted, translator.translate(wanted, options), strict=True):
        for hypothesis in answer.hypotheses:
            assert hypothesis.alignment is not None
            assert hypothesis.alignment.shape == (len(hypothesis.ids) + 1, len(sentence.source) + 1)
            np.testing.assert_allclose(hypothesis.alignment.sum(axis=1), 1.0, atol=1e-4)
            hypotheses.append((sentence.source, hypothesis.ids))
            found.append(hypothesis.alignment)
    scored = translator.translate(
        [Sentence(source, target=target) for source, target in hypotheses], Options(alignment=True)
    )
    for ours, answer in zip(found, scored, strict=True):
        theirs = answer.hypotheses[0].alignment
        assert theirs is not None
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_alignment_is_given_to_those_who_ask(translator: Translator) -> None:
    pending = [
        translator.submit([Sentence((5, 6, 7))], Options(alignment=wanted))
        for wanted in (True, False)
    ]
    given_, none = (future.result()[0].hypotheses[0].alignment for future in pending)
    assert given_ is not None
    assert none is None
