"""The paths of DeepL's API."""

from typing import Any

from dragoman_server.http_api.openapi.parts import (
    GLOSSARY_NAME,
    SWITCH,
    TEXT,
    TEXTS,
    in_path,
    object_of,
    operation_of,
    posting,
    with_parameters,
)

DEEPL = "DeepL"
"""The tag of these paths."""


def deepl_paths() -> dict[str, Any]:
    tags = {"anyOf": [TEXT, TEXTS]}
    translate = {
        "text": TEXTS,
        "target_lang": {**TEXT, "examples": ["PT-BR"]},
        "source_lang": {**TEXT, "examples": ["EN"]},
        "split_sentences": {"type": "string", "enum": ["0", "1", "nonewlines"]},
        "formality": {"type": "string", "enum": ["default", "prefer_more", "prefer_less"]},
        "tag_handling": {"type": "string", "enum": ["xml", "html"]},
        "outline_detection": SWITCH,
        "splitting_tags": tags,
        "non_splitting_tags": tags,
        "ignore_tags": tags,
        "glossary_id": GLOSSARY_NAME,
        "preserve_formatting": SWITCH,
        "show_billed_characters": SWITCH,
    }
    translation = object_of(
        {
            "detected_source_language": TEXT,
            "text": TEXT,
            "billed_characters": {"type": "integer"},
            "model_type_used": TEXT,
        },
        required=["detected_source_language", "text"],
    )
    translated = object_of({"translations": {"type": "array", "items": translation}})
    language = object_of(
        {"language": TEXT, "name": TEXT, "supports_formality": SWITCH},
        required=["language", "name"],
    )
    kind = {
        "name": "type",
        "in": "query",
        "schema": {"type": "string", "enum": ["source", "target"]},
    }
    usage = object_of(
        {"character_count": {"type": "integer"}, "character_limit": {"type": "integer"}}
    )

    def get(summary: str, answer: Any) -> Any:
        return operation_of(DEEPL, summary, answer, "DeepLError", absent=(401, 404))

    post = posting(DEEPL, "DeepLError", absent=(401,))
    listed = get("List the languages", {"type": "array", "items": language})
    paths = {
        "/v2/translate": post("Translate", translated, translate, ["text", "target_lang"]),
        "/v2/languages": {"get": {**listed, **with_parameters(kind)}},
        "/v2/usage": {"get": get("Characters translated since the server began", usage)},
        **_glossary_paths(),
    }
    for operations in paths.values():
        for operation in operations.values():
            operation["security"] = [{}, {"deepl": []}, {"bearer": []}]
    return paths


def _glossary_paths() -> dict[str, Any]:
    create = {
        "name": TEXT,
        "source_lang": {**TEXT, "examples": ["en"]},
        "target_lang": {**TEXT, "examples": ["pt"]},
        "entries": {**TEXT, "examples": ["red car\tviatura encarnada"]},
        "entries_format": {"type": "string", "enum": ["tsv", "csv"]},
    }
    glossary = object_of(
        {
            "glossary_id": GLOSSARY_NAME,
            "name": TEXT,
            "ready": SWITCH,
            "source_lang": TEXT,
            "target_lang": TEXT,
            "creation_time": {"type": "string", "format": "date-time"},
            "entry_count": {"type": "integer"},
        }
    )
    listed = object_of({"glossaries": {"type": "array", "items": glossary}})
    pair = object_of({"source_lang": TEXT, "target_lang": TEXT})
    pairs = object_of({"supported_languages": {"type": "array", "items": pair}})
    glossary_id = with_parameters(in_path("glossary_id", GLOSSARY_NAME))

    def operation(summary: str, answer: Any) -> Any:
        return operation_of(DEEPL, summary, answer, "DeepLError", absent=(401,))

    created = posting(DEEPL, "DeepLError", absent=(401, 404))(
        "Keep a glossary", glossary, create, list(create)
    )
    created["post"]["responses"]["201"] = created["post"]["responses"].pop("200")
    deleted = operation("Remove a glossary", {})
    del deleted["responses"]["200"]
    deleted["responses"]["204"] = {"description": "It is removed."}
    entries = operation("Return the terms of a glossary with their translations", TEXT)
    entries["responses"]["200"]["content"] = {"text/tab-separated-values": {"schema": TEXT}}
    return {
        "/v2/glossaries": {**created, "get": operation("List the glossaries", listed)},
        "/v2/glossaries/{glossary_id}": {
            "get": {**operation("Describe a glossary", glossary), **glossary_id},
            "delete": {**deleted, **glossary_id},
        },
        "/v2/glossaries/{glossary_id}/entries": {"get": {**entries, **glossary_id}},
        "/v2/glossary-language-pairs": {
            "get": operation("List the languages that glossaries can be for", pairs)
        },
    }
