"""Rules for machine-made Portuguese of English text: times of day, currencies, stock phrases.

A teacher writes 5:30 pm as 17:30, as 5:30, or leaves the pm as it is, and pounds it takes for
euros. A student of it should learn one way of each, and no wrong one: 5:30 da tarde, and libras.
Some phrases it has seen too often on the web, and writes where the source says nothing of them.
"""

import re

from dragoman_training.data.text.corpus import Pair

_TIME = re.compile(r"\b(1[0-2]|[1-9])(?:[:.]([0-5]\d))? ?([ap])\.?m\b\.?", re.IGNORECASE)
"""A time of day in English, as 5:30 pm or 5 p.m."""
_HALF_OF_DAY = r"(?! ?(?:da|de) (?:manhã|tarde|noite|madrugada))"
_NOON = 12
_LAST_HOUR_OF_AFTERNOON = 6

_CURRENCIES = {
    "£": ("libra", re.compile(r"\blibra(s?)\b", re.IGNORECASE)),
    "€": ("euro", re.compile(r"\beuro(s?)\b", re.IGNORECASE)),
    "¥": ("iene", re.compile(r"\b(?:iene(s?)|iuan|yuan|renminbi)\b", re.IGNORECASE)),
}
"""Signs that Portuguese text spells out, each with a word for it, and all that stand for it."""
_ENGLISH_NAMES = re.compile(r"\b(?:euro|pound|yen|yuan)s?\b", re.IGNORECASE)
_THANKS = re.compile(r"\b(?:thanks|thank you)\b *(?:[.!,;?]|$)", re.IGNORECASE)
_THANKS_FOR_MORE = re.compile(r"\b(obrigad[oa]) por enviar uma edição", re.IGNORECASE)
_IN_ENGLISH = re.compile(r" ?\(em inglês\)")
_STOCK_PHRASES = re.compile(
    r"por enviar uma edição|foi uma grande surpresa|que bom que gostou|estadia muito agradável"
    r"|página não encontrada -",
    re.IGNORECASE,
)
"""What the web says so often that a teacher says it of anything."""


def mend_english_portuguese(pair: Pair) -> str:
    """Return the target with times and currencies as they should be, where that can be told."""
    target = _mend_currency(pair)
    if "english" not in pair.source.lower():
        target = _IN_ENGLISH.sub("", target)
    if _THANKS.search(pair.source):
        target = _THANKS_FOR_MORE.sub(r"\1", target)
    for hour, minutes, half in _TIME.findall(pair.source):
        target = _mend_time(target, int(hour), minutes, half.lower())
    return target


def has_lost_currency(pair: Pair) -> bool:
    """Whether the source has the sign of a currency that the target neither has nor names."""
    return any(
        sign in pair.source and sign not in pair.target and not words.search(pair.target)
        for sign, (_, words) in _CURRENCIES.items()
    )


def has_stock_phrase(pair: Pair) -> bool:
    """Whether the target has a phrase that teachers make up; few of them are right."""
    return _STOCK_PHRASES.search(pair.target) is not None


def has_lost_time(pair: Pair) -> bool:
    """Whether the source says morning or afternoon of a time, and the target does not."""
    times = len(_TIME.findall(pair.source))
    told = re.findall(r"\b(?:da|de) (?:manhã|tarde|noite|madrugada)\b", pair.target)
    return times > len(told)


def _mend_currency(pair: Pair) -> str:
    """Name the currency of the source in place of another one, where the source has only one."""
    signs = [sign for sign in _CURRENCIES if sign in pair.source]
    if len(signs) != 1 or _ENGLISH_NAMES.search(pair.source):
        return pair.target
    word, _ = _CURRENCIES[signs[0]]
    target = pair.target
    for sign, (_, others) in _CURRENCIES.items():
        if sign != signs[0]:
            target = others.sub(lambda match: word + (match[1] or ""), target)
    return target


def _mend_time(target: str, hour: int, minutes: str, half: str) -> str:
    """Write the first form of a time that stands in the target as hours of half a day."""
    later = hour % _NOON + _NOON if half == "p" else hour
    part = "manhã"
    if half == "p":
        part = "tarde" if hour == _NOON or hour <= _LAST_HOUR_OF_AFTERNOON else "noite"
    figures = f"{hour}:{minutes}" if minutes else str(hour)
    marker = r"(?: ?(?:[ap]\.?m\b(?:\.(?=.))?|h(?:oras?)?\b(?! (?:local|locais|leste|oeste))))?"
    spelt = (
        rf"(?:{later}|{hour}) ?(?:[:.]|h ?){minutes}(?!\d)"
        if minutes
        else rf"(?:{later}|{hour})(?:(?::00|h00)\b|(?= ?(?:h\b|horas?\b|[ap]\.?m\b)))"
    )
    found = re.compile(
        rf"(?:\b(?P<before>às|das|as) )?(?<![\d:.,$]){spelt}{marker}{_HALF_OF_DAY}", re.IGNORECASE
    )

    def write(match: re.Match[str]) -> str:
        before = match["before"] or ""
        if hour == 1:
            before = {"às": "à", "das": "da", "as": "a"}.get(before.lower(), before)
        return f"{before} {figures} da {part}".lstrip()

    return found.sub(write, target, count=1)
