"""What the calls about glossaries do; each client has glossaries of its own."""

import asyncio

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service.calls import Call
from dragoman_server.service.errors import InvalidArgumentError, NotFoundError
from dragoman_server.service.glossaries.store import NAME, GlossaryStore, StoredGlossary, now
from dragoman_server.service.models.directions import language_tag
from dragoman_server.service.settings import Limits
from dragoman_server.text.glossaries.terms import EntryError


class GlossaryCalls:
    """The calls about glossaries of one server."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._writing = asyncio.Lock()

    async def create(
        self, request: pb.CreateGlossaryRequest, call: Call, title: str = ""
    ) -> pb.CreateGlossaryResponse:
        """Keep a glossary; ``title`` is what people call one whose name is only an id."""
        asked, store = request.glossary, stored(call)
        if not NAME.fullmatch(asked.name):
            raise InvalidArgumentError(
                "glossary.name",
                "is not letters, digits, points and dashes, at most 64",
            )
        made = await asyncio.to_thread(self._checked, asked, title)
        async with self._writing:
            owner = call.client.name
            if store.find(owner, asked.name):
                raise InvalidArgumentError(
                    "glossary.name", "is taken: delete that glossary first", reason="NAME_TAKEN"
                )
            if len(store.all_of(owner)) >= self._limits.max_glossaries:
                raise InvalidArgumentError(
                    "glossary",
                    f"is one more than {self._limits.max_glossaries}, the limit: delete another",
                    reason="TOO_MANY_GLOSSARIES",
                )
            await asyncio.to_thread(store.add, owner, made)
        return pb.CreateGlossaryResponse(glossary=_described(made))

    async def list_all(
        self, request: pb.ListGlossariesRequest, call: Call
    ) -> pb.ListGlossariesResponse:
        found = stored(call).all_of(call.client.name)
        return pb.ListGlossariesResponse(glossaries=map(_described, found))

    async def get(self, request: pb.GetGlossaryRequest, call: Call) -> pb.GetGlossaryResponse:
        found = find(call, request.name)
        described = _described(found)
        for source, target in found.entries:
            described.entries.add(source=source, target=target)
        return pb.GetGlossaryResponse(glossary=described)

    async def delete(
        self, request: pb.DeleteGlossaryRequest, call: Call
    ) -> pb.DeleteGlossaryResponse:
        async with self._writing:
            find(call, request.name)
            await asyncio.to_thread(stored(call).remove, call.client.name, request.name)
        return pb.DeleteGlossaryResponse()

    def _checked(self, asked: pb.Glossary, title: str) -> StoredGlossary:
        """Return the glossary that a client sent, where it can be used."""
        if not asked.entries:
            raise InvalidArgumentError("glossary.entries", "is empty: there must be at least one")
        if len(asked.entries) > self._limits.max_stored_entries:
            raise InvalidArgumentError(
                "glossary.entries",
                f"has {len(asked.entries)} entries: the limit is {self._limits.max_stored_entries}",
                reason="TOO_LARGE",
            )
        for side in ("source_language", "target_language"):
            if tag := getattr(asked, side):
                language_tag(f"glossary.{side}", tag)
        entries = [
            (" ".join(each.source.split()), " ".join(each.target.split())) for each in asked.entries
        ]
        languages = asked.source_language, asked.target_language
        made = StoredGlossary(asked.name, *languages, entries, now(), title)
        try:
            made.terms()  # now, in a thread, and not with the first request that names it
        except EntryError as error:
            field = f"glossary.entries[{error.number}].source"
            raise InvalidArgumentError(field, str(error)) from None
        return made


def stored(call: Call) -> GlossaryStore:
    """Return the glossaries of the server that a call came to."""
    if call.glossaries is None:
        raise NotFoundError(
            "the server keeps no glossaries: whoever runs it has to start it with --glossaries",
            reason="NO_GLOSSARIES",
        )
    return call.glossaries


def find(call: Call, name: str) -> StoredGlossary:
    """Return the glossary that a client means."""
    found = stored(call).find(call.client.name, name)
    if found is None:
        raise NotFoundError("there is no glossary of this name", reason="UNKNOWN_GLOSSARY")
    return found


def _described(glossary: StoredGlossary) -> pb.Glossary:
    return pb.Glossary(
        name=glossary.name,
        source_language=glossary.source_language,
        target_language=glossary.target_language,
        entry_count=len(glossary.entries),
        created=glossary.created,
    )
