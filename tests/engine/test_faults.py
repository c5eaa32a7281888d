"""What goes wrong in one place stays there."""

import dataclasses
import logging
import threading
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch

from dragoman_server.bundle.reading import UncheckedBundle
from dragoman_server.engine.core import Answer, Failure, Options, Report, Sentence
from dragoman_server.engine.settings import EngineSettings
from support.engine_bundles import (
    Watched,
    bits,
    forced_length,
    graph_bundle,
    long_bundle,
    one_lane,
    running,
    seeded_bundle,
    sentences,
)
from support.models import VOCABULARY, random_sources, tiny_model

SICK_SOURCE, SICK_TARGET = 7, 8
CLEAN = [
    Sentence(tuple(token for token in source if token != SICK_SOURCE))
    for source in random_sources(15, seed=61)
]


@cache
def poisonous_bundle(precision: str) -> UncheckedBundle:
    """Return a bundle in which one source token and one target token have no numbers as vectors."""
    model = tiny_model(seed=1)
    with torch.no_grad():
        model.source_embedding.table.weight[SICK_SOURCE] = torch.nan
        model.target_embedding.table.weight[SICK_TARGET] = torch.nan
    with np.errstate(invalid="ignore"):
        return graph_bundle(model, precision)


def failures(answers: list[Answer]) -> list[Failure | None]:
    return [answer.failure for answer in answers]


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_poisoned_sentence_fails_alone(precision: str, beam: int) -> None:
    sick = [
        Sentence((5, SICK_SOURCE, 6)),
        Sentence((5, 6), prefix=(9, SICK_TARGET, 10)),
        Sentence((5, 6), target=(9, SICK_TARGET, 10)),
    ]
    options = Options(beam=beam, suppressed=(SICK_TARGET,))
    with running(poisonous_bundle(precision)) as watched:
        expected = [bits(watched.translate([sentence], options)[0]) for sentence in CLEAN]
        mixed = [s for n, clean in enumerate(CLEAN) for s in (clean, sick[n % len(sick)])]
        for answer, sentence in zip(watched.translate(mixed, options), [*mixed], strict=True):
            if sentence in sick:
                assert answer.failure is Failure.POISONED
                assert answer.hypotheses == ()
            else:
                assert bits(answer) == expected[CLEAN.index(sentence)]
        assert [bits(answer) for answer in watched.translate(CLEAN, options)] == expected
    assert sum(report.faults for report in watched.reports) == 0


def test_a_sentence_for_which_nothing_is_allowed_fails_alone() -> None:
    everything = tuple(token for token in range(VOCABULARY) if token != 3)
    with running(seeded_bundle()) as watched:
        (expected,) = watched.translate(CLEAN[:1])
        barred = watched.engine.submit(CLEAN[1:2], Options(suppressed=everything, min_tokens=1))
        other = watched.engine.submit(CLEAN[:1])
        assert failures(watched.answers_of(barred)) == [Failure.POISONED]
        assert bits(watched.answers_of(other)[0]) == bits(expected)


class Interruption:
    """Makes onnxruntime fail on lane 0 as soon as a report fits, until a call has failed."""

    def __init__(self, watched: Watched, begins: Callable[[Report], bool]) -> None:
        self._graphs = watched.engine.lanes[0].graphs
        self._begins = begins
        self._done = False

    def __call__(self, report: Report) -> None:
        if report.lane:
            return
        if report.faults:
            self._graphs.interrupt(False)
        elif not self._done and self._begins(report):
            self._done = True
            self._graphs.interrupt()


@pytest.mark.parametrize("beam", [1, 2])
def test_a_step_that_fails_costs_only_the_sentences_in_it(
    beam: int, caplog: pytest.LogCaptureFixture
) -> None:
    options = Options(beam=beam, min_tokens=9)
    wanted = sentences(20, seed=62)
    with running(seeded_bundle(), one_lane(rows=8)) as watched:
        expected = [bits(answer) for answer in watched.translate(wanted, options)]
        begun = watched.steps()
        watched.at_report = Interruption(watched, lambda report: watched.steps() == begun + 5)
        answers = watched.translate(wanted, options)
        after = [bits(answer) for answer in watched.translate(wanted, options)]
    failed = [answer for answer in answers if answer.failure]
    assert failures(failed) == [Failure.FAULT] * (8 // beam)
    assert all(answer.hypotheses == () for answer in failed)
    for answer, wanted_bits in zip(answers, expected, strict=True):
        assert answer.failure or bits(answer) == wanted_bits
    assert after == expected
    assert sum(report.faults for report in watched.reports) == 1
    assert "a step of lane 0 failed" in caplog.text


def test_a_fault_of_one_lane_is_not_seen_in_the_other() -> None:
    settings = EngineSettings(rows=8, lanes=2, threads=1)
    with running(long_bundle(), settings) as watched:
        # Not before the other lane has its half of them.
        watched.at_report = Interruption(
            watched, lambda report: any(each.lane == 1 for each in watched.reports)
        )
        request = watched.engine.submit(sentences(8, seed=63), forced_length(200))
        answers = watched.answers_of(request, 8)
        reports = watched.reports
    lane_of = {answer.ticket: report.lane for report in reports for answer in report.answers}
    for answer in answers:
        assert answer.failure is (Failure.FAULT if lane_of[answer.ticket] == 0 else None)
    assert sorted(lane_of.values()) == [0] * 4 + [1] * 4


def test_a_call_of_the_encoder_that_fails_costs_only_the_sentences_in_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The manifest promises a token more than the encoder has: onnxruntime refuses to look it up"""
    known = seeded_bundle()
    sizes = dataclasses.replace(known.manifest.dimensions, source_vocabulary=VOCABULARY + 1)
    manifest = dataclasses.replace(known.manifest, dimensions=sizes)
    # So different in length that they do not share a call.
    bad, beside, apart = Sentence((5, VOCABULARY)), Sentence((5, 6)), Sentence((9,) * 35)
    submitted: list[int] = []

    def submit_the_bad_one(report: Report) -> None:
        if not submitted:
            submitted.append(watched.engine.submit([bad, apart, beside]))

    with running(UncheckedBundle(known.path, manifest)) as watched:
        expected = bits(watched.translate([apart])[0])
        watched.at_report = submit_the_bad_one
        runs = watched.engine.submit([apart])
        assert bits(watched.answers_of(runs)[0]) == expected
        failed, fine, also_failed = watched.answers_of(submitted[0], 3)
        assert failures([failed, also_failed]) == [Failure.FAULT] * 2
        assert failed.steps == also_failed.steps == 0
        assert bits(fine) == expected
        assert watched.translate([beside])[0].failure is None
    assert sum(report.faults for report in watched.reports) == 1
    assert "encoder" in caplog.text


def test_a_receiver_that_raises_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def raise_an_error(report: Report) -> None:
        raise ValueError("the receiver's own mistake")

    wanted = sentences(10, seed=64)
    with running(seeded_bundle(), one_lane(rows=4), raise_an_error) as watched:
        assert failures(watched.translate(wanted)) == [None] * 10
        assert watched.engine.drain(seconds=60)
    assert caplog.text.count("could not be delivered") == len(watched.reports)
    assert {record.levelno for record in caplog.records} == {logging.ERROR}


def test_threads_end_with_the_engine() -> None:
    before = threading.active_count()
    with running(seeded_bundle(), EngineSettings(rows=16, lanes=3, threads=1)) as watched:
        assert threading.active_count() == before + 3
        watched.translate(sentences(3, seed=66))
    assert threading.active_count() == before
