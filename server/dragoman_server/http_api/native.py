"""Our own JSON API, under ``/v1``: the messages of the wire, and their errors."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from google.protobuf.message import Message
from starlette.responses import Response
from starlette.routing import Route

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.http_api.bodies import Bodies, media_type, read_json
from dragoman_server.http_api.calls import HttpCalls, Incoming
from dragoman_server.http_api.errors import MediaTypeError, headers_of, retry_seconds, status_of
from dragoman_server.http_api.json_messages import from_json, to_json, to_value
from dragoman_server.service import offload
from dragoman_server.service.auth import key_in
from dragoman_server.service.calls import Call
from dragoman_server.service.errors import CallError, InvalidArgumentError
from dragoman_server.service.models.languages import (
    name_of,
    preferred_language,
    translated_between,
)
from dragoman_server.service.models.served import ServedModel
from dragoman_server.service.server import Server

M = TypeVar("M", bound=Message)

_JSON = "application/json"


class Native:
    """The endpoints of the API, and how it tells of errors."""

    def __init__(self, server: Server, bodies: Bodies) -> None:
        self._models = server.models
        self._handlers = server.handlers
        self._calls = HttpCalls(server.calls, bodies, self)

    def calls(self) -> list[Route]:
        calls = self._calls
        return [
            calls.post("/v1/translate", self.translate),
            calls.stream("/v1/stream", self.stream, _event_of_error),
            calls.post("/v1/detect", self.detect),
            calls.post("/v1/score", self.score),
            calls.get("/v1/models", self.list_models),
            calls.get("/v1/models/{name}", self.get_model),
            calls.get("/v1/languages", self.list_languages),
            calls.post("/v1/glossaries", self.create_glossary),
            calls.get("/v1/glossaries", self.list_glossaries),
            calls.get("/v1/glossaries/{name}", self.get_glossary),
            calls.delete("/v1/glossaries/{name}", self.delete_glossary),
        ]

    async def key(self, incoming: Incoming) -> str:
        return key_in(incoming.request.headers.get("authorization", ""))

    def error(self, error: CallError, request_id: str) -> Response:
        body = to_json(error_value(error, request_id))
        return Response(body, status_of(error), headers_of(error), _JSON)

    async def translate(self, incoming: Incoming, call: Call) -> Response:
        self._handlers.check_admission(call)
        request = await _message(incoming, pb.TranslateRequest)
        return await _response(await self._handlers.translate(request, call))

    async def stream(self, incoming: Incoming, call: Call) -> AsyncGenerator[bytes, None]:
        self._handlers.check_admission(call)
        request = await _message(incoming, pb.TranslateStreamRequest)
        async with aclosing(self._handlers.translate_stream(request, call)) as responses:
            async for response in responses:
                yield b"data: " + to_json(to_value(response)) + b"\n\n"

    async def detect(self, incoming: Incoming, call: Call) -> Response:
        request = await _message(incoming, pb.DetectRequest)
        return await _response(await self._handlers.detect(request, call))

    async def score(self, incoming: Incoming, call: Call) -> Response:
        self._handlers.check_admission(call)
        request = await _message(incoming, pb.ScoreRequest)
        return await _response(await self._handlers.score(request, call))

    async def list_models(self, incoming: Incoming, call: Call) -> Response:
        return await _response(await self._handlers.list_models(pb.ListModelsRequest(), call))

    async def get_model(self, incoming: Incoming, call: Call) -> Response:
        request = pb.GetModelRequest(model=incoming.request.path_params["name"])
        return await _response(await self._handlers.get_model(request, call))

    async def create_glossary(self, incoming: Incoming, call: Call) -> Response:
        request = await _message(incoming, pb.CreateGlossaryRequest)
        return await _response(await self._handlers.glossaries.create(request, call))

    async def list_glossaries(self, incoming: Incoming, call: Call) -> Response:
        request = pb.ListGlossariesRequest()
        return await _response(await self._handlers.glossaries.list_all(request, call))

    async def get_glossary(self, incoming: Incoming, call: Call) -> Response:
        request = pb.GetGlossaryRequest(name=incoming.request.path_params["name"])
        return await _response(await self._handlers.glossaries.get(request, call))

    async def delete_glossary(self, incoming: Incoming, call: Call) -> Response:
        request = pb.DeleteGlossaryRequest(name=incoming.request.path_params["name"])
        return await _response(await self._handlers.glossaries.delete(request, call))

    async def list_languages(self, incoming: Incoming, call: Call) -> Response:
        reader = preferred_language(incoming.request.headers.get("accept-language", ""))
        mine = [model for model in self._models if call.client.may_use(model.name)]
        # Names are read from files the first time.
        languages = await asyncio.to_thread(lambda: language_values(mine, reader))
        return Response(to_json({"languages": languages}), media_type=_JSON)


def language_values(models: Sequence[ServedModel], reader: str) -> list[dict[str, Any]]:
    """Return what stands for the languages of models in JSON, with names for a reader."""
    return [
        {"code": each.code, "name": name_of(each.code, reader), "targets": list(each.targets)}
        for each in translated_between(models)
    ]


def error_value(error: CallError, request_id: str) -> dict[str, dict[str, str | float]]:
    """Return what stands for an error in JSON."""
    value: dict[str, str | float] = {
        "code": error.code.name,
        "reason": error.reason,
        "message": error.message,
        "request_id": request_id,
    }
    if isinstance(error, InvalidArgumentError) and error.field:
        value["field"] = error.field
    if (seconds := retry_seconds(error)) is not None:
        value["retry_after"] = round(seconds, 3)
    return {"error": value}


def _event_of_error(error: CallError, request_id: str) -> bytes:
    return b"event: error\ndata: " + to_json(error_value(error, request_id)) + b"\n\n"


async def _message(incoming: Incoming, kind: type[M]) -> M:
    """Return the message of a request's body."""
    if media_type(incoming.request) != _JSON:
        raise MediaTypeError("the body must be JSON, with the content type application/json")
    return from_json(await read_json(await incoming.body()), kind)


async def _response(message: Message) -> Response:
    body = await offload.for_letters(message.ByteSize(), lambda: to_json(to_value(message)))
    return Response(body, media_type=_JSON)
