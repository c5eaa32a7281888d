"""From the engine's answers to the messages of a translation."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.duration_pb2 import Duration

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Answer, Failure, Hypothesis
from dragoman_server.service import convert
from dragoman_server.service.errors import (
    CallError,
    CancelledByClientError,
    ExpiredError,
    InternalError,
    engine_stopped,
)
from dragoman_server.service.models import ServedModel
from dragoman_server.text.plan import Part, join


@dataclass(frozen=True)
class Done:
    """A part that is translated."""

    part: Part
    text: str
    answer: Answer


@dataclass(frozen=True)
class Clock:
    """Moments of a call, on the engine's clock."""

    began: float
    prepared: float


def failure(answer: Answer) -> CallError | None:
    """Why a sentence has no translation, for the client."""
    match answer.failure:
        case None:
            return None
        case Failure.EXPIRED:
            return ExpiredError("the deadline has passed")
        case Failure.CANCELLED:
            return CancelledByClientError("cancelled")
        case Failure.STOPPED:
            return engine_stopped()
        case Failure.POISONED:
            return InternalError(reason="POISONED")
        case Failure.FAULT:
            return InternalError(reason="ENGINE_FAULT")


def translation(
    model: ServedModel, options: pb.Options, clock: Clock, text: str, done: Sequence[Done]
) -> pb.Translation:
    joined = join(text, [d.part for d in done], [d.text for d in done])
    segments = [
        _segment(model, options, each, span.start)
        for each, span in zip(done, joined.spans, strict=True)
    ]
    tokens = [segment.target_tokens + 1 for segment in segments]  # the end token counts
    return pb.Translation(
        text=joined.text,
        score=sum(s.score * n for s, n in zip(segments, tokens, strict=True)) / max(1, sum(tokens)),
        finish_reason=max((s.finish_reason for s in segments), default=pb.FINISH_REASON_END),
        source_tokens=sum(segment.source_tokens for segment in segments),
        target_tokens=sum(segment.target_tokens for segment in segments),
        model=model.name,
        segments=segments,
        timing=_timing(clock, done) if options.timing else None,
    )


def _segment(model: ServedModel, options: pb.Options, done: Done, start: int) -> pb.Segment:
    best, end = done.answer.hypotheses[0], model.bundle.manifest.special_ids.end
    return pb.Segment(
        source=pb.Span(start=done.part.span.start, end=done.part.span.end),
        target=pb.Span(start=start, end=start + len(done.text)),
        score=best.score,
        log_prob=best.log_prob,
        finish_reason=convert.finish_reason(best.finish),
        source_tokens=len(done.part.ids),
        target_tokens=len(best.ids),
        tokens=convert.token_scores(best, model.target, end) if options.token_scores else (),
        alignment=convert.alignment(best, done.part.ids, model.source, model.target, end),
        alternatives=_alternatives(model, done) if options.HasField("alternatives") else (),
    )


def _alternatives(model: ServedModel, done: Done) -> list[pb.Alternative]:
    """Of the hypotheses, those in which everything masked is found again."""
    found: list[tuple[str, Hypothesis]] = []
    for hypothesis in done.answer.hypotheses:
        text = done.part.masked.restore(model.target.decode(hypothesis.ids))
        if text is not None:
            found.append((text, hypothesis))
    return [
        pb.Alternative(
            text=text,
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            finish_reason=convert.finish_reason(hypothesis.finish),
            target_tokens=len(hypothesis.ids),
        )
        for text, hypothesis in found
    ]


def _timing(clock: Clock, done: Sequence[Done]) -> pb.Timing:
    """Of the sentence that ended last."""
    now = time.monotonic()
    timing = pb.Timing(
        prepare=_duration(clock.prepared - clock.began), total=_duration(now - clock.began)
    )
    if done:
        last = max((each.answer.timing for each in done), key=lambda t: t.finished)
        timing.queue.CopyFrom(_duration(last.admitted - last.submitted))
        timing.encode.CopyFrom(_duration(last.encoded - last.admitted))
        timing.first_token.CopyFrom(_duration(last.first_token - last.admitted))
        timing.decode.CopyFrom(_duration(last.finished - last.first_token))
    return timing


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration
