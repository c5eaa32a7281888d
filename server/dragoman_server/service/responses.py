"""From the engine's answers to the messages of a response."""

import time
from collections.abc import Sequence

from google.protobuf.duration_pb2 import Duration

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Answer, Failure, Finish, Hypothesis
from dragoman_server.service.errors import (
    CallError,
    CancelledByClientError,
    ExpiredError,
    InternalError,
    engine_stopped,
)
from dragoman_server.service.models.served import ServedModel
from dragoman_server.service.translation.detokenizer import Detokenizer
from dragoman_server.service.translation.mending import TranslatedPart
from dragoman_server.service.translation.planned import Clock, Text
from dragoman_server.service.translation.tagging import tags_of
from dragoman_server.text.faults import Fault
from dragoman_server.text.plan import Part
from dragoman_server.text.segments import Span

_FAULTS = {
    Fault.EMPTY: pb.WARNING_CODE_EMPTY,
    Fault.LOOP: pb.WARNING_CODE_LOOP,
    Fault.NUMBERS: pb.WARNING_CODE_NUMBERS,
}
_FINISH = {Finish.END: pb.FINISH_REASON_END, Finish.LENGTH: pb.FINISH_REASON_LENGTH}


def failure(answer: Answer) -> CallError | None:
    """Return why a sentence has no translation, in words for the client."""
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
    model: ServedModel,
    options: pb.Options,
    detokenizer: Detokenizer,
    clock: Clock,
    text: Text,
    translated: Sequence[TranslatedPart],
) -> pb.Translation:
    """Return the message of a text whose parts are all translated."""
    joined = text.joined(translated, model.target_language)
    segments = [
        _segment(model, options, detokenizer, text, each, span)
        for each, span in zip(translated, joined.spans, strict=True)
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
        timing=_timing(clock, translated) if options.timing else None,
        warnings=_warnings(text, translated),
    )


def _warnings(text: Text, translated: Sequence[TranslatedPart]) -> list[pb.TranslationWarning]:
    """Return what is wrong with translated parts, and could not be mended."""
    found: list[pb.TranslationWarning] = []
    for number, each in enumerate(translated):
        if each.fault:
            found.append(pb.TranslationWarning(code=_FAULTS[each.fault], segment=number))
        found += [
            pb.TranslationWarning(
                code=pb.WARNING_CODE_GLOSSARY, segment=number, entry=term.entry.number
            )
            for term in text.lost_terms(each)
        ]
    return found


def code_of(warning: pb.TranslationWarning) -> str:
    """Return the code of a warning, in a word for metrics."""
    return pb.WarningCode.Name(warning.code).removeprefix("WARNING_CODE_").lower()


def scores(
    model: ServedModel, request: pb.ScoreRequest, answers: Sequence[Answer]
) -> pb.ScoreResponse:
    """Return the message of the answers to pairs that were scored."""
    found: list[pb.SentenceScore] = []
    for answer in answers:
        if error := failure(answer):
            raise error
        hypothesis = answer.hypotheses[0]
        found.append(
            pb.SentenceScore(
                score=hypothesis.score,
                log_prob=hypothesis.log_prob,
                source_tokens=answer.source_tokens,
                target_tokens=len(hypothesis.ids),
                tokens=token_scores(model, hypothesis) if request.token_scores else (),
            )
        )
    return pb.ScoreResponse(scores=found, model=model.name)


def describe(model: ServedModel) -> pb.Model:
    """Return the message that says what a model is."""
    manifest, engine = model.bundle.manifest, model.dispatcher.engine
    return pb.Model(
        name=manifest.name,
        version=manifest.version,
        source_language=manifest.source_language,
        target_language=manifest.target_language,
        precision=manifest.precision,
        device=engine.settings.device,
        max_source_tokens=manifest.max_source_tokens,
        max_target_tokens=manifest.max_target_tokens,
        max_beam_size=engine.settings.max_beam,
        rows=engine.resolved.lanes * engine.resolved.rows_per_lane,
        licence=manifest.licence,
        source_languages=model.directions.source_languages,
        target_languages=model.directions.target_languages,
    )


def token_scores(model: ServedModel, hypothesis: Hypothesis) -> list[pb.TokenScore]:
    """Return each token of a hypothesis with its log-probability, the end token last."""
    ids = (*hypothesis.ids, model.end)
    return [
        pb.TokenScore(piece=model.target.piece(token), log_prob=log_prob)
        for token, log_prob in zip(ids, hypothesis.token_log_probs, strict=True)
    ]


def _segment(
    model: ServedModel,
    options: pb.Options,
    detokenizer: Detokenizer,
    text: Text,
    translated: TranslatedPart,
    target: Span,
) -> pb.Segment:
    part, best = translated.part, translated.answer.hypotheses[0]
    source = text.written(part.span)
    return pb.Segment(
        source=pb.Span(start=source.start, end=source.end),
        target=pb.Span(start=target.start, end=target.end),
        score=best.score,
        log_prob=best.log_prob,
        finish_reason=_FINISH[best.finish],
        source_tokens=len(part.ids),
        target_tokens=len(best.ids),
        tokens=token_scores(model, best) if options.token_scores else (),
        alignment=_alignment(model, part, best) if options.alignment else None,
        alternatives=_alternatives(model, detokenizer, text, translated)
        if options.HasField("alternatives")
        else (),
    )


def _alignment(model: ServedModel, part: Part, hypothesis: Hypothesis) -> pb.Alignment | None:
    if hypothesis.alignment is None:
        return None
    return pb.Alignment(
        source_pieces=[
            model.source.piece(token) for token in (*part.ids, *model.bundle.manifest.source_end)
        ],
        target_pieces=[model.target.piece(token) for token in (*hypothesis.ids, model.end)],
        rows=[pb.AlignmentRow(weights=row) for row in hypothesis.alignment.tolist()],
    )


def _alternatives(
    model: ServedModel, detokenizer: Detokenizer, text: Text, translated: TranslatedPart
) -> list[pb.Alternative]:
    """Return the hypotheses in which everything masked is found again, and all tags are placed."""
    found: list[tuple[str, Hypothesis]] = []
    part, writer = translated.part, text.writer(model.target_language)
    for hypothesis in translated.answer.hypotheses:
        restored = part.masked.restore(detokenizer.detokenize(part, hypothesis))
        if restored is None:
            continue
        tags = tags_of(text, part, restored, hypothesis, detokenizer)
        if tags is not None:
            written = writer.alone(part.span, restored, tags) if writer else restored
            found.append((written, hypothesis))
    return [
        pb.Alternative(
            text=text,
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            finish_reason=_FINISH[hypothesis.finish],
            target_tokens=len(hypothesis.ids),
        )
        for text, hypothesis in found
    ]


def _timing(clock: Clock, translated: Sequence[TranslatedPart]) -> pb.Timing:
    """Return where the time went, for the sentence that ended last."""
    now = time.monotonic()
    timing = pb.Timing(
        prepare=_duration(clock.prepared - clock.began), total=_duration(now - clock.began)
    )
    if translated:
        last = max((each.answer.timing for each in translated), key=lambda t: t.finished)
        timing.queue.CopyFrom(_duration(last.admitted - last.submitted))
        timing.encode.CopyFrom(_duration(last.encoded - last.admitted))
        timing.first_token.CopyFrom(_duration(last.first_token - last.admitted))
        timing.decode.CopyFrom(_duration(last.finished - last.first_token))
    return timing


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration
