"""Glossaries as DeepL's clients know them: the server's own, under ids.

Those that are created here have an id for a name, and what the client calls them beside it. Those
that were created otherwise have their name for an id, and are seen if they have both languages.
"""

import asyncio
import csv
import io
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.http_api.calls import HttpCalls, Incoming
from dragoman_server.http_api.json_messages import to_json
from dragoman_server.http_api.parameters import Parameters, parameters_of
from dragoman_server.service.calls import Call
from dragoman_server.service.errors import InvalidArgumentError, NotFoundError
from dragoman_server.service.glossaries import calls as glossaries
from dragoman_server.service.glossaries.store import StoredGlossary
from dragoman_server.service.models.languages import translated_between
from dragoman_server.service.server import Server
from dragoman_server.text.languages import parse

_TSV = "text/tab-separated-values"
_MAX_NAME_LETTERS = 1024
"""Most letters of what a client calls a glossary, as DeepL has it."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CSV_COLUMNS = (2, 4)
"""Columns of a row of CSV: a term and its translation, or these and their languages."""


class DeepLGlossaries:
    """The endpoints about glossaries."""

    def __init__(self, server: Server) -> None:
        self._glossaries = server.handlers.glossaries
        self._models = server.models

    def calls(self, calls: HttpCalls) -> list[Route]:
        one = "/v2/glossaries/{glossary_id}"
        return [
            calls.post("/v2/glossaries", self.create),
            calls.get("/v2/glossaries", self.list_all),
            calls.get(one, self.get),
            calls.delete(one, self.delete),
            calls.get(f"{one}/entries", self.entries),
            calls.get("/v2/glossary-language-pairs", self.language_pairs),
        ]

    async def create(self, incoming: Incoming, call: Call) -> Response:
        given = await parameters_of(incoming)
        title = given.text("name").strip()
        if not title or len(title) > _MAX_NAME_LETTERS:
            raise InvalidArgumentError("name", f"must have 1 to {_MAX_NAME_LETTERS} letters")
        source, target = (self._language(given, side) for side in ("source_lang", "target_lang"))
        try:
            self._models.fitting("", source, target, call.client.may_use)
        except (NotFoundError, InvalidArgumentError):
            raise InvalidArgumentError("", "Unsupported glossary source and target pair.") from None
        entries = await asyncio.to_thread(lambda: list(_entries(given)))
        made = pb.Glossary(name=str(uuid.uuid4()), source_language=source, target_language=target)
        for term, translation in entries:
            made.entries.add(source=term, target=translation)
        try:
            await self._glossaries.create(pb.CreateGlossaryRequest(glossary=made), call, title)
        except InvalidArgumentError as error:
            field = error.field.removeprefix("glossary.")
            raise InvalidArgumentError(field, error.problem, reason=error.reason) from None
        return _json(_described(find(call, made.name)), 201)

    async def list_all(self, incoming: Incoming, call: Call) -> Response:
        every = glossaries.stored(call).all_of(call.client.name)
        return _json({"glossaries": [_described(each) for each in every if _has_languages(each)]})

    async def get(self, incoming: Incoming, call: Call) -> Response:
        return _json(_described(_asked(incoming, call)))

    async def delete(self, incoming: Incoming, call: Call) -> Response:
        name = _asked(incoming, call).name
        await self._glossaries.delete(pb.DeleteGlossaryRequest(name=name), call)
        return Response(status_code=204)

    async def entries(self, incoming: Incoming, call: Call) -> Response:
        found = _asked(incoming, call).entries
        # A term that stays as it is has no translation here, and DeepL's have to have one.
        lines = [f"{term}\t{translation or term}" for term, translation in found]
        return Response("\n".join(lines), media_type=_TSV)

    async def language_pairs(self, incoming: Incoming, call: Call) -> Response:
        mine = [model for model in self._models if call.client.may_use(model.name)]
        pairs = dict.fromkeys(
            (parse(each.code).common, parse(target).common)
            for each in translated_between(mine)
            for target in each.targets
        )
        values = [{"source_lang": source, "target_lang": target} for source, target in pairs]
        return _json({"supported_languages": values})

    def _language(self, given: Parameters, name: str) -> str:
        """Return the code of a language, without a region: glossaries are for all of them."""
        try:
            code = parse(given.text(name)).common
        except ValueError:
            code = ""
        if not code:
            raise InvalidArgumentError("", f"Value for '{name}' not supported.")
        return code


def find(call: Call, glossary_id: str) -> StoredGlossary:
    """Return the glossary that a client means. Raises ``NotFoundError`` where there is none."""
    found = glossaries.find(call, glossary_id)
    if not _has_languages(found):
        raise NotFoundError("there is no glossary of this id", reason="UNKNOWN_GLOSSARY")
    return found


def _asked(incoming: Incoming, call: Call) -> StoredGlossary:
    return find(call, incoming.request.path_params["glossary_id"])


def _has_languages(glossary: StoredGlossary) -> bool:
    return bool(glossary.source_language and glossary.target_language)


def _described(glossary: StoredGlossary) -> dict[str, Any]:
    created = datetime.fromtimestamp(glossary.created, UTC)
    return {
        "glossary_id": glossary.name,
        "name": glossary.title or glossary.name,
        "ready": True,
        "source_lang": parse(glossary.source_language).common,
        "target_lang": parse(glossary.target_language).common,
        "creation_time": f"{created:%Y-%m-%dT%H:%M:%S.%f}Z",
        "entry_count": len(glossary.entries),
    }


def _entries(given: Parameters) -> Iterator[tuple[str, str]]:
    """Yield the terms of a request with their translations."""
    form = given.text("entries_format")
    if form not in ("tsv", "csv"):
        raise InvalidArgumentError("entries_format", "must be tsv or csv")
    rows = _tsv_rows if form == "tsv" else _csv_rows
    for number, row in rows(given.text("entries")):
        fields = [each.strip() for each in row[:2]]
        if len(row) not in (_CSV_COLUMNS if form == "csv" else (2,)) or not all(fields):
            separator = "a comma" if form == "csv" else "a tab"
            raise InvalidArgumentError(
                "entries", f"must have a term, {separator} and a translation in line {number}"
            )
        if any(map(_CONTROL.search, fields)):
            raise InvalidArgumentError("entries", f"has a control character in line {number}")
        term, translation = fields
        yield term, translation


def _tsv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r").split("\t")


def _csv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error:
        raise InvalidArgumentError(
            "entries", f"is not CSV from line {reader.line_num} on"
        ) from None


def _json(value: Any, status: int = 200) -> Response:
    return Response(to_json(value), status, media_type="application/json")
