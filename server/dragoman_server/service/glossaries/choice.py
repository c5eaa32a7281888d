"""The glossary of a request: its own entries, those of one that is kept, or both."""

from functools import lru_cache

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service import requests
from dragoman_server.service.calls import Call
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.service.glossaries.calls import find
from dragoman_server.service.glossaries.store import StoredGlossary
from dragoman_server.service.models.served import ServedModel
from dragoman_server.text.glossaries.terms import Entry, EntryError, Glossary
from dragoman_server.text.languages import parse

_MADE = 16
"""Most glossaries of requests that are kept ready for the next request."""


def glossary_for(
    options: pb.Options, max_entries: int, model: ServedModel, call: Call
) -> Glossary | None:
    """Return the glossary of a request; None where it has none."""
    own = requests.glossary_entries(options, max_entries)
    kept = find(call, options.glossary_name) if options.glossary_name else None
    if kept is not None:
        _check_languages(kept, model)
    case_sensitive, plurals = options.glossary_case_sensitive, options.glossary_plurals
    if kept is not None and not own:
        return kept.terms(case_sensitive=case_sensitive, plurals=plurals)
    if not own:
        return None
    folded = str if case_sensitive else str.casefold
    named = {folded(source) for source, _ in own}
    others = [entry for entry in (kept.entries if kept else ()) if folded(entry[0]) not in named]
    try:
        return _made(own, tuple(others), case_sensitive, plurals)
    except EntryError as error:
        field = f"options.glossary[{error.number}].source"
        raise InvalidArgumentError(field, str(error)) from None


@lru_cache(maxsize=_MADE)
def _made(
    own: tuple[tuple[str, str], ...],
    others: tuple[tuple[str, str], ...],
    case_sensitive: bool,
    plurals: bool,
) -> Glossary:
    """Return a glossary; the items of a bulk stream mostly have the same one."""
    entries = [Entry(*pair, number) for number, pair in enumerate(own)]
    entries += [Entry(*pair) for pair in others]
    return Glossary(entries, case_sensitive=case_sensitive, plurals=plurals)


def _check_languages(glossary: StoredGlossary, model: ServedModel) -> None:
    """Refuse a glossary that is for other languages than those of a request."""
    for tag, code in (
        (glossary.source_language, model.planner.language),
        (glossary.target_language, model.target_language),
    ):
        if tag and code and parse(tag).common != code:
            raise InvalidArgumentError("options.glossary_name", "is for other languages")
