"""Scoring given translations: each pair is a row whose tokens are forced."""

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Sentence
from dragoman_server.engine.jobs import SentenceError
from dragoman_server.service import offload, requests, responses
from dragoman_server.service.calls import Call
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.service.models.served import ServedModel
from dragoman_server.service.settings import Limits


async def score(
    model: ServedModel, request: pb.ScoreRequest, call: Call, limits: Limits
) -> pb.ScoreResponse:
    """Answer how probable a model finds the translations of a request."""
    call.facts["model"] = model.name
    options = requests.score_options(request)
    letters = sum(len(pair.source) + len(pair.target) for pair in request.pairs)
    sentences = await offload.for_letters(letters, lambda: _sentences(model, request, limits))
    call.count("source_tokens", sum(len(sentence.source) for sentence in sentences))
    try:
        work = await model.dispatcher.submit(sentences, options, deadline=call.deadline)
    except SentenceError as error:
        raise requests.wire_error(error, "pairs") from None
    with work:
        answers = await work.answers()
    return await offload.for_letters(letters, lambda: responses.scores(model, request, answers))


def _sentences(model: ServedModel, request: pb.ScoreRequest, limits: Limits) -> list[Sentence]:
    sources = model.source.encode_all([pair.source for pair in request.pairs])
    targets = model.target.encode_all([pair.target for pair in request.pairs])
    before, start = model.planner.before, model.start
    for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if not source:
            raise InvalidArgumentError(f"pairs[{number}].source", "is empty")
        for side, ids, max_tokens in (
            ("source", source, model.planner.max_tokens),
            ("target", target, model.bundle.manifest.max_target_tokens - 1 - len(start)),
        ):
            if len(ids) > max_tokens:
                raise InvalidArgumentError(
                    f"pairs[{number}].{side}",
                    f"has {len(ids)} tokens: the model takes {max_tokens}",
                    reason="SENTENCE_TOO_LONG",
                )
    requests.check_tokens("pairs", sum(map(len, sources)), limits.max_source_tokens)
    return [
        Sentence((*before, *source), target=target, start=start)
        for source, target in zip(sources, targets, strict=True)
    ]
