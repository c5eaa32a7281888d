"""The description of all APIs in OpenAPI 3.1: paths are written here, messages are the wire's."""

from importlib.metadata import version
from typing import Any

from dragoman_server.http_api.errors import STATUSES
from dragoman_server.http_api.openapi.deepl_paths import DEEPL, deepl_paths
from dragoman_server.http_api.openapi.parts import (
    GLOSSARY_NAME,
    TEXT,
    TEXTS,
    answer_of,
    in_path,
    object_of,
    operation_of,
    posting,
    ref,
    with_parameters,
)
from dragoman_server.http_api.openapi.schemas import message_schemas

_OURS, _LIBRE, _LIFE = "Dragoman", "LibreTranslate", "Health and metrics"
_TAGS = {
    _OURS: "The calls of the wire, as JSON. Requests may spell fields in lowerCamelCase too.",
    _LIBRE: "LibreTranslate's API, for its clients.",
    DEEPL: "DeepL's API, version 2, for its clients.",
    _LIFE: "For whoever runs the server.",
}
_DETECTED = {
    "type": "object",
    "properties": {"confidence": {"type": "number"}, "language": TEXT},
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
        "paths": {**_our_paths(), **_libretranslate_paths(), **deepl_paths(), **_life_paths()},
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "deepl": {"type": "apiKey", "in": "header", "name": "Authorization"},
            },
        },
    }


def _schemas() -> dict[str, Any]:
    requests = {
        *("TranslateRequest", "TranslateStreamRequest", "DetectRequest", "ScoreRequest"),
        "CreateGlossaryRequest",
    }
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
        "properties": {"code": TEXT, "name": TEXT, "targets": TEXTS},
        "required": ["code", "name", "targets"],
        "additionalProperties": False,
    }
    return {
        **message_schemas(requests=requests),
        "Error": object_of({"error": error}),
        "Language": language,
        "LibreTranslateError": object_of({"error": TEXT}),
        "DeepLError": object_of({"message": TEXT}),
    }


def _our_paths() -> dict[str, Any]:
    name = with_parameters(in_path("name", {**TEXT, "minLength": 1}))
    glossary_name = with_parameters(in_path("name", GLOSSARY_NAME))
    glossary = {
        "name": "cars",
        "source_language": "en",
        "target_language": "pt",
        "entries": [{"source": "red car", "target": "viatura encarnada"}],
    }
    languages = object_of({"languages": {"type": "array", "items": ref("Language")}})
    example = {"texts": ["Hello world."], "source_language": "en", "target_language": "pt"}
    event = {"type": "string", "enum": ["message", "error"]}
    events = {
        "description": "Events: deltas, then the whole translation; an error has the event error.",
        "content": {"text/event-stream": {"schema": object_of({"event": event, "data": TEXT})}},
    }

    def operation(
        summary: str, answer: Any, body: str = "", example: Any = None, more: Any = None
    ) -> Any:
        found = operation_of(_OURS, summary, answer, "Error", has_body=bool(body))
        if body:
            content = {"schema": ref(body), **({"example": example} if example else {})}
            found["requestBody"] = {"required": True, "content": {"application/json": content}}
        return {**found, **(more or {})}

    stream = operation(
        "Translate a text, and send it as it grows",
        TEXT,
        "TranslateStreamRequest",
        {"text": "Hello world.", "source_language": "en", "target_language": "pt"},
    )
    stream["responses"]["200"] = events
    return {
        "/v1/translate": {
            "post": operation(
                "Translate texts", ref("TranslateResponse"), "TranslateRequest", example
            )
        },
        "/v1/stream": {"post": stream},
        "/v1/detect": {
            "post": operation(
                "Tell which languages texts are in",
                ref("DetectResponse"),
                "DetectRequest",
                {"texts": ["Hello world."]},
            )
        },
        "/v1/score": {
            "post": operation(
                "Tell how probable given translations are",
                ref("ScoreResponse"),
                "ScoreRequest",
                {"pairs": [{"source": "Hello world.", "target": "Olá mundo."}]},
            )
        },
        "/v1/models": {"get": operation("List the models", ref("ListModelsResponse"))},
        "/v1/models/{name}": {
            "get": operation("Describe a model", ref("GetModelResponse"), more=name)
        },
        "/v1/languages": {"get": operation("List the languages", languages)},
        "/v1/glossaries": {
            "post": operation(
                "Keep a glossary",
                ref("CreateGlossaryResponse"),
                "CreateGlossaryRequest",
                {"glossary": glossary},
            ),
            "get": operation("List the glossaries", ref("ListGlossariesResponse")),
        },
        "/v1/glossaries/{name}": {
            "get": operation(
                "Show a glossary with its terms", ref("GetGlossaryResponse"), more=glossary_name
            ),
            "delete": operation(
                "Remove a glossary", ref("DeleteGlossaryResponse"), more=glossary_name
            ),
        },
    }


def _libretranslate_paths() -> dict[str, Any]:
    one_or_many = {"anyOf": [TEXT, TEXTS]}
    translate = {
        "q": one_or_many,
        "source": {**TEXT, "examples": ["en", "auto"]},
        "target": {**TEXT, "examples": ["pt"]},
        "format": {"type": "string", "enum": ["text", "html"]},
        "alternatives": {"type": "integer", "minimum": 0, "maximum": 7},
        "api_key": TEXT,
    }
    translated = object_of(
        {
            "translatedText": one_or_many,
            "detectedLanguage": {"anyOf": [_DETECTED, {"type": "array", "items": _DETECTED}]},
            "alternatives": {"anyOf": [TEXTS, {"type": "array", "items": TEXTS}]},
        },
        required=["translatedText"],
    )
    detected = {"type": "array", "items": _DETECTED}
    listed = {"type": "array", "items": ref("Language")}
    post = posting(_LIBRE, "LibreTranslateError", absent=(401, 404))
    get = operation_of(
        _LIBRE, "List the languages", listed, "LibreTranslateError", absent=(401, 404)
    )
    return {
        "/translate": post("Translate", translated, translate, ["q", "source", "target"]),
        "/detect": post("Detect a language", detected, {"q": TEXT, "api_key": TEXT}, ["q"]),
        "/languages": {"get": get},
        "/frontend/settings": {
            "get": operation_of(_LIBRE, "What pages need to know", {"type": "object"})
        },
    }


def _life_paths() -> dict[str, Any]:
    status = object_of({"status": TEXT})

    def asked(summary: str, code: int | None) -> Any:
        found = operation_of(_LIFE, summary, status)
        if code:
            found["responses"][str(code)] = answer_of("It does not.", status)
        return {"get": found}

    metrics = operation_of(_LIFE, "Metrics for Prometheus", TEXT, "Error", only=(401,))
    metrics["responses"]["200"]["content"] = {"text/plain": {"schema": TEXT}}
    return {
        "/health": asked("Whether requests are taken, as LibreTranslate says it", 503),
        "/health/live": asked("Whether the process lives", None),
        "/health/ready": asked("Whether requests are taken", 503),
        "/metrics": {"get": metrics},
    }
