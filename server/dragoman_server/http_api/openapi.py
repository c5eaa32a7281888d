"""The description of all APIs in OpenAPI 3.1: paths are written here, messages are the wire's."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from dragoman_server.http_api.errors import STATUSES
from dragoman_server.http_api.openapi_schemas import message_schemas

_OURS, _LIBRE, _DEEPL, _LIFE = "Dragoman", "LibreTranslate", "DeepL", "Health and metrics"
_TAGS = {
    _OURS: "The calls of the wire, as JSON. Requests may spell fields in lowerCamelCase too.",
    _LIBRE: "LibreTranslate's API, for its clients.",
    _DEEPL: "DeepL's API, version 2, for its clients.",
    _LIFE: "For whoever runs the server.",
}
_REASONS = {
    400: "The request is wrong; the error says in which field.",
    401: "A key is asked for, and there is none, or it is not known.",
    403: "The key may not do this.",
    404: "There is no such model, or none for these languages.",
    408: "The body did not come in time.",
    413: "The body is too long.",
    415: "The body has another content type, or is compressed.",
    429: "Too much waits already. Retry-After says when to come back.",
    499: "The client has closed the connection.",
    500: "The server failed. Its log says more under the request's id.",
    503: "The server is starting or stopping. Retry-After says when to come back.",
    504: "The deadline has passed, or can't be met.",
}
_OF_BODIES = (408, 413, 415)
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_SWITCH = {"type": "boolean"}
_DETECTED = {
    "type": "object",
    "properties": {"confidence": {"type": "number"}, "language": _TEXT},
    "required": ["confidence", "language"],
}


def openapi() -> dict[str, Any]:
    """Return the description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dragoman",
            "version": version("dragoman"),
            "description": "Translation of texts. docs/http.md has examples.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "security": [{}, {"bearer": []}],
        "paths": {**_our_paths(), **_libretranslate_paths(), **_deepl_paths(), **_life_paths()},
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "deepl": {"type": "apiKey", "in": "header", "name": "Authorization"},
            },
        },
    }


def _schemas() -> dict[str, Any]:
    requests = {"TranslateRequest", "TranslateStreamRequest", "DetectRequest", "ScoreRequest"}
    error = {
        "type": "object",
        "properties": {
            "code": {"type": "string", "enum": [code.name for code in STATUSES]},
            "reason": {"type": "string", "description": "A stable name of what is wrong."},
            "message": {"type": "string", "description": "What is wrong, for people."},
            "request_id": {"type": "string", "description": "The id in the server's log."},
            "field": {"type": "string", "description": "The field that is wrong."},
            "retry_after": {
                "type": "number",
                "description": "Seconds to wait before trying again.",
            },
        },
        "required": ["code", "reason", "message", "request_id"],
        "additionalProperties": False,
    }
    language = {
        "type": "object",
        "properties": {"code": _TEXT, "name": _TEXT, "targets": _TEXTS},
        "required": ["code", "name", "targets"],
        "additionalProperties": False,
    }
    return {
        **message_schemas(requests=requests),
        "Error": _object({"error": error}),
        "Language": language,
        "LibreTranslateError": _object({"error": _TEXT}),
        "DeepLError": _object({"message": _TEXT}),
    }


def _our_paths() -> dict[str, Any]:
    name = {"name": "name", "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}}
    languages = _object({"languages": {"type": "array", "items": _ref("Language")}})
    example = {"texts": ["Hello world."], "source_language": "en", "target_language": "pt"}
    event = {"type": "string", "enum": ["message", "error"]}
    events = {
        "description": "Events: deltas, then the whole translation; an error has the event error.",
        "content": {"text/event-stream": {"schema": _object({"event": event, "data": _TEXT})}},
    }

    def operation(
        summary: str, answer: Any, body: str = "", example: Any = None, more: Any = None
    ) -> Any:
        found = _operation(_OURS, summary, answer, "Error", has_body=bool(body))
        if body:
            content = {"schema": _ref(body), **({"example": example} if example else {})}
            found["requestBody"] = {"required": True, "content": {"application/json": content}}
        return {**found, **(more or {})}

    stream = operation(
        "Translate a text, and send it as it grows",
        _TEXT,
        "TranslateStreamRequest",
        {"text": "Hello world.", "source_language": "en", "target_language": "pt"},
    )
    stream["responses"]["200"] = events
    return {
        "/v1/translate": {
            "post": operation(
                "Translate texts", _ref("TranslateResponse"), "TranslateRequest", example
            )
        },
        "/v1/stream": {"post": stream},
        "/v1/detect": {
            "post": operation(
                "Tell which languages texts are in",
                _ref("DetectResponse"),
                "DetectRequest",
                {"texts": ["Hello world."]},
            )
        },
        "/v1/score": {
            "post": operation(
                "Tell how probable given translations are",
                _ref("ScoreResponse"),
                "ScoreRequest",
                {"pairs": [{"source": "Hello world.", "target": "Olá mundo."}]},
            )
        },
        "/v1/models": {"get": operation("List the models", _ref("ListModelsResponse"))},
        "/v1/models/{name}": {
            "get": operation("Describe a model", _ref("GetModelResponse"), more=_with(name))
        },
        "/v1/languages": {"get": operation("List the languages", languages)},
    }


def _libretranslate_paths() -> dict[str, Any]:
    one_or_many = {"anyOf": [_TEXT, _TEXTS]}
    translate = {
        "q": one_or_many,
        "source": {**_TEXT, "examples": ["en", "auto"]},
        "target": {**_TEXT, "examples": ["pt"]},
        "format": {"type": "string", "enum": ["text", "html"]},
        "alternatives": {"type": "integer", "minimum": 0, "maximum": 7},
        "api_key": _TEXT,
    }
    translated = _object(
        {
            "translatedText": one_or_many,
            "detectedLanguage": {"anyOf": [_DETECTED, {"type": "array", "items": _DETECTED}]},
            "alternatives": {"anyOf": [_TEXTS, {"type": "array", "items": _TEXTS}]},
        },
        required=["translatedText"],
    )
    detected = {"type": "array", "items": _DETECTED}
    listed = {"type": "array", "items": _ref("Language")}
    post = _posting(_LIBRE, "LibreTranslateError", absent=(401, 404))
    get = _operation(_LIBRE, "List the languages", listed, "LibreTranslateError", absent=(401, 404))
    return {
        "/translate": post("Translate", translated, translate, ["q", "source", "target"]),
        "/detect": post("Detect a language", detected, {"q": _TEXT, "api_key": _TEXT}, ["q"]),
        "/languages": {"get": get},
        "/frontend/settings": {
            "get": _operation(_LIBRE, "What pages need to know", {"type": "object"})
        },
    }


def _deepl_paths() -> dict[str, Any]:
    translate = {
        "text": _TEXTS,
        "target_lang": {**_TEXT, "examples": ["PT-BR"]},
        "source_lang": {**_TEXT, "examples": ["EN"]},
        "split_sentences": {"type": "string", "enum": ["0", "1"]},
        "formality": {"type": "string", "enum": ["default", "prefer_more", "prefer_less"]},
        "preserve_formatting": _SWITCH,
        "show_billed_characters": _SWITCH,
    }
    translation = _object(
        {
            "detected_source_language": _TEXT,
            "text": _TEXT,
            "billed_characters": {"type": "integer"},
            "model_type_used": _TEXT,
        },
        required=["detected_source_language", "text"],
    )
    translated = _object({"translations": {"type": "array", "items": translation}})
    language = _object(
        {"language": _TEXT, "name": _TEXT, "supports_formality": _SWITCH},
        required=["language", "name"],
    )
    kind = {
        "name": "type",
        "in": "query",
        "schema": {"type": "string", "enum": ["source", "target"]},
    }
    usage = _object(
        {"character_count": {"type": "integer"}, "character_limit": {"type": "integer"}}
    )

    def get(summary: str, answer: Any) -> Any:
        return _operation(_DEEPL, summary, answer, "DeepLError", absent=(401, 404))

    post = _posting(_DEEPL, "DeepLError", absent=(401, 404))
    listed = get("List the languages", {"type": "array", "items": language})
    paths = {
        "/v2/translate": post("Translate", translated, translate, ["text", "target_lang"]),
        "/v2/languages": {"get": {**listed, **_with(kind)}},
        "/v2/usage": {"get": get("Characters translated since the server began", usage)},
    }
    for operations in paths.values():
        for operation in operations.values():
            operation["security"] = [{}, {"deepl": []}, {"bearer": []}]
    return paths


def _life_paths() -> dict[str, Any]:
    status = _object({"status": _TEXT})

    def asked(summary: str, code: int | None) -> Any:
        found = _operation(_LIFE, summary, status)
        if code:
            found["responses"][str(code)] = _answer("It does not.", status)
        return {"get": found}

    metrics = _operation(_LIFE, "Metrics for Prometheus", _TEXT, "Error", only=(401,))
    metrics["responses"]["200"]["content"] = {"text/plain": {"schema": _TEXT}}
    return {
        "/health": asked("Whether requests are taken, as LibreTranslate says it", 503),
        "/health/live": asked("Whether the process lives", None),
        "/health/ready": asked("Whether requests are taken", 503),
        "/metrics": {"get": metrics},
    }


def _operation(
    tag: str,
    summary: str,
    answer: Any,
    error: str = "",
    *,
    has_body: bool = False,
    absent: tuple[int, ...] = (),
    only: tuple[int, ...] = (),
) -> dict[str, Any]:
    """Return an operation. It has not the errors that are ``absent``, or ``only`` these."""
    responses = {"200": _answer("The answer.", answer)}
    for status, reason in _REASONS.items() if error else ():
        is_there = status in only if only else has_body or status not in _OF_BODIES
        if is_there and status not in absent:
            responses[str(status)] = _answer(reason, _ref(error))
    return {"tags": [tag], "summary": summary, "responses": responses}


def _posting(tag: str, error: str, absent: tuple[int, ...]) -> Any:
    def post(summary: str, answer: Any, fields: Mapping[str, Any], required: list[str]) -> Any:
        schema = _object(dict(fields), required=required)
        content = {
            kind: {"schema": schema}
            for kind in ("application/json", "application/x-www-form-urlencoded")
        }
        found = _operation(tag, summary, answer, error, has_body=True, absent=absent)
        return {"post": {**found, "requestBody": {"required": True, "content": content}}}

    return post


def _answer(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _object(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def _with(parameter: dict[str, Any]) -> dict[str, Any]:
    return {"parameters": [parameter]}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
