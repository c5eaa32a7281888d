"""The endpoints of DeepL's API, and how it tells of errors."""

import asyncio
from collections import Counter
from typing import Any

from grpc import StatusCode
from starlette.responses import Response
from starlette.routing import Route

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.http_api.bodies import Bodies
from dragoman_server.http_api.calls import Handle, HttpCalls, Incoming
from dragoman_server.http_api.deepl.glossaries import DeepLGlossaries, find
from dragoman_server.http_api.deepl.options import named_as_theirs, options_of, prepared
from dragoman_server.http_api.errors import headers_of, status_of
from dragoman_server.http_api.json_messages import to_json
from dragoman_server.http_api.parameters import parameters_of
from dragoman_server.service.auth import key_in
from dragoman_server.service.calls import Call
from dragoman_server.service.detection import AUTO
from dragoman_server.service.errors import CallError, InvalidArgumentError, NotFoundError
from dragoman_server.service.models.languages import name_of, target_languages, translated_between
from dragoman_server.service.server import Server
from dragoman_server.text.languages import parse

_SCHEME = "DeepL-Auth-Key"
_UNLIMITED = 1_000_000_000_000
"""Characters that DeepL says an account without a limit may translate."""
_REGIONS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-BR", "PT-PT")}
"""Targets that DeepL's clients ask for in place of the language alone."""
_NOT_YET = {
    "/v2/document": "documents",
    "/v2/document/{rest:path}": "documents",
}
"""What there is not yet, by path."""


class DeepL:
    """The endpoints of the API, and how it tells of errors."""

    def __init__(self, server: Server, bodies: Bodies) -> None:
        self._handlers = server.handlers
        self._models = server.models
        self._calls = HttpCalls(server.calls, bodies, self)
        self._glossaries = DeepLGlossaries(server)
        self._characters: Counter[str] = Counter()
        """Characters that were translated for each client, by its name."""

    def calls(self) -> list[Route]:
        calls = self._calls
        return [
            calls.post("/v2/translate", self.translate),
            calls.get("/v2/languages", self.languages),
            calls.get("/v2/usage", self.usage),
            *self._glossaries.calls(calls),
            *(calls.any(path, _refusal(what)) for path, what in _NOT_YET.items()),
        ]

    async def key(self, incoming: Incoming) -> str:
        header = incoming.request.headers.get("authorization", "")
        return key_in(header, _SCHEME) or key_in(header)

    def error(self, error: CallError, request_id: str) -> Response:
        status = status_of(error)
        if error.code is StatusCode.UNAUTHENTICATED:
            status = 403
        elif error.code is StatusCode.NOT_FOUND and error.reason != "UNKNOWN_GLOSSARY":
            status = 400  # a language; DeepL has 404 for glossaries and documents
        return Response(
            to_json({"message": error.message}), status, headers_of(error), "application/json"
        )

    async def translate(self, incoming: Incoming, call: Call) -> Response:
        self._handlers.check_admission(call)
        given = await parameters_of(incoming)
        options = options_of(given)
        texts = given.texts("text")
        if not texts:
            raise InvalidArgumentError("text", "is missing: there must be at least one")
        source, target = given.text("source_lang").lower(), given.text("target_lang").lower()
        if not target:
            raise InvalidArgumentError("target_lang", "is missing")
        self._check_language("source_lang", (source, ""), call)
        self._check_language("target_lang", ("", target), call)
        if glossary_id := given.text("glossary_id"):
            if not source:
                raise InvalidArgumentError("glossary_id", "needs source_lang")
            options.glossary_name = find(call, glossary_id).name
        # There is nothing to detect where there is one language only; most clients do not say it.
        sources = self._sources(call)
        known = source or (sources[0] if len(sources) == 1 else "")
        ready = await prepared(texts, given, options)
        request = pb.TranslateRequest(
            texts=ready.texts,
            source_language=known or AUTO,
            target_language=target,
            options=ready.options,
        )
        try:
            response = await self._handlers.translate(request, call)
        except InvalidArgumentError as error:
            raise named_as_theirs(error) from None
        self._characters[call.client.name] += sum(map(len, texts))
        translations: list[dict[str, Any]] = []
        for text, translation in zip(texts, response.translations, strict=True):
            language = known or translation.detected_language.language
            answer: dict[str, Any] = {
                "detected_source_language": parse(language).common.upper(),
                "text": ready.restored(translation.text),
            }
            if given.switch("show_billed_characters"):
                answer["billed_characters"] = len(text)
            if given.choice("model_type"):
                answer["model_type_used"] = "quality_optimized"
            translations.append(answer)
        return _json({"translations": translations})

    async def languages(self, incoming: Incoming, call: Call) -> Response:
        kind = (await parameters_of(incoming)).text("type", "source")
        if kind not in ("source", "target"):
            raise InvalidArgumentError("type", "must be source or target")
        more = {"supports_formality": False} if kind == "target" else {}

        def values() -> list[dict[str, Any]]:
            if kind == "source":
                codes = [code.upper() for code in self._sources(call)]
            else:
                mine = [model for model in self._models if call.client.may_use(model.name)]
                targets = target_languages(translated_between(mine))
                codes = [code for each in targets for code in _regional(each)]
            return [{"language": code, "name": name_of(code), **more} for code in codes]

        return _json(await asyncio.to_thread(values))

    async def usage(self, incoming: Incoming, call: Call) -> Response:
        count = self._characters[call.client.name]
        return _json({"character_count": count, "character_limit": _UNLIMITED})

    def _sources(self, call: Call) -> list[str]:
        """Return the codes of the languages that a client may translate from."""
        mine = [model for model in self._models if call.client.may_use(model.name)]
        names = [name for model in mine for name in model.directions.source_languages]
        return list(dict.fromkeys(parse(name).common for name in names))

    def _check_language(self, name: str, pair: tuple[str, str], call: Call) -> None:
        try:
            self._models.fitting("", *pair, call.client.may_use)
        except (NotFoundError, InvalidArgumentError):
            raise InvalidArgumentError("", f"Value for '{name}' not supported.") from None


def _refusal(what: str) -> Handle:
    async def refuse(incoming: Incoming, call: Call) -> Response:
        raise InvalidArgumentError("", f"{what} are not supported by this server yet")

    return refuse


def _regional(code: str) -> tuple[str, ...]:
    """Return the codes of a target as clients ask for it."""
    tag = parse(code)
    return _REGIONS.get(tag.common, (code.upper(),)) if not tag.territory else (code.upper(),)


def _json(value: Any) -> Response:
    return Response(to_json(value), media_type="application/json")
