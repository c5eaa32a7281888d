"""What no model translates, and few can copy: addresses, markup, emoji, letters it has never seen.

They come back byte for byte. Symbols stand between sentences or at their ends, so a sentence is cut
at them; the rest is part of its sentence, and masked. So are symbols in the middle of a sentence,
where the model has placeholders. Which words and symbols a model can't spell, its vocabulary says.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import regex

from dragoman_server.text.segments import Span, between, has_words, meets

Spells = Callable[[str], bool]
"""Whether a vocabulary has all letters of a text."""

_EMOJI = regex.compile(
    r"""
      \p{Regional_Indicator}{2}
    | [0-9\#*] \uFE0F? \u20E3
    | (?: \p{Emoji_Presentation} | \p{Extended_Pictographic} \uFE0F? )
      (?: \p{Emoji_Modifier} | \uFE0F | \u200D \p{Extended_Pictographic}
        | [\U000E0020-\U000E007F] )*
    """,
    regex.VERBOSE,
)
_BREAK = r"\n\r\v\f\x1c-\x1f\x85\u2028\u2029"
_NO_URL = rf"""\s{_BREAK}<>"'“”«»。、，；：！？「」『』（）"""
# Texts can be long and mean harm, so no pattern reads a letter more than a few times: where one may
# begin within what it repeats, it looks behind that this is not the middle, or has a bound.
_ADDRESS_OR_CODE = regex.compile(
    rf"""
      (?: (?<! [a-zA-Z0-9+] ) [a-zA-Z] [a-zA-Z0-9+]{{1,9}} :// | (?<! [a-zA-Z0-9] ) (?i: www\. ) )
      (?: [^{_NO_URL}()\[\]{{}}]                                                  # of pages
        | \( [^{_NO_URL}()]* \) | \[ [^{_NO_URL}\[\]]* \] | \{{ [^{_NO_URL}{{}}]* \}} )+
      (?<! [.,;:!?…] )
    | (?<! [\p{{L}}\p{{N}}_.+-] ) [\p{{L}}\p{{N}}_.+-]++ @ [\w-]++ (?: \. [\w-]++ )++    # of people
    | (?<! [\p{{L}}\p{{N}}_] ) [@\#] [\p{{L}}\p{{N}}_] [\w-]*+                    # handles, tags
      (?: @ [\w-]++ (?: \. [\w-]++ )++ )?
    | (?<! ` ) (?P<ticks> `{{1,3}} ) [^`{_BREAK}]++ (?P=ticks) (?! ` )            # code
    | </? [a-zA-Z] [^<>{_BREAK}]*+ >                                              # markup
    | \{{\{{\{{ [^{{}}{_BREAK}]*+ \}}\}}\}} | \{{\{{ [^{{}}{_BREAK}]*+ \}}\}}     # templates
    | \$? \{{ [^{{}}{_BREAK}]*+ \}}
    | % (?: \( \w++ \) | \d{{1,2}} \$ )? [-+0]? \d{{0,3}} (?: \. \d{{1,3}} )? [sdif] \b
    | ⟨[1-9]⟩                                                                     # placeholders
    """,
    regex.VERBOSE,
)
_MAY_HAVE_ADDRESS = re.compile(r"[@#`<{%⟨]|://|[wW]{3}\.")
"""A sign that each address has. It is looked for first, as most texts have none."""
_SYMBOL = regex.compile(r"[\p{So}\p{Sc}\p{Sm}\p{Sk}]+")
_RAISED = regex.compile(
    r"""
    (?<! [\p{L}\p{N}] ) [\p{L}\d]{0,4} (?P<raised> [⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉] )
    (?: [\p{L}\d] | (?&raised) ){0,8} (?! [\p{L}\p{N}] )
    """,
    regex.VERBOSE,
)
"""Units, powers and formulas, such as km², 10⁶ and H₂O. Most vocabularies have plain digits in
place of raised and lowered ones. A longer word has the mark of a note, and is left to the model."""
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*")


@dataclass(frozen=True)
class Protected:
    """What of a sentence is not for the model."""

    masked: Sequence[Span] = ()
    """Spans that are masked, in order."""
    cuts: Sequence[Span] = ()
    """Spans that the sentence is cut at, in order."""


def addresses(text: str) -> list[Span]:
    """Return addresses, markup, code and templates of a text in order; none has a line break."""
    if not _MAY_HAVE_ADDRESS.search(text):
        return []
    return merged(Span(*match.span()) for match in _ADDRESS_OR_CODE.finditer(text))


def protect(
    text: str,
    sentence: Span,
    found: Sequence[Span],
    spells: Spells,
    *,
    has_placeholders: bool = False,
) -> Protected:
    """Return what is to be masked in a sentence, given its addresses, and where to cut it.

    A model with placeholders is given them for units and powers, and for symbols that the sentence
    goes on after; another one is better given the words, and the sentence is cut at the symbols.
    """
    if has_placeholders:
        raised = _RAISED.finditer(text, sentence.start, sentence.end)
        found = merged([*found, *(Span(*match.span()) for match in raised)])
    if spells(sentence.of(text)):
        return Protected(found)

    def unspelled(pattern: regex.Pattern[str], start: int, end: int) -> list[Span]:
        matches = pattern.finditer(text, start, end)
        return [Span(*match.span()) for match in matches if not spells(match.group())]

    ends = (sentence.start, sentence.end)
    symbols = merged([*unspelled(_EMOJI, *ends), *unspelled(_SYMBOL, *ends)])
    masked = [
        symbol
        for symbol in symbols
        if meets(found, symbol) or (has_placeholders and _is_inside(text, sentence, symbol))
    ]
    cuts = [symbol for symbol in symbols if symbol not in masked]
    words = [
        word for gap in between(sentence, cuts) for word in unspelled(_WORD, gap.start, gap.end)
    ]
    return Protected(merged([*found, *masked, *words]), cuts)


def _is_inside(text: str, sentence: Span, symbol: Span) -> bool:
    """Whether a sentence goes on after a symbol, as in "I ❤ you" or "costs €5"."""
    after = text[symbol.end : sentence.end].lstrip()
    goes_on = after[:1].islower() or after[:1].isdigit()
    return goes_on and has_words(text[sentence.start : symbol.start])


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, with those that overlap or touch made one."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        if found and span.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return found
