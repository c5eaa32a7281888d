"""Tokens that name languages, as each family spells them, and the tags that clients write.

Marian    >>por<<     in the vocabulary; stands before the source, for the language to translate to
M2M-100   __pt__      after the vocabulary, in an order of its own; before source and translation
NLLB      por_Latn    among the added tokens; before source and translation
"""

import re
from collections.abc import Mapping, Sequence

from dragoman_export.errors import ExportError
from dragoman_server.text.languages import likeness, parse

_M2M100 = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu "
    "ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms "
    "my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur "
    "uz vi wo xh yi yo zh zu"
)
CODES = {"m2m100": _M2M100.split(), "wmt21": ["en", "ha", "is", "ja", "cs", "ru", "zh", "de"]}
"""The languages of M2M-100's tokenizers, by the name of the list, in the order of their ids."""
SEVERAL = "mul"
"""Tag that stands for several languages, where only one can be named."""

_MARIAN = re.compile(r">>(.+)<<")
_NLLB = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")

Languages = dict[str, int]
"""Token of each language, by the language's tag."""


def marian_languages(ids: Mapping[str, int]) -> Languages:
    """Return the languages that a vocabulary has tokens for; others than tags are left out."""
    found: Languages = {}
    for piece, token in ids.items():
        match = _MARIAN.fullmatch(piece)
        if match and is_tag(tag := match[1].replace("_", "-")):
            found.setdefault(tag, token)
    return found


def m2m100_languages(codes: Sequence[str], first: int) -> Languages:
    """Return the languages of a list whose tokens follow each other, from ``first`` on."""
    return {code: first + number for number, code in enumerate(codes)}


def nllb_languages(tokens: Mapping[str, int]) -> Languages:
    """Return the languages that NLLB's tokens name, in the order of their ids."""
    return {
        token.replace("_", "-"): number
        for token, number in sorted(tokens.items(), key=lambda item: item[1])
        if _NLLB.fullmatch(token)
    }


def is_tag(text: str) -> bool:
    """Tell whether a text is a language tag."""
    try:
        return bool(parse(text).language)
    except ValueError:
        return False


def chosen(languages: Languages, wanted: Sequence[str], side: str) -> Languages:
    """Return the languages that are wanted, in that order; all if none is named."""
    if not wanted:
        return languages
    return {tag: languages[tag] for tag in (_nearest(languages, each, side) for each in wanted)}


def _nearest(languages: Languages, wanted: str, side: str) -> str:
    tag = parse(checked(wanted, side))
    best = max(languages, key=lambda offered: likeness(tag, parse(offered)))
    if not likeness(tag, parse(best)):
        raise ExportError(
            f"--{side}-language {wanted}: the model has {', '.join(languages)}, and not this"
        )
    return best


def checked(wanted: str, side: str) -> str:
    """Return a tag that an option gives. Raises ``ExportError`` if it is none."""
    if not is_tag(wanted):
        raise ExportError(f"--{side}-language {wanted}: not a language tag, as en, por or pt-BR")
    return wanted


def one_tag(languages: Mapping[str, int | None]) -> str:
    """Return the tag of the only language, or the one that stands for several."""
    return next(iter(languages)) if len(languages) == 1 else SEVERAL
