"""Parts that descriptions of paths are made of: operations, their errors, and schemas."""

from collections.abc import Mapping
from typing import Any

_REASONS = {
    400: "The request is wrong; the error says in which field.",
    401: "A key is asked for, and there is none, or it is not known.",
    403: "The key may not do this.",
    404: "There is no such model or glossary, or no model for these languages.",
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
TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
SWITCH = {"type": "boolean"}
GLOSSARY_NAME = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"}


def operation_of(
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
    responses = {"200": answer_of("The answer.", answer)}
    for status, reason in _REASONS.items() if error else ():
        is_there = status in only if only else has_body or status not in _OF_BODIES
        if is_there and status not in absent:
            responses[str(status)] = answer_of(reason, ref(error))
    return {"tags": [tag], "summary": summary, "responses": responses}


def posting(tag: str, error: str, absent: tuple[int, ...]) -> Any:
    def post(summary: str, answer: Any, fields: Mapping[str, Any], required: list[str]) -> Any:
        schema = object_of(dict(fields), required=required)
        content = {
            kind: {"schema": schema}
            for kind in ("application/json", "application/x-www-form-urlencoded")
        }
        found = operation_of(tag, summary, answer, error, has_body=True, absent=absent)
        return {"post": {**found, "requestBody": {"required": True, "content": content}}}

    return post


def answer_of(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def object_of(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def in_path(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def with_parameters(*parameters: dict[str, Any]) -> dict[str, Any]:
    return {"parameters": list(parameters)}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
