"""The calls of ``dragoman.v1.TranslationService``."""

import itertools
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Protocol

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.grpc_api.calls import GrpcCalls
from dragoman_server.service import responses
from dragoman_server.service.calls import Call, Calls
from dragoman_server.service.errors import CallError, InvalidArgumentError
from dragoman_server.service.models.choice import Models
from dragoman_server.service.models.served import ServedModel
from dragoman_server.service.translation.bulk import Bulk
from dragoman_server.service.translation.engine_calls import Queueing
from dragoman_server.service.translation.score import score
from dragoman_server.service.translation.texts import TextTranslator

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
        """Return gRPC's handlers of all calls."""
        calls, check = GrpcCalls(self._calls), self._check_admission
        return {
            "Translate": calls.unary("Translate", pb.TranslateRequest, self.translate, check),
            "TranslateStream": calls.server_stream(
                "TranslateStream", pb.TranslateStreamRequest, self.translate_stream, check
            ),
            "TranslateBulk": calls.both_streams(
                "TranslateBulk", pb.TranslateBulkRequest, self.translate_bulk
            ),
            "Score": calls.unary("Score", pb.ScoreRequest, self.score, check),
            "ListModels": calls.unary("ListModels", pb.ListModelsRequest, self.list_models),
            "GetModel": calls.unary("GetModel", pb.GetModelRequest, self.get_model),
        }

    async def translate(self, request: pb.TranslateRequest, call: Call) -> pb.TranslateResponse:
        self._check_count("texts", len(request.texts))
        model = self._free_model(request, call)
        translator = TextTranslator(model, request.options, call, self._limits)
        fields = [f"texts[{number}]" for number in range(len(request.texts))]
        plan = await translator.plan(list(request.texts), fields)
        return pb.TranslateResponse(translations=await translator.translate(plan))

    async def translate_stream(
        self, request: pb.TranslateStreamRequest, call: Call
    ) -> AsyncGenerator[pb.TranslateStreamResponse, None]:
        queueing = Queueing(flow=next(self._flows))  # its sentences come in several requests
        model = self._free_model(request, call)
        translator = TextTranslator(model, request.options, call, self._limits, queueing)
        plan = await translator.plan([request.text], ["text"])
        async with aclosing(translator.stream(plan)) as events:  # its rows are free when this ends
            async for event in events:
                if isinstance(event, pb.Translation):
                    yield pb.TranslateStreamResponse(translation=event)
                elif event:
                    yield pb.TranslateStreamResponse(delta=event)

    def translate_bulk(
        self, requests: AsyncIterator[pb.TranslateBulkRequest], call: Call
    ) -> AsyncGenerator[pb.TranslateBulkResponse, None]:
        calls = self._calls
        bulk = Bulk(
            *(self.model, calls.rejected, call, self._limits, calls.draining, next(self._flows))
        )
        return bulk.run(requests)

    async def score(self, request: pb.ScoreRequest, call: Call) -> pb.ScoreResponse:
        self._check_count("pairs", len(request.pairs))
        return await score(self._free_model(request, call), request, call, self._limits)

    async def list_models(self, request: pb.ListModelsRequest, call: Call) -> pb.ListModelsResponse:
        mine = [model for model in self._models if call.client.may_use(model.name)]
        return pb.ListModelsResponse(models=[responses.describe(model) for model in mine])

    async def get_model(self, request: pb.GetModelRequest, call: Call) -> pb.GetModelResponse:
        if not request.model:
            raise InvalidArgumentError("model", "is empty: name one, as ListModels gives it")
        found = self._models.find(request.model, "", "", call.client.may_use)
        return pb.GetModelResponse(model=responses.describe(found))

    def model(self, request: _Selection, call: Call) -> ServedModel:
        """Return the model that a request means, of those that its client may use."""
        languages = request.source_language, request.target_language
        found = self._models.find(request.model, *languages, call.client.may_use)
        return found.towards(*languages)

    def _free_model(self, request: _Selection, call: Call) -> ServedModel:
        """Return the model that a request means, where it has room; bulk streams wait for it."""
        found = self.model(request, call)
        found.dispatcher.check_admission(call.deadline)
        return found

    def _check_admission(self, call: Call) -> None:
        """Refuse a call whichever model it means, where none would take it.

        Nothing is read of its message then. A server that has too much to do has to refuse most of
        what comes, so that has to be cheap.
        """
        refusal: CallError | None = None
        for model in self._models:
            try:
                model.dispatcher.check_admission(call.deadline)
            except CallError as error:
                refusal = error
            else:
                return
        if refusal is not None:
            raise refusal

    def _check_count(self, field: str, count: int) -> None:
        if not count:
            raise InvalidArgumentError(field, "is empty: there must be at least one")
        if count > self._limits.max_texts:
            raise InvalidArgumentError(
                field,
                f"has {count} entries: the limit is {self._limits.max_texts}",
                reason="TOO_LARGE",
            )
