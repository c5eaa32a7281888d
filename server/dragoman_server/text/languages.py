"""Language tags as clients write them: ``pt``, ``por`` and ``pt-BR`` are all understood.

Only the language itself is looked up. langcodes remembers for ever what it was asked for, and
clients can make up any number of scripts, regions and variants.
"""

from dataclasses import dataclass
from functools import lru_cache

import langcodes
from langcodes.tag_parser import parse_tag  # does not remember

_MAX_LETTERS = 64
"""Most letters of a language tag."""


@dataclass(frozen=True)
class Tag:
    """A tag, or nothing said where all are empty. Variants make no difference to us."""

    language: str = ""
    script: str = ""
    territory: str = ""
    wider: str = ""
    """The language that this one is mostly meant by: ``zh``, of ``cmn``."""


@lru_cache(maxsize=1024)  # clients choose the tags
def parse(tag: str) -> Tag:
    """Return the parts of a language tag. Raises ``ValueError`` for what is none."""
    if not tag:
        return Tag()
    if len(tag) > _MAX_LETTERS:
        raise ValueError("not a language tag")
    parts: dict[str, str] = dict(parse_tag(tag))  # type: ignore[no-untyped-call]
    language, script = parts.get("language", tag.lower()), parts.get("script", "")
    wider = ""
    if len(language) <= 3 and language.isalpha():
        standard = langcodes.get(language)
        language, script = standard.language or "und", script or standard.script or ""
        wider = standard.prefer_macrolanguage().language or ""
    return Tag(language, script, parts.get("territory", ""), wider if wider != language else "")


def likeness(wanted: Tag, offered: Tag) -> int:
    """Return how well a model's language suits a wanted one: 0 for not at all, more is better.

    A model of Portuguese serves who wants Brazilian, and the other way round; one of Mandarin
    serves who wants Chinese. One script does not stand for another.
    """
    if wanted.script and offered.script and wanted.script != offered.script:
        return 0
    if wanted.language != offered.language:
        pairs = ((wanted.language, offered.wider), (offered.language, wanted.wider))
        return int(any(language and language == wider for language, wider in pairs))
    return 2 + (wanted.script == offered.script) + (wanted.territory == offered.territory)
