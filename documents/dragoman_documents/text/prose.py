"""Which strings of a catalogue or a table are for people to read."""

import re

from dragoman_documents.inline import has_letters

_FORMULA = re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,")
_NOT_PROSE = re.compile(
    r"(?:https?|ftp|mailto|tel|data):\S*"  # addresses
    r"|\S+@\S+\.\w+"
    r"|(?:\.{0,2}/)?(?:[\w.-]+/)+[\w.-]*"  # paths
    r"|[\w-]+\.(?:html?|css|js|json|png|jpe?g|gif|svg|pdf|xml|ya?ml|md|txt)"
    r"|#[0-9A-Fa-f]{3,8}"  # colours
    r"|\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?"  # dates
    r"|[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Za-z0-9]*[_$][\w$.]*|[a-z0-9]+(?:\.[a-z0-9_]+)+"  # identifiers
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|[0-9a-f]{32,128}"
)


def why_left(value: str) -> str:
    """Return why a string is left as it is, or nothing where it is prose."""
    if not has_letters(value):
        return "values without letters"
    if _NOT_PROSE.fullmatch(value.strip()):
        return "addresses, identifiers and the like"
    if _FORMULA.search(value):
        return "messages with plural or select forms"
    return ""
