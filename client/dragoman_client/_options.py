"""Options of a call: how to translate, and what else to return."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._errors import ConfigurationError
from dragoman_client._field_docs import documented
from dragoman_client._glossaries import checked_entries
from dragoman_client._types import (
    require,
    require_number,
    require_text,
    require_whole,
    wrong_type,
)

Markup = Literal["none", "html", "xml"]
_MARKUP: dict[str, pb.Markup] = {
    "none": pb.MARKUP_NONE,
    "html": pb.MARKUP_HTML,
    "xml": pb.MARKUP_XML,
}
_LISTS = ("suppressed_pieces", "ignore_tags", "splitting_tags", "inline_tags")
"""Options that are lists of text."""
OverlongPolicy = Literal["split", "error"]
_OVERLONG: dict[str, pb.OverlongPolicy] = {
    "split": pb.OVERLONG_POLICY_SPLIT,
    "error": pb.OVERLONG_POLICY_ERROR,
}

Kind = type[int] | type[float] | type[bool] | type[str]

_SAMPLING_KINDS: dict[str, Kind] = {"temperature": float, "top_k": int, "top_p": float, "seed": int}
_KINDS: dict[str, Kind] = {
    "beam_size": int,
    "alternatives": int,
    "length_penalty": float,
    "repetition_penalty": float,
    "no_repeat_ngram_size": int,
    "target_prefix": str,
    "min_tokens": int,
    "max_tokens": int,
    "split_sentences": bool,
    "keep_untranslatable": bool,
    "mend": bool,
    "replace_unknown": bool,
    "recase": bool,
    "outline": bool,
    "translate_attributes": bool,
    "glossary_name": str,
    "glossary_case_sensitive": bool,
    "glossary_plurals": bool,
    "token_scores": bool,
    "alignment": bool,
    "timing": bool,
}
"""Options that have the same name and type on the wire, with their types."""


@documented
@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Draw tokens instead of taking the best."""

    temperature: float | None = None
    """Factor that flattens the probabilities of tokens above 1 and sharpens them below; 1 by
    default."""
    top_k: int | None = None
    """Number of the most probable tokens to draw from; 0, the default, for all."""
    top_p: float | None = None
    """Probability that the tokens to draw from have together: the fewest that reach it, the most
    probable first. 1 by default."""
    seed: int | None = None
    """Number that settles the draws: the same one repeats them, whatever else the server does. A
    random one by default."""

    def __post_init__(self) -> None:
        _check(self, _SAMPLING_KINDS)


@documented
@dataclass(frozen=True, kw_only=True)
class Options:
    """How to translate. What is None is left to the server."""

    beam_size: int | None = None
    """Hypotheses that the search keeps at a time; 1, the default, is greedy search. More are slower
    and often better."""
    alternatives: int | None = None
    """Translations to return of each sentence, best first; at most ``beam_size``."""
    length_penalty: float | None = None
    """Exponent of the length in tokens that a log-probability is divided by to give a score; 1 by
    default. A higher one favours long translations."""
    sampling: Sampling | None = None
    """How to draw tokens at random, instead of searching for the best ones."""
    repetition_penalty: float | None = None
    """Factor above 1 that makes tokens less probable that have occurred already; 1, the default,
    changes nothing."""
    no_repeat_ngram_size: int | None = None
    """Length in tokens of sequences that may not occur twice; 0, the default, for no limit."""
    suppressed_pieces: Sequence[str] = ()
    """Pieces of the model's vocabulary that must not occur in a translation, at most 256."""
    target_prefix: str | None = None
    """Text that the translation is to begin with; for a text of one sentence."""
    min_tokens: int | None = None
    """Least tokens of each translated sentence, its end token not counted; 0 by default."""
    max_tokens: int | None = None
    """Most tokens of each translated sentence, its end token included; by default 10 more than
    twice those of the source."""
    overlong: OverlongPolicy | None = None
    """What to do with a sentence that is longer than the model takes: "split" it after a clause or
    at a space, which is the default, or refuse the request with an "error"."""
    split_sentences: bool | None = None
    """Whether texts are split into sentences, as by default; otherwise each line is translated as
    one sentence."""
    keep_untranslatable: bool | None = None
    """Whether addresses, emoji, markup and the like come back exactly as they were, as by default;
    otherwise the model is given them too."""
    mend: bool | None = None
    """Whether a translation that is empty, repeats itself or has other numbers than its source is
    done again in another way, as by default; otherwise it is returned as the model wrote it."""
    replace_unknown: bool | None = None
    """Whether the source word that an unknown token was made from takes its place, as by default;
    otherwise unknown tokens are left out."""
    recase: bool | None = None
    """Whether a sentence in capitals or in Title Case is translated as if it were written in small
    letters, as by default, and the translation of capitals is in capitals; otherwise the model is
    given the letters as they are."""
    markup: Markup | None = None
    """How texts are marked up: "html", "xml", or "none", which is the default. Tags are put back
    around the words that they stood around."""
    ignore_tags: Sequence[str] = ()
    """Names of elements that stay as they are, with ``markup``."""
    splitting_tags: Sequence[str] = ()
    """Names of elements that sentences end at, beside those that are known to be blocks."""
    inline_tags: Sequence[str] = ()
    """Names of elements that sentences do not end at."""
    outline: bool | None = None
    """Whether blocks are found by the list of HTML's elements, and in XML by where text stands, as
    by default; otherwise sentences end at ``splitting_tags`` only."""
    translate_attributes: bool = False
    """Whether to translate alt, aria-label, placeholder and title too: the attributes that people
    read."""
    glossary: Mapping[str, str] = field(default_factory=dict)
    """Terms with what is to stand for each in the translation; an empty text leaves a term as it
    is. ``read_glossary`` reads them from a file."""
    glossary_name: str | None = None
    """Name of a glossary that the server keeps; terms of ``glossary`` go before its own."""
    glossary_case_sensitive: bool = False
    """Whether terms are found in exactly their letters; otherwise capitals make no difference."""
    glossary_plurals: bool = False
    """Whether the plural of a term in -s or -es is found too, and what stands for it is made
    plural."""
    token_scores: bool = False
    """Whether to return each token with its log-probability too."""
    alignment: bool = False
    """Whether to return which source tokens each target token was translated from too."""
    timing: bool = False
    """Whether to return where the time went on the server too."""

    def __post_init__(self) -> None:
        if self.sampling is not None:
            require("sampling", self.sampling, Sampling, "give Sampling(temperature=…)")
        for name in _LISTS:
            values = getattr(self, name)
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise wrong_type(name, values, "a list of str")
            for number, value in enumerate(values):
                require_text(f"{name}[{number}]", value)
        checked_entries("glossary", self.glossary)
        if self.markup is not None and self.markup not in _MARKUP:
            raise ConfigurationError(f"markup is {self.markup!r}: it must be none, html or xml")
        if self.overlong is not None and self.overlong not in _OVERLONG:
            raise ConfigurationError(f"overlong is {self.overlong!r}: it must be split or error")
        _check(self, _KINDS)
        self.to_message()

    def to_message(self) -> pb.Options:
        """Return the message. Raises ``ConfigurationError`` for what the wire can't carry."""
        message = pb.Options(**{name: getattr(self, name) for name in _LISTS})
        for name in _KINDS:
            _set(message, name, getattr(self, name))
        if self.sampling is not None:
            message.sampling.SetInParent()
            for name in _SAMPLING_KINDS:
                _set(message.sampling, name, getattr(self.sampling, name))
        if self.overlong is not None:
            message.overlong = _OVERLONG[self.overlong]
        if self.markup is not None:
            message.markup = _MARKUP[self.markup]
        for term, target in self.glossary.items():
            message.glossary.add(source=term, target=target)
        return message


def _check(values: Options | Sampling, kinds: Mapping[str, Kind]) -> None:
    for name, kind in kinds.items():
        value = getattr(values, name)
        if value is None:
            continue
        if kind is int:
            require_whole(name, value)
        elif kind is float:
            require_number(name, value)
        elif kind is bool:
            require(name, value, bool, "give True or False")
        else:
            require_text(name, value)


def _set(message: pb.Options | pb.Sampling, name: str, value: object) -> None:
    if value is None:
        return
    try:
        setattr(message, name, value)
    except ValueError:
        raise ConfigurationError(f"{name} is {value!r}, which is out of range") from None
