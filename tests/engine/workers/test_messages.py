"""What goes between a front and its workers comes out as it went in, in whatever pieces."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.bundle.reading import read_bundle
from dragoman_server.engine.core import (
    Answer,
    Failure,
    Finish,
    Hypothesis,
    NewToken,
    Options,
    Report,
    Sampling,
    Sentence,
    Ticket,
    Timing,
)
from dragoman_server.engine.jobs import Job, JobMaker
from dragoman_server.engine.workers.messages import (
    Unframer,
    framed,
    pack_reports,
    pack_work,
    unpack_reports,
    unpack_work,
)
from support import MODEL

MAKER = JobMaker(read_bundle(MODEL).manifest, max_beam=8)

tickets = st.builds(Ticket, st.integers(0, 2**40), st.integers(0, 2**20))
ids = st.lists(st.integers(4, 7000), min_size=1, max_size=20).map(tuple)
floats = st.floats(-1e9, 0, allow_nan=False)
optional_ids = st.one_of(st.just(()), ids)
options = st.one_of(
    st.builds(
        Options,
        beam=st.integers(2, 8),
        n_best=st.integers(1, 2),
        length_penalty=st.floats(0, 10),
        repetition_penalty=st.floats(0.5, 2),
        no_repeat_ngram=st.integers(0, 4),
        suppressed=optional_ids,
        min_tokens=st.integers(0, 3),
        max_tokens=st.one_of(st.none(), st.integers(50, 90)),
        alignment=st.booleans(),
    ),
    st.builds(
        Options,
        sampling=st.builds(
            Sampling,
            temperature=st.floats(0.5, 2),
            top_k=st.integers(0, 50),
            top_p=st.floats(0.1, 1),
            seed=st.one_of(st.none(), st.integers(0, 2**64 - 1)),
        ),
    ),
)
leavers = st.lists(st.tuples(tickets, st.sampled_from(Failure)))
sentences = st.one_of(
    st.builds(Sentence, ids, prefix=optional_ids, start=optional_ids),
    st.builds(Sentence, ids, target=ids),
)


def through(*messages: Any, pieces: list[int] | None = None) -> list[Any]:
    """Send messages as bytes, cut at these places."""
    data = b"".join(map(framed, messages))
    cuts = sorted({0, len(data), *(piece % (len(data) + 1) for piece in pieces or [])})
    unframer = Unframer()
    return [message for start, end in pairwise(cuts) for message in unframer.feed(data[start:end])]


def job_values(job: Job) -> tuple[object, ...]:
    return (
        *(job.ticket, job.sentence, job.options, job.decoding, job.forced),
        *(job.limit, job.seed, job.stream),
    )


@given(st.lists(st.binary(max_size=50), max_size=5), st.lists(st.integers(0, 1000), max_size=8))
def test_messages_are_put_together_out_of_any_pieces(
    bodies: list[bytes], pieces: list[int]
) -> None:
    messages = [(number, body) for number, body in enumerate(bodies)]
    assert through(*messages, pieces=pieces) == messages


@given(tickets, sentences, options, st.booleans(), leavers)
def test_work_arrives_as_it_was_sent(
    ticket: Ticket,
    sentence: Sentence,
    chosen: Options,
    stream: bool,
    leaving: list[tuple[Ticket, Failure]],
) -> None:
    job = replace(MAKER.job(sentence, chosen, stream=stream), ticket=ticket)
    (message,) = through(pack_work(leaving, [job]))
    came, (admitted,) = unpack_work(message)
    assert came == leaving
    assert job_values(admitted) == job_values(job)


@given(st.data())
def test_reports_arrive_to_the_last_bit(data: st.DataObject) -> None:
    made = MAKER.job(Sentence((5, 6, 7)), Options(), stream=True)
    job = replace(made, ticket=data.draw(tickets), timing=Timing(submitted=12.5))
    numbers = data.draw(st.lists(floats, min_size=1, max_size=8))
    alignment = np.array([numbers, numbers], np.float32)
    hypothesis = Hypothesis(
        ids=(1, 2, 3),
        log_prob=numbers[0],
        score=numbers[-1],
        finish=data.draw(st.sampled_from(Finish)),
        token_log_probs=tuple(numbers),
        alignment=data.draw(st.sampled_from([None, alignment])),
    )
    failed = Answer(job.ticket, failure=data.draw(st.sampled_from(Failure)))
    found = Answer(job.ticket, (hypothesis,), timing=Timing(12.5, 13.0, 13.5, 14.0, 15.0), steps=3)
    sent = Report(
        2,
        tokens=[NewToken(job.ticket, 7, numbers[0])],
        answers=[data.draw(st.sampled_from([failed, found]))],
        rows=3,
        encoded=1,
        source_tokens=4,
        padding=5,
        target_tokens=6,
        encode_seconds=0.1,
        step_seconds=0.2,
        graph_seconds=0.3,
        turn_seconds=0.4,
        faults=1,
        earlier_steps=[(2, 0.5), (3, 0.25)],
    )
    (message,) = through(pack_reports([sent]))
    (came,) = unpack_reports(message, 2, {job.ticket: job})
    assert came.tokens == sent.tokens
    for name in ("lane", "rows", "encoded", "source_tokens", "padding", "target_tokens", "faults"):
        assert getattr(came, name) == getattr(sent, name)
    seconds = ("encode_seconds", "step_seconds", "graph_seconds", "turn_seconds")
    for name in (*seconds, "earlier_steps"):
        assert getattr(came, name) == getattr(sent, name)
    (answer,), (expected,) = came.answers, sent.answers
    assert (answer.ticket, answer.failure, answer.steps) == (
        *(expected.ticket, expected.failure, expected.steps),
    )
    assert answer.source_tokens == 3
    assert answer.timing.submitted == 12.5
    for one, other in zip(answer.hypotheses, expected.hypotheses, strict=True):
        assert (one.ids, one.finish) == (other.ids, other.finish)
        assert [one.log_prob.hex(), one.score.hex()] == [other.log_prob.hex(), other.score.hex()]
        assert one.token_log_probs == other.token_log_probs
        if other.alignment is None:
            assert one.alignment is None
        else:
            assert one.alignment is not None
            assert one.alignment.tobytes() == other.alignment.tobytes()
            assert one.alignment.shape == other.alignment.shape


def test_turns_with_nothing_but_a_step_are_part_of_the_next_report() -> None:
    first = Report(1, rows=3, step_seconds=0.1, graph_seconds=0.2, turn_seconds=0.3)
    second = Report(1, rows=2, step_seconds=0.4, graph_seconds=0.5, turn_seconds=0.75)
    last = Report(1, rows=1, step_seconds=0.1, graph_seconds=0.1, turn_seconds=1.0, faults=1)
    assert first.is_step_only
    assert second.is_step_only
    assert not last.is_step_only
    assert not Report(1, rows=1, encoded=1).is_step_only
    second.add_earlier(first)
    last.add_earlier(second)
    assert last.earlier_steps == [(3, 0.1), (2, 0.4)]
    assert (last.rows, last.step_seconds) == (1, 0.1)
    assert last.turn_seconds == 0.3 + 0.75 + 1.0
    assert round(last.graph_seconds, 9) == 0.8
