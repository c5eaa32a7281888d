"""Placeholders: ⟨1⟩ … ⟨9⟩, tokens that stand for text which must come through unchanged.

A model learns them from pairs in which a span that both sides have alike (a name, a number, an
address, a format string) is replaced by the same placeholder. Then whatever must survive a
translation can be put behind one, and comes back at its place in the target sentence.
"""

import random
import re
from collections import Counter
from typing import NamedTuple

from dragoman_training.data.text.corpus import Pair

MAX_PLACEHOLDERS = 9


def placeholder(number: int) -> str:
    """Return the text of a placeholder, which is one piece of the vocabulary."""
    return f"⟨{number}⟩"


def contains_placeholder(text: str) -> bool:
    return _PLACEHOLDER.search(text) is not None


class _Span(NamedTuple):
    start: int
    end: int
    key: str
    """What has to be the same on both sides."""


_PLACEHOLDER = re.compile(r"⟨[1-9]⟩")
_EDGES = ".,;:!?…\"'“”‘’«»()[]-–—"
_TOKEN = re.compile(r"\S+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_TAKEN = 0.7
"""Chance of each shared span to be replaced, beside the first."""
_IN_ORDER = 0.5
"""Chance that placeholders are numbered from 1 on, as a server numbers them."""


def replace_shared_spans(pair: Pair, rng: random.Random) -> Pair | None:
    """Return the pair with some shared spans replaced; one at an end where it shares none."""
    if contains_placeholder(pair.source) or contains_placeholder(pair.target):
        return None
    shared = _shared(pair)
    if not shared:
        return _attach(pair, placeholder(rng.randint(1, MAX_PLACEHOLDERS)), rng)
    rng.shuffle(shared)
    chosen = [spans for n, spans in enumerate(shared) if n == 0 or rng.random() < _TAKEN]
    chosen = sorted(chosen[:MAX_PLACEHOLDERS])
    if rng.random() < _IN_ORDER:
        numbers = list(range(1, len(chosen) + 1))
    else:
        numbers = rng.sample(range(1, MAX_PLACEHOLDERS + 1), len(chosen))
    return Pair(
        _replace(pair.source, [source for source, _ in chosen], numbers),
        _replace(pair.target, [target for _, target in chosen], numbers),
    )


def replace_numbers(pair: Pair, rng: random.Random) -> Pair | None:
    """Return the pair with other digits in the numbers that both sides have; None without any.

    Separators stay where they are, so each side keeps the spelling of its language.
    """
    numbers = [spans for spans in _shared(pair) if spans[0].key.isdigit()]
    if not numbers or contains_placeholder(pair.source) or contains_placeholder(pair.target):
        return None
    source, target = pair
    # From the last to the first, so that spans before stay where they are.
    drawn = {spans: _other_digits(spans[0].key, rng) for spans in sorted(numbers)}
    for spans in sorted(numbers, key=lambda spans: spans[0].start, reverse=True):
        source = _with_digits(source, spans[0], drawn[spans])
    for spans in sorted(numbers, key=lambda spans: spans[1].start, reverse=True):
        target = _with_digits(target, spans[1], drawn[spans])
    return Pair(source, target)


def _other_digits(digits: str, rng: random.Random) -> str:
    first = digits[0] if digits[0] == "0" else rng.choice("123456789")
    return first + "".join(rng.choice("0123456789") for _ in digits[1:])


def _with_digits(text: str, span: _Span, digits: str) -> str:
    new = iter(digits)
    spelt = "".join(next(new) if c.isdigit() else c for c in text[span.start : span.end])
    return text[: span.start] + spelt + text[span.end :]


def _attach(pair: Pair, piece: str, rng: random.Random) -> Pair:
    if rng.random() < 0.5:
        return Pair(f"{piece} {pair.source}", f"{piece} {pair.target}")
    return Pair(f"{pair.source} {piece}", f"{pair.target} {piece}")


def _replace(text: str, spans: list[_Span], numbers: list[int]) -> str:
    for span, number in sorted(zip(spans, numbers, strict=True), reverse=True):
        text = text[: span.start] + placeholder(number) + text[span.end :]
    return text


def _shared(pair: Pair) -> list[tuple[_Span, _Span]]:
    """Spans that each side has exactly once; neighbours on both sides are one span."""
    sources, targets = _spans(pair.source), _spans(pair.target)
    in_source = Counter(span.key for span in sources)
    in_target = Counter(span.key for span in targets)
    place = {span.key: n for n, span in enumerate(targets)}
    found: list[tuple[_Span, _Span]] = []
    last = (-2, -2)
    for n, span in enumerate(sources):
        if in_source[span.key] != 1 or in_target[span.key] != 1 or not _is_kept(span.key):
            continue
        other = targets[place[span.key]]
        here = (n, place[span.key])
        if here == (last[0] + 1, last[1] + 1) and _joins(pair, found[-1], (span, other)):
            begun = found.pop()
            span = _Span(begun[0].start, span.end, f"{begun[0].key} {span.key}")
            other = _Span(begun[1].start, other.end, span.key)
        found.append((span, other))
        last = here
    return found


def _joins(pair: Pair, first: tuple[_Span, _Span], second: tuple[_Span, _Span]) -> bool:
    """Whether only a space stands between two shared names, as in a first and a last name."""
    between = (
        pair.source[first[0].end : second[0].start],
        pair.target[first[1].end : second[1].start],
    )
    return between == (" ", " ") and all(s.key[:1].isalpha() for s in (first[0], second[0]))


def _spans(text: str) -> list[_Span]:
    spans = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        start = match.start() + len(token) - len(token.lstrip(_EDGES))
        end = match.end() - (len(token) - len(token.rstrip(_EDGES)))
        if end <= start:
            continue
        inner = text[start:end]
        number = _NUMBER.search(inner)
        if number and not any(c.isalpha() for c in inner):
            # A currency sign or a percent sign stays outside: languages write them in other places.
            start, end = start + number.start(), start + number.end()
            spans.append(_Span(start, end, re.sub(r"\D", "", number.group())))
        else:
            spans.append(_Span(start, end, inner))
    return spans


def _is_kept(key: str) -> bool:
    """Names, numbers and what is not a word; not words that two languages happen to share."""
    return not (key.isalpha() and key.islower()) and any(c.isalnum() for c in key)
