"""Language tags as clients and models write them: ``pt``, ``por``, ``pt-BR`` and ``pob``.

Only the language itself is looked up in langcodes, which remembers for ever what it was asked for;
clients can make up any number of scripts, regions and variants. What script a region writes is
read from a table of CLDR that langcodes brings along.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import langcodes
from langcodes.data_dicts import LIKELY_SUBTAGS
from langcodes.tag_parser import parse_tag  # does not remember

from dragoman_server.text.language_aliases import CODES, WIDER

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

    @property
    def common(self) -> str:
        """The code that the language is best known by: ``zh``, of ``cmn``."""
        return self.wider or self.language

    @cached_property
    def likely_script(self) -> str:
        """The script, or else the one that the language is written in there: Hant in ``zh-TW``."""
        if self.script:
            return self.script
        known = (f"{self.common}-{self.territory}", self.common)
        likely = next((LIKELY_SUBTAGS[tag] for tag in known if tag in LIKELY_SUBTAGS), "")
        return next((part for part in likely.split("-")[1:] if len(part) == 4), "")


@lru_cache(maxsize=1024)  # clients choose the tags
def parse(tag: str) -> Tag:
    """Return the parts of a language tag. Raises ``ValueError`` for what is none."""
    if not tag:
        return Tag()
    if len(tag) > _MAX_LETTERS:
        raise ValueError("not a language tag")
    parts: dict[str, str] = dict(parse_tag(tag))  # type: ignore[no-untyped-call]
    language = parts.get("language", tag.lower())
    script, territory = parts.get("script", ""), parts.get("territory", "")
    wider = ""
    if len(language) <= 3 and language.isalpha():
        standard = langcodes.get(CODES.get(language, language))
        language = standard.language or "und"
        script, territory = script or standard.script or "", territory or standard.territory or ""
        wider = WIDER.get(language) or standard.prefer_macrolanguage().language or ""
    return Tag(language, script, territory, wider if wider != language else "")


def standard_tag(name: str) -> str:
    """Return the tag that the name of a language stands for: ``pt-BR``, of ``pob``."""
    return CODES.get(name.lower(), name)


def likeness(wanted: Tag, offered: Tag) -> int:
    """Return how well a model's language suits a wanted one: 0 for not at all, more is better.

    A model of Portuguese serves who wants Brazilian, and the other way round; one of Mandarin
    serves who wants Chinese. One script does not stand for another, where both are written out.

    Of several languages that serve, the one in the script that is meant is better; then the one of
    the region; then the very language rather than a wider or narrower one.
    """
    if wanted.script and offered.script and wanted.script != offered.script:
        return 0
    is_same = wanted.language == offered.language
    pairs = ((wanted.language, offered.wider), (offered.language, wanted.wider))
    if not is_same and not any(language and language == wider for language, wider in pairs):
        return 0
    in_script = wanted.likely_script == offered.likely_script
    return (
        1
        + (wanted.script == offered.script)
        + 2 * is_same
        + 4 * _regional_likeness(wanted.territory, offered.territory)
        + 16 * in_script
    )


def _regional_likeness(wanted: str, offered: str) -> int:
    """Return how well a region suits, from 0 to 3: what is said of none is better than another."""
    if wanted == offered:
        return 3
    if not offered:
        return 2
    return int(not wanted)
