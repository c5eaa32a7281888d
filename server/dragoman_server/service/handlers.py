"""The calls of ``dragoman.v1.TranslationService``."""

import itertools
from collections.abc import AsyncIterator
from typing import Any, Protocol

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Options, Sentence
from dragoman_server.service import convert, results
from dragoman_server.service.bulk import Bulk
from dragoman_server.service.calls import BULK_RPC, Call, Calls
from dragoman_server.service.errors import InvalidArgumentError, NotAllowedError
from dragoman_server.service.models import Models, ServedModel
from dragoman_server.service.translate import Job

_DESCRIPTOR = pb.DESCRIPTOR.services_by_name["TranslationService"]
SERVICE: str = _DESCRIPTOR.full_name
RPCS: tuple[str, ...] = tuple(method.name for method in _DESCRIPTOR.methods)


class _Selection(Protocol):
    """The fields of a request that choose a model."""

    source_language: str
    target_language: str
    model: str


class Handlers:
    def __init__(self, models: Models, calls: Calls) -> None:
        self._models = models
        self._calls = calls
        self._limits = calls.limits
        self._flows = itertools.count(-1, -1)  # requests without one count upwards

    def by_name(self) -> dict[str, Any]:
        """What gRPC is given."""
        calls = self._calls
        return {
            "Translate": calls.unary("Translate", pb.TranslateRequest, self.translate),
            "TranslateStream": calls.server_stream(
                "TranslateStream", pb.TranslateStreamRequest, self.translate_stream
            ),
            BULK_RPC: calls.both_streams(BULK_RPC, pb.TranslateBulkRequest, self.translate_bulk),
            "Score": calls.unary("Score", pb.ScoreRequest, self.score),
            "ListModels": calls.unary("ListModels", pb.ListModelsRequest, self.list_models),
            "GetModel": calls.unary("GetModel", pb.GetModelRequest, self.get_model),
        }

    async def translate(self, request: pb.TranslateRequest, call: Call) -> pb.TranslateResponse:
        self._check_count("texts", len(request.texts))
        job = Job(self.model(request, call), request.options, call, self._limits)
        fields = [f"texts[{number}]" for number in range(len(request.texts))]
        texts = await job.plan(list(request.texts), fields)
        return pb.TranslateResponse(translations=await job.translate(texts))

    async def translate_stream(
        self, request: pb.TranslateStreamRequest, call: Call
    ) -> AsyncIterator[pb.TranslateStreamResponse]:
        job = Job(self.model(request, call), request.options, call, self._limits)
        (text,) = await job.plan([request.text], ["text"])
        async for event in job.stream(text):
            if isinstance(event, pb.Translation):
                yield pb.TranslateStreamResponse(translation=event)
            elif event:
                yield pb.TranslateStreamResponse(delta=event)

    def translate_bulk(
        self, requests: AsyncIterator[pb.TranslateBulkRequest], call: Call
    ) -> AsyncIterator[pb.TranslateBulkResponse]:
        return Bulk(self.model, call, self._limits, self._calls.draining, next(self._flows)).run(
            requests
        )

    async def score(self, request: pb.ScoreRequest, call: Call) -> pb.ScoreResponse:
        self._check_count("pairs", len(request.pairs))
        model = self.model(request, call)
        call.facts["model"] = model.name
        alpha = request.length_penalty if request.HasField("length_penalty") else 1.0
        try:
            options = Options(length_penalty=alpha)
        except ValueError as error:
            raise InvalidArgumentError("length_penalty", str(error).partition(" ")[2]) from None
        sentences = [
            self._to_score(model, pair, f"pairs[{number}]")
            for number, pair in enumerate(request.pairs)
        ]
        tokens = sum(len(sentence.source) for sentence in sentences)
        if tokens > self._limits.max_source_tokens:
            raise InvalidArgumentError(
                "pairs",
                f"has {tokens} tokens: the limit of a request is {self._limits.max_source_tokens}",
                reason="TOO_LARGE",
            )
        call.count("source_tokens", tokens)
        with model.dispatcher.submit(sentences, options, deadline=call.deadline) as work:
            answers = await work.answers()
        end = model.bundle.manifest.special_ids.end
        scores: list[pb.SentenceScore] = []
        for answer, sentence in zip(answers, sentences, strict=True):
            if failure := results.failure(answer):
                raise failure
            found = answer.hypotheses[0]
            scores.append(
                pb.SentenceScore(
                    score=found.score,
                    log_prob=found.log_prob,
                    source_tokens=len(sentence.source),
                    target_tokens=len(found.ids),
                    tokens=convert.token_scores(found, model.target, end)
                    if request.token_scores
                    else (),
                )
            )
        return pb.ScoreResponse(scores=scores, model=model.name)

    async def list_models(self, request: pb.ListModelsRequest, call: Call) -> pb.ListModelsResponse:
        mine = [model for model in self._models if call.client.may_use(model.name)]
        return pb.ListModelsResponse(models=[model.describe() for model in mine])

    async def get_model(self, request: pb.GetModelRequest, call: Call) -> pb.GetModelResponse:
        if not request.model:
            raise InvalidArgumentError("model", "is empty: name one, as ListModels gives it")
        return pb.GetModelResponse(
            model=self._allowed(self._models.get(request.model), call).describe()
        )

    def model(self, request: _Selection, call: Call) -> ServedModel:
        """The model that a request means, if its client may use it."""
        found = self._models.find(request.model, request.source_language, request.target_language)
        return self._allowed(found, call)

    def _allowed(self, model: ServedModel, call: Call) -> ServedModel:
        if not call.client.may_use(model.name):
            raise NotAllowedError("this token may not use the model")
        return model

    def _check_count(self, field: str, count: int) -> None:
        if not count:
            raise InvalidArgumentError(field, "is empty: there must be at least one")
        if count > self._limits.max_texts:
            raise InvalidArgumentError(
                field,
                f"has {count} entries: the limit is {self._limits.max_texts}",
                reason="TOO_LARGE",
            )

    def _to_score(self, model: ServedModel, pair: pb.ScorePair, field: str) -> Sentence:
        sentence = Sentence(
            model.source.encode(pair.source), target=model.target.encode(pair.target)
        )
        if not sentence.source:
            raise InvalidArgumentError(f"{field}.source", "is empty")
        limits = model.bundle.manifest
        for side, ids, most in (
            ("source", sentence.source, limits.max_source_tokens - 1),
            ("target", sentence.target or (), limits.max_target_tokens - 1),
        ):
            if len(ids) > most:
                raise InvalidArgumentError(
                    f"{field}.{side}",
                    f"has {len(ids)} tokens: the model takes {most}",
                    reason="SENTENCE_TOO_LONG",
                )
        return sentence
