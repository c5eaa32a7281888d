"""What each call of ``dragoman.v1.TranslationService`` does, whatever protocol it came by."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service import responses
from dragoman_server.service.calls import Call, Calls
from dragoman_server.service.detection import Chosen, Detection, Selection
from dragoman_server.service.errors import CallError, InvalidArgumentError
from dragoman_server.service.glossaries.calls import GlossaryCalls
from dragoman_server.service.models.choice import Models
from dragoman_server.service.models.served import ServedModel
from dragoman_server.service.translation.bulk import Bulk
from dragoman_server.service.translation.engine_calls import Queueing
from dragoman_server.service.translation.score import score
from dragoman_server.service.translation.texts import TextTranslator

T = TypeVar("T")


class Handlers:
    def __init__(self, models: Models, calls: Calls, detection: Detection) -> None:
        self._models = models
        self._calls = calls
        self._limits = calls.limits
        self._detection = detection
        self.glossaries = GlossaryCalls(calls.limits)
        """The calls about glossaries."""
        self._flows = itertools.count(-1, -1)  # requests without one count upwards

    async def translate(self, request: pb.TranslateRequest, call: Call) -> pb.TranslateResponse:
        texts = list(request.texts)
        self._check_count("texts", len(texts))
        fields = [f"texts[{number}]" for number in range(len(texts))]
        chosen = await self.choose(request, texts, fields, call)
        # Texts in different languages may need different models; most often one has them all.
        by_model: dict[ServedModel, list[int]] = {}
        for number, each in enumerate(chosen):
            by_model.setdefault(each.model, []).append(number)
        runs = [
            self._translate_by(model, request.options, numbers, texts, fields, call)
            for model, numbers in by_model.items()
        ]
        done: dict[int, pb.Translation] = {}
        for some in [await runs[0]] if len(runs) == 1 else await _together(runs):
            done |= some
        return pb.TranslateResponse(
            translations=[each.mark(done[number]) for number, each in enumerate(chosen)]
        )

    async def _translate_by(
        self,
        model: ServedModel,
        options: pb.Options,
        numbers: Sequence[int],
        texts: Sequence[str],
        fields: Sequence[str],
        call: Call,
    ) -> dict[int, pb.Translation]:
        """Translate those of a request's texts that are for one model."""
        translator = TextTranslator(model, options, call, self._limits)
        plan = await translator.plan([texts[n] for n in numbers], [fields[n] for n in numbers])
        return dict(zip(numbers, await translator.translate(plan), strict=True))

    async def translate_stream(
        self, request: pb.TranslateStreamRequest, call: Call
    ) -> AsyncGenerator[pb.TranslateStreamResponse, None]:
        queueing = Queueing(flow=next(self._flows))  # its sentences come in several requests
        (chosen,) = await self.choose(request, [request.text], ["text"], call)
        translator = TextTranslator(chosen.model, request.options, call, self._limits, queueing)
        plan = await translator.plan([request.text], ["text"])
        async with aclosing(translator.stream(plan)) as events:  # its rows are free when this ends
            async for event in events:
                if isinstance(event, pb.Translation):
                    yield pb.TranslateStreamResponse(translation=chosen.mark(event))
                elif event:
                    yield pb.TranslateStreamResponse(delta=event)

    def translate_bulk(
        self, requests: AsyncIterator[pb.TranslateBulkRequest], call: Call
    ) -> AsyncGenerator[pb.TranslateBulkResponse, None]:
        calls = self._calls
        bulk = Bulk(
            *(
                self._choose_for_item,
                calls.rejected,
                call,
                self._limits,
                calls.draining,
                next(self._flows),
            )
        )
        return bulk.run(requests)

    async def score(self, request: pb.ScoreRequest, call: Call) -> pb.ScoreResponse:
        self._check_count("pairs", len(request.pairs))
        sources = "\n".join(pair.source for pair in request.pairs)
        (chosen,) = await self.choose(request, [sources], ["pairs"], call)
        return await score(chosen.model, request, call, self._limits)

    async def detect(self, request: pb.DetectRequest, call: Call) -> pb.DetectResponse:
        self._check_count("texts", len(request.texts))
        return await self._detection.detect(request.texts, call.client.may_use)

    async def list_models(self, request: pb.ListModelsRequest, call: Call) -> pb.ListModelsResponse:
        mine = [model for model in self._models if call.client.may_use(model.name)]
        return pb.ListModelsResponse(models=[responses.describe(model) for model in mine])

    async def get_model(self, request: pb.GetModelRequest, call: Call) -> pb.GetModelResponse:
        if not request.model:
            raise InvalidArgumentError("model", "is empty: name one, as ListModels gives it")
        found = self._models.find(request.model, "", "", call.client.may_use)
        return pb.GetModelResponse(model=responses.describe(found))

    async def _choose_for_item(self, request: pb.TranslateBulkRequest, call: Call) -> Chosen:
        (chosen,) = await self._detection.choose(
            request, [request.text], ["text"], call.client.may_use
        )
        return chosen

    async def choose(
        self, request: Selection, texts: Sequence[str], fields: Sequence[str], call: Call
    ) -> list[Chosen]:
        """Return the models for the texts of a request, where they have room for them."""
        chosen = await self._detection.choose(request, texts, fields, call.client.may_use)
        for model in {each.model for each in chosen}:
            model.dispatcher.check_admission(call.deadline)
        return chosen

    def check_admission(self, call: Call) -> None:
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


async def _together(runs: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Wait for all of these. Where one fails the others are cancelled, and its error is raised."""
    tasks = [asyncio.ensure_future(run) for run in runs]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
