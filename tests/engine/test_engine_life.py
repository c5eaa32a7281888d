"""What an engine refuses, and how it ends: closed, drained or stalled."""

import threading
import time

import pytest

from dragoman_server.engine.core import Failure, Options, Report, Sentence, Ticket
from dragoman_server.engine.front import EngineClosedError
from dragoman_server.engine.jobs import SentenceError
from dragoman_server.engine.scheduler import QueueFullError
from dragoman_server.engine.settings import EngineSettings
from dragoman_training.data.tokenizer import END
from support.engine_bundles import (
    Watched,
    forced_length,
    long_bundle,
    one_lane,
    running,
    seeded_bundle,
    sentences,
)
from support.engine_reports import PATIENCE, Gate
from support.models import VOCABULARY


def test_a_full_queue_refuses_a_request_and_keeps_nothing_of_it() -> None:
    gate = Gate()
    settings = EngineSettings(rows=1, lanes=1, threads=1, max_beam=1, max_waiting_sentences=4)
    with running(seeded_bundle(), settings, gate) as watched:
        first = watched.engine.submit(sentences(1, seed=1))
        gate.wait()
        second = watched.engine.submit(sentences(3, seed=2))
        with pytest.raises(QueueFullError, match="3 sentences wait, and 2 more exceed 4"):
            watched.engine.submit(sentences(2, seed=3))
        assert watched.engine.waiting == 3
        third = watched.engine.submit(sentences(1, seed=4))
        gate.open()
        for request, count in ((first, 1), (second, 3), (third, 1)):
            assert all(a.failure is None for a in watched.answers_of(request, count))
    assert len(watched.answers) == 5


FINE = Sentence((5, 6, 7))


@pytest.mark.parametrize(
    ("sentence", "options", "field", "message"),
    [
        (Sentence((5, VOCABULARY)), Options(), "source", "has a token outside the vocabulary"),
        (Sentence((-1,)), Options(), "source", "has a token outside the vocabulary of 50"),
        (Sentence((5,) * 40), Options(), "source", "has 40 tokens: the model takes 39"),
        (Sentence((5,), prefix=(50,)), Options(), "prefix", "has a token outside the vocabulary"),
        (Sentence((5,), prefix=(5, END)), Options(), "prefix", "has the end token, 3"),
        (Sentence((5,), prefix=(9,) * 5), Options(max_tokens=5), "prefix", "may have 5, end incl"),
        (Sentence((5,), prefix=(9,) * 40), Options(), "prefix", "is 40 tokens"),
        (Sentence((5,), target=(50,)), Options(), "target", "has a token outside the vocabulary"),
        (Sentence((5,), target=(END,)), Options(), "target", "has the end token"),
        (Sentence((5,), target=(9,) * 40), Options(), "target", "has 40 tokens: the model takes"),
        (FINE, Options(suppressed=(50,)), "suppressed", "has a token outside the vocabulary"),
        (FINE, Options(suppressed=(5, END)), "suppressed", "has the end token"),
        (FINE, Options(min_tokens=40), "min_tokens", "is 40 tokens: the translation may have 40"),
        (FINE, Options(beam=31), "beam", "is 31: this engine takes 30"),
        (FINE, Options(beam=26), "beam", "is 26: too large for the vocabulary"),
    ],
    ids=str,
)
def test_what_the_model_can_not_take_is_refused(
    sentence: Sentence, options: Options, field: str, message: str
) -> None:
    settings = EngineSettings(rows=30, max_beam=30, lanes=1, threads=1)
    with running(seeded_bundle(), settings) as watched:
        with pytest.raises(SentenceError, match=f"^{field} .*{message}") as raised:
            watched.engine.submit([FINE, sentence, FINE], options)
        assert raised.value.field == field
        assert (watched.engine.waiting, watched.engine.running) == (0, 0)
        (answer,) = watched.translate([FINE])
        assert answer.failure is None
        assert answer.ticket == Ticket(0, 0)


def test_the_largest_that_the_model_takes_is_taken() -> None:
    settings = EngineSettings(rows=25, max_beam=25, lanes=1, threads=1)
    with running(seeded_bundle(), settings) as watched:
        for sentence, options in (
            (Sentence((5,) * 39, prefix=(9,) * 39), Options(min_tokens=39)),
            (Sentence((), target=(9,) * 39), Options()),
            (Sentence(()), Options(beam=25, n_best=25)),
        ):
            (answer,) = watched.translate([sentence], options)
            assert answer.failure is None
            assert len(answer.hypotheses) == options.n_best


def test_a_request_without_a_sentence_is_refused() -> None:
    with running(seeded_bundle()) as watched, pytest.raises(SentenceError, match="sentences"):
        watched.engine.submit([])


def test_closing_answers_everything() -> None:
    gate = Gate()
    watched = Watched(long_bundle(), one_lane(rows=2), gate)
    watched.engine.start()
    request = watched.engine.submit(sentences(6, seed=1), forced_length(200))
    cancelled = watched.engine.submit(sentences(1, seed=1))
    gate.wait()
    watched.engine.cancel(cancelled)
    closing = threading.Thread(target=watched.engine.close)
    closing.start()
    gate.open()
    closing.join(PATIENCE)
    assert [a.failure for a in watched.answers_of(request, 6)] == [Failure.STOPPED] * 6
    assert Ticket(cancelled, 0) in watched.answers
    assert (watched.engine.waiting, watched.engine.running) == (0, 0)
    with pytest.raises(EngineClosedError):
        watched.engine.submit(sentences(1, seed=1))
    watched.engine.close()


def test_closing_an_engine_that_never_ran_answers_what_was_queued() -> None:
    watched = Watched(seeded_bundle(), EngineSettings(rows=16, lanes=2, threads=1))
    request = watched.engine.submit(sentences(3, seed=1))
    watched.engine.close()
    assert watched.answers.keys() == {Ticket(request, number) for number in range(3)}
    for answer in watched.answers.values():
        assert answer.failure is Failure.STOPPED
        assert answer.timing.submitted <= answer.timing.finished


def test_draining_waits_for_answers_and_takes_no_more() -> None:
    gate = Gate()

    def hold_the_second_report(report: Report) -> None:
        if len(watched.reports) == 2:
            gate(report)

    with running(seeded_bundle(), at_report=hold_the_second_report) as watched:
        first = watched.engine.submit(sentences(1, seed=1), forced_length(1))
        second = watched.engine.submit(sentences(3, seed=1), forced_length(30))
        gate.wait()
        assert not watched.engine.drain(seconds=0)
        with pytest.raises(EngineClosedError):
            watched.engine.submit(sentences(1, seed=1))
        gate.open()
        assert watched.engine.drain(seconds=PATIENCE)
        assert watched.answers.keys() == {Ticket(first, 0), *(Ticket(second, n) for n in range(3))}


def test_draining_waits_until_the_last_answer_is_delivered() -> None:
    """Not only until it is known: whoever drains may go away then."""
    gate = Gate()
    with running(seeded_bundle(), at_report=gate) as watched:
        watched.engine.submit(sentences(1, seed=1), forced_length(1))
        gate.wait()
        assert watched.engine.running == 0
        assert not watched.engine.drain(seconds=0)
        gate.open()
        assert watched.engine.drain(seconds=PATIENCE)


def test_a_stalled_lane_is_seen_from_outside() -> None:
    gate = Gate()
    with running(seeded_bundle(), at_report=gate) as watched:
        assert not watched.engine.status()[0].busy
        request = watched.engine.submit(sentences(1, seed=1), forced_length(1))
        gate.wait()
        (early,), (late,) = watched.engine.status(), watched.engine.status()
        assert early.busy
        assert late.busy
        assert 0 < early.since_heartbeat < late.since_heartbeat
        gate.open()
        watched.answers_of(request)
        until = time.monotonic() + PATIENCE
        while watched.engine.status()[0].busy:
            assert time.monotonic() < until
        assert watched.engine.status()[0].alive
    assert not watched.engine.status()[0].alive


def test_a_lane_without_work_is_not_taken_for_a_stalled_one() -> None:
    """What waits is of a request that has all the rows it may have, on the other lane."""
    gate = Gate()
    settings = EngineSettings(rows=2, lanes=2, threads=1)
    with running(seeded_bundle(), settings, gate) as watched:
        watched.engine.submit(sentences(2, seed=1), Options(beam=2, min_tokens=3))
        gate.wait()
        assert (watched.engine.running, watched.engine.waiting) == (1, 1)
        assert sorted(status.busy for status in watched.engine.status()) == [False, True]
        gate.open()
        assert watched.engine.drain(seconds=PATIENCE)
