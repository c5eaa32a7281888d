"""Searches among the tokens of a shortlist, beside searches in which all others are banned."""

import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.bundle.shortlist import MAX_SHORTLIST_TOKENS, Shortlist, read_shortlist
from dragoman_server.engine.core import Answer, Options, Sampling, Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from dragoman_server.errors import BundleError
from dragoman_server.runtime.output_columns import RowShortlists
from dragoman_server.runtime.output_weights import OutputWeights
from dragoman_training.data.tokenizer import END
from dragoman_training.models.transformer import Transformer
from support.engine_bundles import bits, graph_bundle, one_lane, running, sentences
from support.models import tiny_model

VOCABULARY = 200
ROUNDING = 1e-5
"""A sum of probabilities in another order."""
SENTENCES = sentences(40, seed=3)
SEARCHES = [
    Options(),
    Options(beam=4, n_best=3),
    Options(beam=3, alignment=True),
    Options(min_tokens=9),
    Options(beam=2, min_tokens=6, max_tokens=8),
    Options(max_tokens=3),
]
OTHERS = [
    Options(sampling=Sampling(temperature=1.5, top_k=9, seed=7)),
    Options(sampling=Sampling(temperature=2.0, seed=8)),
    Options(repetition_penalty=1.5, beam=2),
    Options(no_repeat_ngram=2, suppressed=(7, 8)),
]
"""Options of searches that may take any token of the vocabulary."""


def made_up(
    seed: int, vocabulary: int = VOCABULARY, always: int = 12, likely: int = 6
) -> Shortlist:
    rng = np.random.default_rng(seed)
    frequent = rng.choice(np.arange(END + 1, vocabulary), always - 1, replace=False)
    lines = rng.integers(END + 1, vocabulary, (vocabulary, likely))
    lines[::3, 4:] = -1
    return Shortlist(np.array([END, *frequent], np.int32), lines.astype(np.int32))


@cache
def model() -> Transformer:
    return tiny_model(seed=4, vocabulary=VOCABULARY)


@cache
def full() -> UncheckedBundle:
    return graph_bundle(model(), "int8")


@cache
def listed() -> UncheckedBundle:
    return graph_bundle(model(), "int8", made_up(seed=5))


def others(sentence: Sentence) -> tuple[int, ...]:
    """Return the tokens that are not in the list of a sentence."""
    return tuple({*range(VOCABULARY)} - {*candidates(made_up(seed=5), *sentence.source)})


def candidates(shortlist: Shortlist, *source: int) -> list[int]:
    found = shortlist.tokens_for(source)
    assert found is not None
    return found.tolist()


def translate(bundle: UncheckedBundle, sentence: Sentence, options: Options) -> Answer:
    with running(bundle, one_lane(8)) as watched:
        return watched.translate([sentence], options)[0]


def test_the_bias_of_a_token_is_found_too() -> None:
    biased = tiny_model(seed=4, vocabulary=VOCABULARY, output_bias=True)
    torch.nn.init.normal_(biased.projection.bias)
    some, every = graph_bundle(biased, "int8", made_up(seed=5)), graph_bundle(biased, "int8")
    for sentence in SENTENCES[:10]:
        (ours,) = translate(some, sentence, Options()).hypotheses
        banned = Options(suppressed=others(sentence))
        (theirs,) = translate(every, sentence, banned).hypotheses
        assert ours.ids == theirs.ids
        assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=ROUNDING)


@pytest.mark.parametrize("options", SEARCHES)
def test_a_search_finds_what_it_would_with_all_others_banned(options: Options) -> None:
    unlike = 0
    with running(full(), one_lane()) as every, running(listed(), one_lane()) as some:
        for sentence in SENTENCES:
            (found,) = some.translate([sentence], options)
            (expected,) = every.translate([sentence], replace_suppressed(options, others(sentence)))
            (freely,) = every.translate([sentence], options)
            unlike += found.hypotheses[0].ids != freely.hypotheses[0].ids
            assert len(found.hypotheses) == len(expected.hypotheses)
            for ours, theirs in zip(found.hypotheses, expected.hypotheses, strict=True):
                assert (ours.ids, ours.finish) == (theirs.ids, theirs.finish)
                assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=ROUNDING)
                if options.alignment:
                    assert ours.alignment == pytest.approx(theirs.alignment, abs=ROUNDING)
    assert unlike > 10, "the lists leave nothing out that would be chosen"


def replace_suppressed(options: Options, banned: tuple[int, ...]) -> Options:
    return Options(**{**vars(options), "suppressed": banned})


def test_what_needs_any_token_is_as_without_a_shortlist() -> None:
    scored = Sentence((5, 6, 7), target=(190, 191))
    begun = Sentence((5, 6, 7), prefix=(190, 191))
    asked = [*((s, options) for s in SENTENCES[:5] for options in OTHERS)]
    asked += [(scored, Options()), (begun, Options()), (begun, Options(beam=3))]
    with running(full(), one_lane()) as every, running(listed(), one_lane()) as some:
        for sentence, options in asked:
            found, expected = (w.translate([sentence], options)[0] for w in (some, every))
            assert bits(found) == bits(expected)


@pytest.mark.parametrize(("rows", "lanes"), [(64, 1), (18, 3)])
def test_a_sentence_with_a_list_is_translated_as_if_it_were_alone(rows: int, lanes: int) -> None:
    """Among others with lists of their own, and among some that may take any token."""
    rng = random.Random(rows)
    subjects = [(s, options) for s in SENTENCES[:20] for options in [*SEARCHES, *OTHERS]]
    with running(listed(), one_lane(8)) as watched:
        alone = [bits(watched.translate([s], options)[0]) for s, options in subjects]
    settings = EngineSettings(rows=rows, lanes=lanes, threads=1, max_beam=4)
    with Translator(listed(), settings) as translator:
        order = rng.sample(range(len(subjects)), len(subjects))
        pending = {
            place: translator.submit([subjects[place][0]], subjects[place][1]) for place in order
        }
        together = [bits(pending[place].result()[0]) for place in range(len(subjects))]
    assert together == alone


def test_columns_begin_anew_while_sentences_run() -> None:
    """More tokens than there are columns at first; in the end none is wanted any more."""
    shortlist = made_up(seed=6, vocabulary=3000, always=50, likely=40)
    bundle = graph_bundle(tiny_model(seed=4, vocabulary=3000), "int8", shortlist)
    options = [Options(beam=beam, max_tokens=8) for beam in (1, 3)]
    subjects = [(sentence, each) for sentence in SENTENCES for each in options]
    with running(bundle, one_lane(4)) as watched:
        alone = [bits(watched.translate([s], each)[0]) for s, each in subjects]
    with running(bundle, one_lane(32)) as watched:
        (lane,) = watched.engine.lanes
        assert lane.graphs.shortlists is not None
        before = lane.graphs.shortlists.version
        requests = [watched.engine.submit([s], each) for s, each in subjects]
        together = [bits(watched.answers_of(request)[0]) for request in requests]
        assert lane.graphs.shortlists.version > before
        assert lane.graphs.shortlists.tokens_in_use == 0
    assert together == alone


def test_a_language_token_before_the_translation_counts_for_nothing() -> None:
    """It need not be in the list."""
    plain, started = Sentence((9, 8, 7)), Sentence((9, 8, 7), start=(150,))
    banned = others(plain)
    assert 150 in banned
    (ours,) = translate(listed(), started, Options(beam=2)).hypotheses
    (theirs,) = translate(full(), started, Options(beam=2, suppressed=banned)).hypotheses
    assert ours.ids == theirs.ids
    assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=ROUNDING)


@pytest.mark.parametrize("options", [Options(), Options(beam=4), Options(min_tokens=3)])
def test_a_list_that_is_too_short_is_none(options: Options) -> None:
    """A search looks at two tokens at least, and a beam at twice its size."""
    nothing = np.full((VOCABULARY, 1), -1, np.int32)
    short = graph_bundle(model(), "int8", Shortlist(np.array([END, 9], np.int32), nothing))
    for sentence in SENTENCES[:3]:
        expected = translate(full(), sentence, options)
        assert bits(translate(short, sentence, options)) == bits(expected)


def test_candidates_are_the_end_and_the_others_in_order() -> None:
    always = np.array([END, 9, 5], np.int32)
    likely = np.full((50, 4), -1, np.int32)
    likely[7] = [30, 5, 31, -1]
    likely[8] = [12, END, 30, 40]
    shortlist = Shortlist(always, likely)
    assert candidates(shortlist, 8, 7, 8) == [END, 5, 9, 12, 30, 31, 40]
    assert candidates(shortlist) == [END, 5, 9]


def test_a_source_token_that_was_not_learnt_may_become_any() -> None:
    likely = np.full((VOCABULARY, 4), 60, np.int32)
    likely[9] = -1
    shortlist = Shortlist(made_up(seed=5).always, likely)
    assert shortlist.tokens_for((8, 9)) is None
    bundle = graph_bundle(model(), "int8", shortlist)
    for options in (Options(), Options(beam=3)):
        expected = translate(full(), Sentence((8, 9)), options)
        assert bits(translate(bundle, Sentence((8, 9)), options)) == bits(expected)
        assert bits(translate(bundle, Sentence((8, 7)), options)) != bits(
            translate(full(), Sentence((8, 7)), options)
        )


def test_a_long_source_gets_fewer_for_each_token() -> None:
    shortlist = made_up(seed=1, vocabulary=9000, always=200, likely=50)
    assert len(candidates(shortlist, *range(100, 116))) > 700
    long = candidates(shortlist, *range(100, 355))
    assert MAX_SHORTLIST_TOKENS * 2 / 3 < len(long) <= MAX_SHORTLIST_TOKENS
    assert {*shortlist.likely[100:355, 0].tolist()} <= {*long}


def test_a_bundle_says_how_long_a_list_may_be(tmp_path: Path) -> None:
    usual = made_up(seed=1, vocabulary=9000, always=200, likely=50)
    longer = Shortlist(usual.always, usual.likely, max_tokens=3000)
    assert MAX_SHORTLIST_TOKENS < len(candidates(longer, *range(100, 150))) <= 3000
    for shortlist in (usual, longer):
        shortlist.check(9000, 9000, END)
        shortlist.save(tmp_path / "shortlist.npz")
        assert read_shortlist(tmp_path / "shortlist.npz").max_tokens == shortlist.max_tokens
    for max_tokens in (-1, 0, 300, 1 << 20):
        with pytest.raises(ValueError, match=r"max_tokens|always"):
            Shortlist(usual.always, usual.likely, max_tokens).check(9000, 9000, END)


def test_lists_that_are_longer_than_usual_give_the_same_bits_in_company() -> None:
    usual = made_up(seed=5)
    longer = Shortlist(usual.always, usual.likely, max_tokens=2 * MAX_SHORTLIST_TOKENS)
    bundle = graph_bundle(model(), "int8", longer)
    alone = [bits(translate(bundle, each, Options())) for each in SENTENCES[:6]]
    with Translator(bundle, EngineSettings(rows=6, lanes=1)) as translator:
        assert [bits(answer) for answer in translator.translate(SENTENCES[:6])] == alone


@pytest.mark.parametrize(
    ("always", "likely", "says"),
    [
        ([END, 7, 7], [[1]] * 50, "twice"),
        ([7, END], [[1]] * 50, "begin with the end"),
        ([END, 50], [[1]] * 50, "always has a token outside"),
        ([END], [[50]] * 50, "likely has a token outside"),
        ([END], [[-2]] * 50, "likely has a token outside"),
        ([END], [[1]] * 49, "likely is of shape"),
        ([], [[1]] * 50, "always is of shape"),
    ],
)
def test_a_shortlist_of_another_model_is_refused(
    always: list[int], likely: list[list[int]], says: str
) -> None:
    shortlist = Shortlist(np.array(always, np.int32), np.array(likely, np.int32))
    with pytest.raises(ValueError, match=says):
        shortlist.check(50, 50, END)


def test_a_file_that_is_none_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for content in (b"", b"PK\x03\x04 and more", b"not a shortlist"):
        (tmp_path / "shortlist.npz").write_bytes(content)
        with pytest.raises(BundleError, match="not a shortlist"):
            read_shortlist(tmp_path / "shortlist.npz")


def test_columns_of_a_crowd_are_forgotten_when_it_has_gone() -> None:
    weights = OutputWeights(np.zeros((9000, 4), np.int8), np.zeros(9000, np.float32), None)
    lists = RowShortlists(weights, rows=12)
    crowd = [np.arange(700 * row, 700 * row + 600) for row in range(12)]
    for row, tokens in enumerate(crowd):
        lists.fill([row], tokens)
    assert lists.inputs["column_steps"].size >= 12 * 600
    for tokens in crowd:
        lists.free(tokens)
    lists.fill([0], np.arange(100))
    assert lists.inputs["column_steps"].size < 1000


def test_every_list_finds_the_weights_of_its_tokens() -> None:
    """While sentences come and go, rows move, and columns begin anew."""
    rng = np.random.default_rng(2)
    vocabulary, rows = 5000, 12
    weights = OutputWeights(
        rng.integers(-63, 64, (vocabulary, 16)).astype(np.int8),
        rng.random(vocabulary).astype(np.float32),
        rng.random(vocabulary).astype(np.float32),
    )
    lists = RowShortlists(weights, rows)
    places = [lists.inputs["column_weights"].ctypes.data]
    size, held = lists.bytes, dict[int, np.ndarray]()
    for _ in range(400):
        row = int(rng.integers(rows))
        if row in held and rng.random() < 0.3:
            other = int(rng.integers(rows))
            if other not in held:
                lists.move([row], [other])
                held[other] = held.pop(row)
        elif row in held:
            lists.free(held.pop(row))
        else:
            held[row] = rng.choice(
                vocabulary, int(rng.integers(1, MAX_SHORTLIST_TOKENS)), replace=False
            )
            lists.fill([row], held[row])
        inputs = lists.inputs
        places.append(inputs["column_weights"].ctypes.data)
        for row, tokens in held.items():
            count = len(tokens)
            at = lists.columns[row, :count]
            assert (lists.ids[row, :count] == tokens).all()
            assert (inputs["column_weights"][:, at] == weights.matrix[tokens].T).all()
            assert (inputs["column_steps"][at] == weights.scales[tokens]).all()
            assert (inputs["column_biases"][at] == weights.biases[tokens]).all()  # type: ignore[index]
            assert (lists.offsets[row, :count] == 0).all()
            assert (lists.offsets[row, count:] == -np.inf).all()
        assert lists.columns.max() < inputs["column_steps"].size
    assert lists.version > 3
    assert len(set(places)) == 1
    assert lists.bytes == size
