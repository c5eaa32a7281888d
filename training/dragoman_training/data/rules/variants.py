"""What users type: other forms of a sentence pair, made by rules.

People type single words, shout, forget capitals and full stops, mistype, and paste lists and
emoji. Each form here is a pair of its own beside the one it was made of, drawn by a random
generator that depends on the seed and the line alone.
"""

import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import fields

from dragoman_training.config.data_settings import VariantSettings
from dragoman_training.data.rules.placeholders import replace_numbers, replace_shared_spans
from dragoman_training.data.text.corpus import Pair
from dragoman_training.data.text.filters import is_empty

Variant = Callable[[Pair, random.Random], Pair | None]

_FINAL = ".!?…"
_CODE = re.compile(r"[%{}<>@\\_=|$#]|://|⟨")
"""Text that rules about letters would break: format strings, markup, addresses."""
_MAX_SHOUTED = 160
"""Longest text, in characters, that people write in capitals."""
_MAX_ITEM = 120
_SMALL_WORDS = frozenset(
    (
        *("a", "an", "and", "as", "at", "but", "by", "for", "from", "in", "nor", "of", "on", "or"),
        *("so", "the", "to", "up", "with", "yet"),
    )
)
_BULLETS = ("- ", "• ", "* ", "– ", "→ ", "✓ ")
_EMOJI = (
    *("😀", "😃", "😄", "😁", "😂", "🤣", "😊", "😉", "😍", "😘", "😎", "🤔", "😅", "😢"),
    *("😭", "😡", "😱", "🙄", "😴", "🤗", "🥰", "🥳", "😇", "🙂", "🙃", "😜", "🤩", "😬"),
    *("👍", "👎", "👏", "🙏", "💪", "👋", "✌️", "👌", "🤝", "❤️", "💔", "💕", "🔥", "✨"),
    *("⭐", "🎉", "🎂", "🎁", "🎶", "☀️", "🌧️", "🌈", "🌍", "🌹", "🌸", "🐶", "🐱", "🐾"),
    *("🍕", "🍺", "☕", "🍰", "🍎", "⚽", "🏆", "🚗", "✈️", "🏠", "📱", "💻", "📷", "📚"),
    *("💡", "💰", "⏰", "✅", "❌", "❗", "⚠️", "🚀", "👀", "💯"),
)  # fmt: skip
_NEIGHBOURS = {
    "a": "qsz", "b": "vgn", "c": "xdv", "d": "sfe", "e": "wrd", "f": "dgr", "g": "fht", "h": "gjy",
    "i": "uok", "j": "hku", "k": "jli", "l": "ko", "m": "nj", "n": "bmh", "o": "ipl", "p": "o",
    "q": "wa", "r": "etf", "s": "adw", "t": "ryg", "u": "yij", "v": "cbf", "w": "qes", "x": "zcs",
    "y": "tuh", "z": "xa",
}  # fmt: skip
"""Keys beside each key of a keyboard."""


def variants_of(
    pair: Pair, settings: VariantSettings, rng: random.Random
) -> Iterator[tuple[str, Pair]]:
    """Draw the other forms of a pair that are to be trained on, each with its name."""
    for each in fields(settings):
        share = getattr(settings, each.name)
        if share and rng.random() < share:
            made = VARIANTS[each.name](pair, rng)
            # Nothing is left of "?!" without its marks: an empty pair teaches nothing.
            if made is not None and made != pair and not is_empty(made):
                yield each.name, made


def upper(pair: Pair, rng: random.Random) -> Pair | None:
    if len(pair.source) > _MAX_SHOUTED or _is_code(pair):
        return None
    return Pair(pair.source.upper(), pair.target.upper())


def title(pair: Pair, rng: random.Random) -> Pair | None:
    """Headings: every word, or every word that is not small, begins with a capital."""
    if _is_code(pair) or " " not in pair.source or len(pair.source) > _MAX_SHOUTED:
        return None
    bare = without_final_mark(pair)
    spares_small = rng.random() < 0.5
    words = [
        word if spares_small and number and word in _SMALL_WORDS else word[:1].upper() + word[1:]
        for number, word in enumerate(bare.source.split(" "))
    ]
    return Pair(" ".join(words), bare.target)


def lower(pair: Pair, rng: random.Random) -> Pair | None:
    """As people type in a hurry. Inner capitals of the target stay: they are those of names."""
    if _is_code(pair):
        return None
    bare = without_final_mark(pair)
    return Pair(bare.source.lower(), _lower_first(bare.target, bare.source))


def bare(pair: Pair, rng: random.Random) -> Pair | None:
    return without_final_mark(pair)


def capital(pair: Pair, rng: random.Random) -> Pair | None:
    return Pair(*(side[:1].upper() + side[1:] for side in pair))


def typos(pair: Pair, rng: random.Random) -> Pair | None:
    if _is_code(pair):
        return None
    source = pair.source
    for _ in range(rng.choice((1, 1, 2))):
        source = _mistype(source, rng)
    return Pair(source, pair.target)


def no_accents(pair: Pair, rng: random.Random) -> Pair | None:
    decomposed = unicodedata.normalize("NFD", pair.source)
    kept = "".join(c for c in decomposed if not unicodedata.combining(c))
    return Pair(kept, pair.target)


def items(pair: Pair, rng: random.Random) -> Pair | None:
    if len(pair.source) > _MAX_ITEM:
        return None
    number = rng.randint(1, 20)
    letter = rng.choice("abcdefgh")
    mark = rng.choice(
        (
            *(rng.choice(_BULLETS), rng.choice(_BULLETS)),
            *(f"{number}. ", f"{number}) ", f"({number}) ", f"{number} - ", f"{letter}) "),
        )
    )
    return Pair(mark + pair.source, mark + pair.target)


def emoji(pair: Pair, rng: random.Random) -> Pair | None:
    drawn = "".join(rng.choice(_EMOJI) for _ in range(rng.choice((1, 1, 1, 2))))
    if rng.random() < 0.1:
        return Pair(f"{drawn} {pair.source}", f"{drawn} {pair.target}")
    space = rng.choice((" ", " ", ""))
    return Pair(f"{pair.source}{space}{drawn}", f"{pair.target}{space}{drawn}")


VARIANTS: dict[str, Variant] = {
    "upper": upper,
    "title": title,
    "lower": lower,
    "bare": bare,
    "capital": capital,
    "typos": typos,
    "no_accents": no_accents,
    "items": items,
    "emoji": emoji,
    "numbers": replace_numbers,
    "placeholders": replace_shared_spans,
}


def without_final_mark(pair: Pair) -> Pair:
    """Take the final punctuation mark off both sides, where both have one."""
    if pair.source[-1:] in _FINAL and pair.target[-1:] in _FINAL:
        return Pair(*(side.rstrip(_FINAL).rstrip() for side in pair))
    return pair


def _lower_first(target: str, source: str) -> str:
    """A name at the beginning, which the source has too, keeps its capital."""
    first = target.split(" ", 1)[0]
    if first[1:].lower() != first[1:] or (first in source.split() and first != "A"):
        return target
    return target[:1].lower() + target[1:]


def _mistype(text: str, rng: random.Random) -> str:
    places = [n for n, c in enumerate(text) if c in _NEIGHBOURS and n and text[n - 1].isalpha()]
    if len(places) < 4:
        return text
    at = rng.choice(places)
    kind = rng.randrange(4)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[at] + text[at:]
    if kind == 2:
        return text[: at - 1] + text[at] + text[at - 1] + text[at + 1 :]
    return text[:at] + rng.choice(_NEIGHBOURS[text[at]]) + text[at + 1 :]


def _is_code(pair: Pair) -> bool:
    return _CODE.search(pair.source) is not None or _CODE.search(pair.target) is not None
