"""Which languages a server translates between, and what people call them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import langcodes

from dragoman_server.service.models.served import ServedModel
from dragoman_server.text.languages import parse

_MAX_NAMES = 4096
"""Most names of languages that are remembered."""


@dataclass(frozen=True)
class SourceLanguage:
    """A language that texts may be in."""

    code: str
    targets: tuple[str, ...]
    """Codes of the languages that it can be translated into."""


def translated_between(models: Iterable[ServedModel]) -> list[SourceLanguage]:
    """Return the languages that models translate from, with those that each is translated into."""
    found: dict[str, dict[str, None]] = {}
    for model in models:
        directions = model.directions
        for source in directions.source_languages:
            code = parse(source).common
            targets = found.setdefault(source, {})
            targets.update(
                {name: None for name in directions.target_languages if parse(name).common != code}
            )
    return [SourceLanguage(code, tuple(targets)) for code, targets in found.items()]


def target_languages(languages: Iterable[SourceLanguage]) -> list[str]:
    """Return the codes of all languages that can be translated into."""
    return list(dict.fromkeys(code for each in languages for code in each.targets))


def preferred_language(header: str) -> str:
    """Return the language that an ``Accept-Language`` header names first; English otherwise."""
    first = header.partition(",")[0].partition(";")[0].strip()
    try:
        code = parse(first).common
    except ValueError:
        return "en"
    # langcodes remembers for ever what it was asked for, and clients may make up any tag.
    return code if len(code) in (2, 3) and code.isascii() and code.isalpha() else "en"


@lru_cache(maxsize=_MAX_NAMES)
def name_of(code: str, reader: str = "en") -> str:
    """Return what a language is called in the language of a reader: ``Portuguese``, of ``pt``."""
    name = langcodes.get(code).display_name(reader)
    return name[:1].upper() + name[1:]
