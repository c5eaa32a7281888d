"""An engine that runs: who goes when, and what is streamed."""

import time

import pytest

from dragoman_server.engine.core import Failure, Options, Report, Sampling, Sentence, Ticket
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from support.engine_bundles import (
    Watched,
    bits,
    forced_length,
    long_bundle,
    one_lane,
    running,
    seeded_bundle,
    sentences,
)
from support.engine_reports import PATIENCE, Gate


def steps_before_admission(watched: Watched, request: int, submitted_at: int) -> int:
    """Return the steps that its lane took between so many reports and its admission."""
    (answer,) = watched.answers_of(request)
    assert answer.failure is None
    (last,) = (n for n, report in enumerate(watched.reports) if answer in report.answers)
    lane = watched.reports[last].lane
    meanwhile = [r for r in watched.reports[submitted_at : last + 1] if r.lane == lane and r.rows]
    return len(meanwhile) - answer.steps


def test_a_short_sentence_does_not_wait_for_long_ones() -> None:
    """It comes when eight of 200 tokens are under way, and takes a fifth of their time at most."""
    submitted: list[int] = []

    def submit_one_more(report: Report) -> None:
        if watched.steps() == 20 and not submitted:
            submitted.append(watched.engine.submit(sentences(1, seed=2), forced_length(5)))

    with running(long_bundle(), one_lane(), submit_one_more) as watched:
        long = watched.engine.submit(sentences(8, seed=1), forced_length(200))
        assert [answer.steps for answer in watched.answers_of(long, 8)] == [200] * 8
        (short,) = watched.answers_of(submitted[0])
    assert short.steps == 5
    (place,) = (n for n, report in enumerate(watched.reports) if short in report.answers)
    assert watched.steps() == 200
    assert sum(report.rows > 0 for report in watched.reports[: place + 1]) - 20 <= 6


def test_the_pace_is_learned_from_what_is_answered() -> None:
    with running(seeded_bundle(), one_lane()) as watched:
        assert watched.engine.speed.pace == 0
        request = watched.engine.submit(sentences(1, seed=3), forced_length(20))
        (answer,) = watched.answers_of(request)
        held = answer.timing.finished - answer.timing.admitted
        assert watched.engine.speed.pace == pytest.approx(1.25 * held / (answer.source_tokens + 1))


@pytest.mark.parametrize("beam", [1, 8])
@pytest.mark.parametrize("lanes", [1, 2])
def test_a_huge_request_does_not_keep_others_out(lanes: int, beam: int) -> None:
    """Its sentences are all equally long, so all its rows become free at the same time."""
    submitted: list[tuple[int, int]] = []

    def submit_one_more(report: Report) -> None:
        has_all_rows = watched.engine.running >= 32
        if watched.steps() >= 6 * lanes and has_all_rows and not submitted:
            at = len(watched.reports)
            request = watched.engine.submit(sentences(1, seed=2), Options(beam=beam, max_tokens=5))
            submitted.append((request, at))

    settings = EngineSettings(rows=32, lanes=lanes, threads=1)
    with running(long_bundle(), settings, submit_one_more) as watched:
        huge = watched.engine.submit(sentences(5000, seed=1, longest=3), forced_length(100))
        watched.wait_until(lambda: bool(submitted))
        request, at = submitted[0]
        assert steps_before_admission(watched, request, at) <= 10
        watched.engine.cancel(huge)


def test_what_matters_more_goes_first() -> None:
    watched = Watched(seeded_bundle(), one_lane(rows=1))
    low, first, second, high = (
        watched.engine.submit(sentences(1, seed=1), forced_length(2), flow=5, priority=priority)
        for priority in (-1, 0, 0, 1)
    )
    watched.engine.start()
    watched.answers_of(low)
    watched.engine.close()
    assert [ticket.request for ticket in watched.answers] == [high, first, second, low]


def test_flows_are_served_round_robin() -> None:
    """Each has a row of its own here, and its sentences come one after the other."""
    watched = Watched(seeded_bundle(), one_lane(rows=1))
    requests = [
        watched.engine.submit(sentences(2, seed=1), forced_length(2), flow=flow)
        for flow in (7, 7, 8)
    ]
    watched.engine.start()
    watched.answers_of(requests[1], 2)
    watched.engine.close()
    order = [ticket.request for ticket in watched.answers]
    assert order == [requests[n] for n in (0, 2, 0, 2, 1, 1)]


@pytest.mark.parametrize("options", [Options(min_tokens=250), Options(min_tokens=250, beam=4)])
def test_a_cancelled_sentence_takes_part_in_one_more_step_at_most(options: Options) -> None:
    with running(long_bundle()) as watched:
        request = watched.engine.submit(sentences(2, seed=1), options, stream=True)
        watched.wait_until(lambda: watched.steps() >= 5)
        watched.engine.cancel(request)
        seen = watched.steps()
        for answer in watched.answers_of(request, 2):
            assert answer.failure is Failure.CANCELLED
            assert answer.hypotheses == ()
            assert 5 <= answer.steps <= seen + 1
        assert (watched.engine.running, watched.engine.waiting) == (0, 0)


def test_what_is_cancelled_or_expires_in_the_queue_is_never_encoded() -> None:
    gate = Gate()
    with running(seeded_bundle(), one_lane(rows=1), gate) as watched:
        runs = watched.engine.submit(sentences(1, seed=1), forced_length(3), flow=1)
        gate.wait()
        now = time.monotonic()
        cancelled = watched.engine.submit(sentences(4, seed=2), flow=1)
        expired = watched.engine.submit(sentences(3, seed=3), flow=1, deadline=now)
        last = watched.engine.submit(sentences(2, seed=4), flow=1, deadline=now + 3600)
        watched.engine.cancel(cancelled)
        gate.open()
        for request, count, failure in (
            (cancelled, 4, Failure.CANCELLED),
            (expired, 3, Failure.EXPIRED),
            (runs, 1, None),
            (last, 2, None),
        ):
            for answer in watched.answers_of(request, count):
                assert answer.failure is failure
                assert (answer.steps > 0) is (failure is None)
                assert (answer.timing.admitted > 0) is (failure is None)
                assert answer.timing.submitted <= answer.timing.finished
    assert sum(report.encoded for report in watched.reports) == 3


def test_a_running_sentence_expires_at_the_next_step() -> None:
    deadline = time.monotonic() + 0.3

    def wait_for_the_deadline(report: Report) -> None:
        while time.monotonic() < deadline:
            pass

    with running(long_bundle(), at_report=wait_for_the_deadline) as watched:
        request = watched.engine.submit(sentences(1, seed=1), forced_length(250), deadline=deadline)
        other = watched.engine.submit(sentences(1, seed=1), forced_length(5))
        (answer,) = watched.answers_of(request)
        assert answer.failure is Failure.EXPIRED
        assert answer.steps == 1
        assert watched.answers_of(other)[0].failure is None


@pytest.mark.parametrize(
    "options",
    [Options(), Options(sampling=Sampling(seed=1)), Options(no_repeat_ngram=1, max_tokens=20)],
    ids=["greedy", "sampled", "constrained"],
)
def test_streamed_tokens_are_those_of_the_answer(options: Options) -> None:
    wanted = [*sentences(20, seed=5), Sentence((5, 6), prefix=(9, 10)), Sentence((7,), target=(8,))]
    with running(seeded_bundle()) as watched:
        request = watched.engine.submit(wanted, options, stream=True)
        watched.engine.submit(sentences(10, seed=6), options)
        answers = watched.answers_of(request, len(wanted))
        streamed: dict[Ticket, list[tuple[int, float]]] = {answer.ticket: [] for answer in answers}
        for report in watched.reports:
            for new in report.tokens:
                streamed[new.ticket].append((new.token, new.log_prob))
    for answer in answers:
        (found,) = answer.hypotheses
        assert streamed[answer.ticket] == list(
            zip(found.ids, found.token_log_probs[:-1], strict=True)
        )


def test_a_beam_streams_nothing() -> None:
    wanted = [*sentences(3, seed=5), Sentence((5, 6), prefix=(9, 10))]
    with running(seeded_bundle()) as watched:
        request = watched.engine.submit(wanted, Options(beam=2), stream=True)
        watched.answers_of(request, 4)
    assert watched.tokens_of(request) == []


def test_reports_add_up() -> None:
    wanted = sentences(40, seed=7)
    with running(seeded_bundle(), one_lane(rows=8)) as watched:
        answers = watched.translate(wanted, Options(beam=2))
    reports = watched.reports
    assert sum(report.encoded for report in reports) == 40
    assert sum(report.source_tokens for report in reports) == sum(len(s.source) + 1 for s in wanted)
    assert sum(report.target_tokens for report in reports) == sum(
        len(answer.hypotheses[0].ids) + 1 for answer in answers
    )
    assert sum(report.rows for report in reports) >= 2 * sum(answer.steps for answer in answers)
    assert max(report.rows for report in reports) <= 8
    for answer, sentence in zip(answers, wanted, strict=True):
        assert answer.source_tokens == len(sentence.source)
        timing = answer.timing
        assert 0 < timing.submitted <= timing.admitted <= timing.encoded
        assert timing.encoded <= timing.first_token <= timing.finished


def test_a_future_can_not_be_cancelled_and_others_get_their_answers() -> None:
    with Translator(seeded_bundle(), one_lane()) as translator:
        wanted = sentences(1, seed=1)
        pending = [translator.submit(wanted, forced_length(30)) for _ in range(4)]
        assert not pending[0].cancel()
        answers = [future.result(timeout=PATIENCE)[0] for future in pending]
        assert len({bits(answer) for answer in answers}) == 1
