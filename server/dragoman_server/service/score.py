"""Scoring given translations: each pair is a row whose tokens are forced."""

from collections.abc import Sequence

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Answer, Options, Sentence
from dragoman_server.engine.jobs import SentenceError
from dragoman_server.grpc_api.calls import Call
from dragoman_server.service import convert, offload, results
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.service.models import ServedModel
from dragoman_server.service.settings import Limits


async def score(
    model: ServedModel, request: pb.ScoreRequest, call: Call, limits: Limits
) -> pb.ScoreResponse:
    call.facts["model"] = model.name
    options = _options(request)
    letters = sum(len(pair.source) + len(pair.target) for pair in request.pairs)
    sentences = await offload.for_letters(letters, lambda: _sentences(model, request, limits))
    call.count("source_tokens", sum(len(sentence.source) for sentence in sentences))
    try:
        work = await model.dispatcher.submit(sentences, options, deadline=call.deadline)
    except SentenceError as error:
        raise convert.wire_error(error, "pairs") from None
    with work:
        answers = await work.answers()
    return await offload.for_letters(letters, lambda: _response(model, request, answers))


def _options(request: pb.ScoreRequest) -> Options:
    if not request.HasField("length_penalty"):
        return Options()
    try:
        return Options(length_penalty=request.length_penalty)
    except ValueError as error:
        raise InvalidArgumentError("length_penalty", str(error).partition(" ")[2]) from None


def _sentences(model: ServedModel, request: pb.ScoreRequest, limits: Limits) -> list[Sentence]:
    sources = model.source.encode_all([pair.source for pair in request.pairs])
    targets = model.target.encode_all([pair.target for pair in request.pairs])
    before, start = model.planner.before, model.start
    for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if not source:
            raise InvalidArgumentError(f"pairs[{number}].source", "is empty")
        for side, ids, most in (
            ("source", source, model.planner.most),
            ("target", target, model.bundle.manifest.max_target_tokens - 1 - len(start)),
        ):
            if len(ids) > most:
                raise InvalidArgumentError(
                    f"pairs[{number}].{side}",
                    f"has {len(ids)} tokens: the model takes {most}",
                    reason="SENTENCE_TOO_LONG",
                )
    convert.check_tokens("pairs", sum(map(len, sources)), limits.max_source_tokens)
    return [
        Sentence((*before, *source), target=target, start=start)
        for source, target in zip(sources, targets, strict=True)
    ]


def _response(
    model: ServedModel, request: pb.ScoreRequest, answers: Sequence[Answer]
) -> pb.ScoreResponse:
    end = model.bundle.manifest.special_ids.end
    scores: list[pb.SentenceScore] = []
    for answer in answers:
        if failure := results.failure(answer):
            raise failure
        found = answer.hypotheses[0]
        tokens = convert.token_scores(found, model.target, end) if request.token_scores else ()
        scores.append(
            pb.SentenceScore(
                score=found.score,
                log_prob=found.log_prob,
                source_tokens=answer.source_tokens,
                target_tokens=len(found.ids),
                tokens=tokens,
            )
        )
    return pb.ScoreResponse(scores=scores, model=model.name)
