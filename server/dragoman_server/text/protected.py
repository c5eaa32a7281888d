"""What no model translates, and few can copy: addresses, markup, emoji, letters it has never seen.

They come back byte for byte. Symbols stand between sentences or at their ends, so a sentence is cut
at them; the rest is part of its sentence, and masked. Which words and symbols a model can't spell,
its vocabulary says.
"""

from collections.abc import Callable, Iterable

import regex

from dragoman_server.text.segments import Span

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
_ADDRESS_OR_CODE = regex.compile(
    r"""
      (?: https?:// | ftp:// | www\. ) [^\s<>"'“”«»]* [^\s<>"'“”«».,;:!?)\]}…]    # of pages
    | [\w.+-]+ @ [\w-]+ (?: \. [\w-]+ )+                                          # of people
    | (?<!\w) [@\#] \w [\w-]*                                                     # handles, tags
    | ` [^`\n]+ `                                                                 # code
    | </? [a-zA-Z] [^<>\n]* >                                                     # markup
    | \{\{ [^{}\n]* \}\} | \$? \{ [^{}\n]* \} | % \( \w+ \) [sdif] | % [sdif] \b    # templates
    """,
    regex.VERBOSE,
)
_SYMBOL = regex.compile(r"\p{So}+")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")


def symbols(text: str, span: Span, spells: Spells) -> list[Span]:
    """Where a sentence is to be cut: emoji and other symbols that the model can't spell."""
    found = _EMOJI.finditer(text, span.start, span.end)
    spans = [Span(*match.span()) for match in found if not spells(match.group())]
    if not spells(span.of(text)):
        others = _SYMBOL.finditer(text, span.start, span.end)
        spans += [Span(*match.span()) for match in others if not spells(match.group())]
    return _merged(spans)


def untranslatable(text: str, span: Span, spells: Spells) -> list[Span]:
    """What is to be masked in a sentence, in order."""
    spans = [Span(*m.span()) for m in _ADDRESS_OR_CODE.finditer(text, span.start, span.end)]
    if not spells(span.of(text)):
        words = _WORD.finditer(text, span.start, span.end)
        spans += [Span(*word.span()) for word in words if not spells(word.group())]
    return _merged(spans)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Those that overlap or touch, as one."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged
