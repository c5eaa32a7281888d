"""LibreTranslate's API, as its clients know it: endpoints, shapes, statuses and messages."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from grpc import StatusCode
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.http_api.bodies import Bodies
from dragoman_server.http_api.calls import HttpCalls, Incoming
from dragoman_server.http_api.errors import headers_of, status_of
from dragoman_server.http_api.json_messages import to_json
from dragoman_server.http_api.native import language_values
from dragoman_server.http_api.parameters import Parameters, parameters_of
from dragoman_server.service.auth import key_in
from dragoman_server.service.calls import Call
from dragoman_server.service.detection import AUTO
from dragoman_server.service.errors import CallError, InvalidArgumentError, NotFoundError
from dragoman_server.service.models.languages import name_of, preferred_language
from dragoman_server.service.server import Server

_CODE = re.compile(r"[A-Za-z0-9_-]{1,32}")
"""What may be the code of a language, and is repeated where it is not supported."""
_SHOWN_CONFIDENCE = 0.01
"""Least confidence of a language that is listed after the best."""


class LibreTranslate:
    """The endpoints of the API, and how it tells of errors."""

    def __init__(self, server: Server, bodies: Bodies) -> None:
        self._server = server
        self._handlers = server.handlers
        self._models = server.models
        self._calls = HttpCalls(server.calls, bodies, self)

    def calls(self) -> list[Route]:
        calls = self._calls
        return [
            calls.post("/translate", self.translate),
            calls.post("/detect", self.detect),
            calls.get("/languages", self.languages),
            calls.post("/translate_file", self.translate_file),
            calls.post("/suggest", self.suggest),
        ]

    def others(self) -> list[Route]:
        return [
            Route("/frontend/settings", self.settings),
            Route("/spec", lambda request: RedirectResponse("/openapi.json")),
        ]

    async def key(self, incoming: Incoming) -> str:
        """Return the key of the header, or else of the body, the form or the query."""
        if key := key_in(incoming.request.headers.get("authorization", "")):
            return key
        try:
            return (await parameters_of(incoming)).text("api_key")
        except CallError:
            return ""  # what is wrong with the body is not told to somebody without a key

    def error(self, error: CallError, request_id: str) -> Response:
        status, message = status_of(error), error.message
        if error.code is StatusCode.UNAUTHENTICATED:
            is_missing = error.reason == "NO_KEY"
            status = 400 if is_missing else 403
            message = (
                "Please contact the server operator to get an API key"
                if is_missing
                else "Invalid API key"
            )
        elif error.code is StatusCode.NOT_FOUND:
            status = 400
        elif error.code is StatusCode.RESOURCE_EXHAUSTED:
            message = f"Slowdown: {message}"
        return Response(to_json({"error": message}), status, headers_of(error), "application/json")

    async def translate(self, incoming: Incoming, call: Call) -> Response:
        self._handlers.check_admission(call)
        given = await parameters_of(incoming)
        is_batch, items = _items(given)
        source, target = _required(given, "source").lower(), _required(given, "target").lower()
        form = given.text("format", "text") or "text"
        if form not in ("text", "html"):
            shown = form if _CODE.fullmatch(form) else "this"
            raise InvalidArgumentError("", f"{shown} format is not supported")
        alternatives = given.count("alternatives")
        await self._check_languages(source, target, call)
        options = pb.Options()
        if alternatives:
            options.beam_size = options.alternatives = alternatives + 1
        if form == "html":
            options.markup = pb.MARKUP_HTML
        translated = await self._translate_texts(items, source, target, options, call)
        body: dict[str, Any] = {"translatedText": [each["text"] for each in translated]}
        if source == AUTO:
            body["detectedLanguage"] = [each["detected"] for each in translated]
        if alternatives:
            body["alternatives"] = [each["alternatives"] for each in translated]
        if not is_batch:
            body = {name: values[0] for name, values in body.items()}
        return _json(body)

    async def detect(self, incoming: Incoming, call: Call) -> Response:
        text = _required(await parameters_of(incoming), "q")
        response = await self._handlers.detect(pb.DetectRequest(texts=[text]), call)
        (detection,) = response.detections
        shown = [
            each
            for place, each in enumerate(detection.languages)
            if not place or each.confidence >= _SHOWN_CONFIDENCE
        ]
        return _json([_detected(each) for each in shown])

    async def languages(self, incoming: Incoming, call: Call) -> Response:
        reader = preferred_language(incoming.request.headers.get("accept-language", ""))
        mine = [model for model in self._models if call.client.may_use(model.name)]

        def values() -> list[dict[str, Any]]:
            found = language_values(mine, reader)
            known = {each["code"] for each in found}
            only_targets = dict.fromkeys(
                code for each in found for code in each["targets"] if code not in known
            )
            return found + [
                {"code": code, "name": name_of(code, reader), "targets": []}
                for code in only_targets
            ]

        return _json(await asyncio.to_thread(values))

    async def translate_file(self, incoming: Incoming, call: Call) -> Response:
        return _json({"error": "Files translation are disabled on this server."}, 403)

    async def suggest(self, incoming: Incoming, call: Call) -> Response:
        return _json({"error": "Suggestions are disabled on this server."}, 403)

    async def settings(self, request: Request) -> Response:
        has_keys = self._server.calls.asks_for_keys
        targets = [code for model in self._models for code in model.directions.target_languages]
        target = targets[0] if targets else "en"
        name = await asyncio.to_thread(name_of, target)
        return _json(
            {
                "charLimit": -1,
                "frontendTimeout": 500,
                "apiKeys": has_keys,
                "keyRequired": has_keys,
                "suggestions": False,
                "filesTranslation": False,
                "supportedFilesFormat": [],
                "language": {
                    "source": {"code": AUTO, "name": "Auto Detect"},
                    "target": {"code": target, "name": name},
                },
            }
        )

    async def _check_languages(self, source: str, target: str, call: Call) -> None:
        """Refuse languages that no model has, in LibreTranslate's words."""
        source = "" if source == AUTO else source
        for wanted, pair in ((source, (source, "")), (target, ("", target))):
            if not self._is_translated(*pair, call):
                shown = wanted if _CODE.fullmatch(wanted) else "the language"
                raise InvalidArgumentError("", f"{shown} is not supported")
        if not self._is_translated(source, target, call):
            names = await asyncio.to_thread(
                lambda: [f"{name_of(code)} ({code})" for code in (target, source)]
            )
            raise InvalidArgumentError(
                "", f"{names[0]} is not available as a target language from {names[1]}"
            )

    def _is_translated(self, source: str, target: str, call: Call) -> bool:
        try:
            self._models.fitting("", source, target, call.client.may_use)
        except (NotFoundError, InvalidArgumentError):
            return False
        return True

    async def _translate_texts(
        self, texts: Sequence[str], source: str, target: str, options: pb.Options, call: Call
    ) -> list[dict[str, Any]]:
        """Translate texts. Returns the text of each, its alternatives, and what was detected."""
        if not texts:
            return []
        request = pb.TranslateRequest(
            texts=texts, source_language=source, target_language=target, options=options
        )
        response = await self._handlers.translate(request, call)
        return [
            {
                "text": each.text,
                "alternatives": _alternatives(each),
                "detected": _detected(each.detected_language),
            }
            for each in response.translations
        ]


def _items(given: Parameters) -> tuple[bool, list[str]]:
    """Return whether several texts are given, as a list, and the texts."""
    if given.get("q") is None:
        raise InvalidArgumentError("", "Invalid request: missing q parameter")
    is_batch = given.is_json and isinstance(given.get("q"), list)
    return is_batch, given.texts("q") if is_batch else [given.text("q")]


def _required(given: Parameters, name: str) -> str:
    value = given.text(name)
    if not value:
        raise InvalidArgumentError("", f"Invalid request: missing {name} parameter")
    return value


def _alternatives(translation: pb.Translation) -> list[str]:
    """Return other translations of a text: of each segment the next best, then the one after."""
    versions = max((len(s.alternatives) for s in translation.segments), default=0)
    found: dict[str, None] = {}
    for number in range(1, versions):
        text, at = "", 0
        for segment in translation.segments:
            text += translation.text[at : segment.target.start]
            has_one = number < len(segment.alternatives)
            best = translation.text[segment.target.start : segment.target.end]
            text += segment.alternatives[number].text if has_one else best
            at = segment.target.end
        found[text + translation.text[at:]] = None
    found.pop(translation.text, None)
    return list(found)


def _detected(language: pb.DetectedLanguage) -> dict[str, Any]:
    return {"confidence": round(100 * language.confidence, 2), "language": language.language}


def _json(value: Any, status: int = 200) -> Response:
    return Response(to_json(value), status, media_type="application/json")
