"""Which languages a model translates between, and the tokens that tell it so.

A model of one pair needs none. One of several is told by a token which language a text is in, or
which to translate into; where they go, its manifest says.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dragoman_server.bundle.manifest import Manifest
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.text.languages import Tag, likeness, parse, standard_tag

_MAX_NAMED = 16
"""Most languages that an error names."""
_MAX_REMEMBERED = 256
"""Most pairs of languages of which a model remembers how well it suits them."""


@dataclass(frozen=True)
class Direction:
    source_language: str
    """The language of the source, as the manifest names it."""
    target_language: str
    """The language of the translation, as the manifest names it."""
    before: tuple[int, ...] = ()
    """Tokens that the source begins with."""
    start: tuple[int, ...] = ()
    """Tokens that the translation begins with; they are no part of it."""


@dataclass(frozen=True)
class _Offer:
    name: str
    tag: Tag
    tokens: tuple[int, ...]


class Directions:
    """The directions of one model. Raises ``ValueError`` for what is no language tag."""

    def __init__(self, manifest: Manifest) -> None:
        self._sources = _offers(manifest.source_language, manifest.source_languages)
        self._targets = _offers(manifest.target_language, manifest.target_languages)
        self._target_in_source = manifest.target_language_in == "source"
        self.source_languages = _names(self._sources)
        """Tags of the languages that the model translates from; none where it does not say."""
        self.target_languages = _names(self._targets)
        """Tags of the languages that the model translates into; none where it does not say."""
        # Some models have 200 languages, and a call asks several times.
        self._fits = lru_cache(maxsize=_MAX_REMEMBERED)(self._look_up_fits)
        self._chosen = lru_cache(maxsize=_MAX_REMEMBERED)(self._look_up_choice)

    def suits(self, wanted: tuple[Tag, Tag]) -> int:
        """Return how well the model translates between these languages: 0 for not at all.

        Any language suits where none is wanted.
        """
        fits = self._fits(wanted)
        return sum(fits) if all(fits) else 0

    def reads(self, wanted: tuple[Tag, Tag]) -> bool:
        """Whether the model translates from the source language, whatever into."""
        return bool(self._fits(wanted)[0])

    def _look_up_fits(self, wanted: tuple[Tag, Tag]) -> tuple[int, int]:
        source, target = (
            max(likeness(want, offer.tag) for offer in offers) if want.language else 1
            for want, offers in zip(wanted, (self._sources, self._targets), strict=True)
        )
        return source, target

    def choose(self, wanted: tuple[Tag, Tag]) -> Direction:
        """Return the direction that suits best.

        Raises ``InvalidArgumentError`` where a language has to be given and is not.
        """
        return self._chosen(wanted)

    def _look_up_choice(self, wanted: tuple[Tag, Tag]) -> Direction:
        source = _best("source_language", wanted[0], self._sources)
        target = _best("target_language", wanted[1], self._targets)
        if self._target_in_source:
            return Direction(source.name, target.name, before=(*source.tokens, *target.tokens))
        return Direction(source.name, target.name, before=source.tokens, start=target.tokens)


def _offers(language: str, several: Mapping[str, int | None]) -> list[_Offer]:
    return [
        _Offer(name, parse(name), () if token is None else (token,))
        for name, token in (several or {language: None}).items()
    ]


def _names(offers: Sequence[_Offer]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(standard_tag(offer.name) for offer in offers if offer.name))


def listed(languages: Iterable[str]) -> str:
    """Return languages as a list for people, which names the first of them and counts the rest."""
    names = list(languages)
    rest = len(names) - _MAX_NAMED
    if rest <= 1:  # the last one takes no more room than to say that there is one more
        return ", ".join(names)
    return f"{', '.join(names[:_MAX_NAMED])} and {rest} more"


def _best(field: str, wanted: Tag, offers: Sequence[_Offer]) -> _Offer:
    if not wanted.language and len(offers) > 1 and any(offer.tokens for offer in offers):
        raise InvalidArgumentError(
            field, f"is not given, and the model has {len(offers)}: {listed(_names(offers))}"
        )
    return max(offers, key=lambda offer: likeness(wanted, offer.tag))


def language_tag(field: str, tag: str) -> Tag:
    """Return the language tag that a request has in a field."""
    try:
        return parse(tag)
    except ValueError:
        raise InvalidArgumentError(field, "is not a language tag, as en, por or pt-BR") from None
