"""What the front and its workers say to each other: plain tuples, written by ``marshal``.

    front → worker   OPEN once, with what to load; then WORK: who leaves, who begins
    worker → front   PREPARED, where it was to prepare the weights for all; READY or REFUSED once;
                     then REPORTS of turns with news; LOG at any time

Both ends are of one Python and of one version of this package: the front starts its workers itself.
Each message is its length, four bytes, and then its bytes.
"""

import marshal
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

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
from dragoman_server.engine.jobs import Decoding, Job

OPEN, WORK, PREPARED, READY, REFUSED, REPORTS, LOG = range(7)
"""Kinds of messages: the first value of each."""

Message = tuple[Any, ...]
_LENGTH = struct.Struct("<I")
_FAILURES = tuple(Failure)
_FINISHES = tuple(Finish)


def framed(message: Message) -> bytes:
    """Return a message with its length before it."""
    body = marshal.dumps(message)
    return _LENGTH.pack(len(body)) + body


class Unframer:
    """Puts messages together again out of whatever pieces they arrive in."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that are complete with this piece."""
        buffer = self._rest + data if self._rest else data
        start = 0
        while len(buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, start)
            end = start + _LENGTH.size + length
            if len(buffer) < end:
                break
            body = memoryview(buffer)[start + _LENGTH.size : end]
            yield marshal.loads(body)  # noqa: S302 - our own process wrote it
            start = end
        self._rest = buffer[start:]


def pack_work(leaving: Sequence[tuple[Ticket, Failure]], admitted: Sequence[Job]) -> Message:
    """Return the message that tells a worker what is to be done."""
    return (
        WORK,
        [(t.request, t.sentence, _FAILURES.index(why)) for t, why in leaving],
        [_pack_job(job) for job in admitted],
    )


def unpack_work(message: Message) -> tuple[list[tuple[Ticket, Failure]], list[Job]]:
    """Return who leaves and who begins."""
    _, leaving, admitted = message
    return (
        [(Ticket(request, sentence), _FAILURES[why]) for request, sentence, why in leaving],
        [_unpack_job(packed) for packed in admitted],
    )


def pack_reports(reports: Sequence[Report]) -> Message:
    """Return the message that tells the front what turns came to."""
    return (REPORTS, [_pack_report(report) for report in reports])


def unpack_reports(message: Message, lane: int, jobs: dict[Ticket, Job]) -> Iterator[Report]:
    """Yield the reports of a lane. ``jobs`` are its jobs as the front knows them."""
    for packed in message[1]:
        yield _unpack_report(packed, lane, jobs)


def _pack_job(job: Job) -> Message:
    sentence = job.sentence
    return (
        *(job.ticket.request, job.ticket.sentence),
        *(sentence.source, sentence.prefix, sentence.target, sentence.start),
        *(_pack_options(job.options), job.forced, job.limit, job.seed, job.stream),
    )


def _unpack_job(packed: Message) -> Job:
    request, number, source, prefix, target, start, options, forced, limit, seed, stream = packed
    sentence = Sentence(source, prefix, target, start)
    unpacked = _unpack_options(options)
    return Job(
        Ticket(request, number),
        sentence,
        unpacked,
        Decoding.of(sentence, unpacked, forced),
        forced,
        limit,
        seed,
        stream,
    )


def _pack_options(options: Options) -> Message:
    sampling = options.sampling
    return (
        *(options.beam, options.n_best, options.length_penalty),
        (sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed) if sampling else None,
        *(options.repetition_penalty, options.no_repeat_ngram, options.suppressed),
        *(options.min_tokens, options.max_tokens, options.alignment),
    )


@lru_cache(maxsize=64)  # most sentences have the options of others
def _unpack_options(packed: Message) -> Options:
    beam, n_best, length_penalty, sampling, repetition_penalty, no_repeat_ngram = packed[:6]
    suppressed, min_tokens, max_tokens, alignment = packed[6:]
    drawn = None
    if sampling is not None:
        temperature, top_k, top_p, seed = sampling
        drawn = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    return Options(
        beam=beam,
        n_best=n_best,
        length_penalty=length_penalty,
        sampling=drawn,
        repetition_penalty=repetition_penalty,
        no_repeat_ngram=no_repeat_ngram,
        suppressed=suppressed,
        min_tokens=min_tokens,
        max_tokens=max_tokens,
        alignment=alignment,
    )


def _pack_report(report: Report) -> Message:
    return (
        [(t.ticket.request, t.ticket.sentence, t.token, t.log_prob) for t in report.tokens],
        [_pack_answer(answer) for answer in report.answers],
        *(report.rows, report.encoded, report.source_tokens, report.padding, report.target_tokens),
        *(report.encode_seconds, report.step_seconds, report.graph_seconds, report.turn_seconds),
        *(report.faults, report.earlier_steps),
    )


def _unpack_report(packed: Message, lane: int, jobs: dict[Ticket, Job]) -> Report:
    tokens, answers, *figures = packed
    rows, encoded, source_tokens, padding, target_tokens, *figures = figures
    encode_seconds, step_seconds, graph_seconds, turn_seconds, faults, earlier_steps = figures
    return Report(
        lane,
        tokens=[NewToken(Ticket(r, s), token, log_prob) for r, s, token, log_prob in tokens],
        answers=[_unpack_answer(answer, jobs) for answer in answers],
        rows=rows,
        encoded=encoded,
        source_tokens=source_tokens,
        padding=padding,
        target_tokens=target_tokens,
        encode_seconds=encode_seconds,
        step_seconds=step_seconds,
        graph_seconds=graph_seconds,
        turn_seconds=turn_seconds,
        faults=faults,
        earlier_steps=earlier_steps,
    )


def _pack_answer(answer: Answer) -> Message:
    timing = answer.timing
    return (
        *(answer.ticket.request, answer.ticket.sentence),
        None if answer.failure is None else _FAILURES.index(answer.failure),
        [_pack_hypothesis(hypothesis) for hypothesis in answer.hypotheses],
        *(timing.admitted, timing.encoded, timing.first_token, timing.finished),
        answer.steps,
    )


def _unpack_answer(packed: Message, jobs: dict[Ticket, Job]) -> Answer:
    request, sentence, failure, hypotheses, admitted, encoded, first_token, finished, steps = packed
    ticket = Ticket(request, sentence)
    job = jobs[ticket]
    return Answer(
        ticket,
        hypotheses=tuple(_unpack_hypothesis(hypothesis) for hypothesis in hypotheses),
        failure=None if failure is None else _FAILURES[failure],
        timing=Timing(job.timing.submitted, admitted, encoded, first_token, finished),
        source_tokens=len(job.sentence.source),
        steps=steps,
    )


def _pack_hypothesis(hypothesis: Hypothesis) -> Message:
    alignment = hypothesis.alignment
    return (
        *(hypothesis.ids, hypothesis.log_prob, hypothesis.score),
        *(_FINISHES.index(hypothesis.finish), hypothesis.token_log_probs),
        None if alignment is None else (alignment.shape, alignment.tobytes()),
    )


def _unpack_hypothesis(packed: Message) -> Hypothesis:
    ids, log_prob, score, finish, token_log_probs, alignment = packed
    if alignment is not None:
        shape, data = alignment
        alignment = np.frombuffer(data, np.float32).reshape(shape)
    return Hypothesis(ids, log_prob, score, _FINISHES[finish], token_log_probs, alignment)
