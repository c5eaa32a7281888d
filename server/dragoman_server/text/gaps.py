"""What stands between two translations, as the language of the translations writes it.

Chinese and Japanese put no space between sentences, nor between words. All else between the parts
of a text stays as it is.
"""

import unicodedata

_UNSPACED_LANGUAGES = frozenset({"ja", "zh"})
"""Languages whose sentences follow each other without a space."""
_UNSPACED = (
    (0x3000, 0x30FF),  # punctuation, hiragana, katakana
    (0x31F0, 0x31FF),  # small katakana
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF01, 0xFF9F),  # full-width punctuation, half-width katakana
    (0x20000, 0x3FFFF),
)
"""Letters of scripts that are written without spaces, first and last."""
_BEFORE_SPACE = ("L", "M", "N", "Pe", "Pf", "Po")
"""Kinds of letters that a space may follow: of words, closing brackets and quotes, full stops."""
_AFTER_SPACE = ("L", "N", "Pi", "Ps")
"""Kinds of letters that a space may come before: of words, opening brackets and quotes."""


def gap_between(text: str, start: int, end: int, before: str | None, language: str) -> str:
    """Return what stands from ``start`` to ``end`` of a source text, for its translation.

    ``before`` is the translation before it, None at the beginning. ``language`` is the code of the
    language of the translation, such as ``zh``; empty if it is not known, and nothing is changed.
    """
    gap = text[start:end]
    if not language:
        return gap
    if language in _UNSPACED_LANGUAGES:
        # A line break stays, and so do spaces after a word in other letters.
        follows = before and end < len(text) and _is_unspaced(before[-1])
        return "" if follows and not gap.strip(" ") else gap
    left = " " if before is not None and _run_on(text, start) else ""
    right = " " if gap and _run_on(text, end) else ""
    return f"{left}{gap}{right}"


def _run_on(text: str, place: int) -> bool:
    """Whether a space is missing at a place of a text, for it is written in a script without."""
    if not 0 < place < len(text):
        return False
    left, right = text[place - 1], text[place]
    return (
        (_is_unspaced(left) or _is_unspaced(right))
        and unicodedata.category(left).startswith(_BEFORE_SPACE)
        and unicodedata.category(right).startswith(_AFTER_SPACE)
    )


def _is_unspaced(letter: str) -> bool:
    """Whether a letter belongs to a script that is written without spaces."""
    return any(first <= ord(letter) <= last for first, last in _UNSPACED)
