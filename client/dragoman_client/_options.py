"""Options of a call: how to translate, and what else to return."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._errors import ConfigurationError
from dragoman_client._types import (
    require,
    require_number,
    require_text,
    require_whole,
    wrong_type,
)

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
    "token_scores": bool,
    "alignment": bool,
    "timing": bool,
}
"""Options that have the same name and type on the wire, with their types."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Draw tokens instead of taking the best."""

    temperature: float | None = None
    """Factor that flattens (above 1) or sharpens (below 1) the probabilities."""
    top_k: int | None = None
    """Draw from this many of the most probable tokens; 0 for all."""
    top_p: float | None = None
    """Draw from the fewest tokens that have this much probability together."""
    seed: int | None = None
    """Number that settles the draws: the same one repeats them, whatever else the server does."""

    def __post_init__(self) -> None:
        _check(self, _SAMPLING_KINDS)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to translate. What is None is left to the server."""

    beam_size: int | None = None
    """Hypotheses that the search keeps at a time; 1 is greedy search."""
    alternatives: int | None = None
    """Translations to return of each sentence, at most ``beam_size``."""
    length_penalty: float | None = None
    """Exponent of the length that a log-probability is divided by to give a score."""
    sampling: Sampling | None = None
    """Draw tokens instead of searching for the best."""
    repetition_penalty: float | None = None
    """Factor above 1 that makes tokens less probable that have occurred already."""
    no_repeat_ngram_size: int | None = None
    """Tokens in a row that may not occur twice; 0 for no limit."""
    suppressed_pieces: Sequence[str] = ()
    """Pieces of the model's vocabulary that must not occur."""
    target_prefix: str | None = None
    """Text that the translation begins with; for a text of one sentence."""
    min_tokens: int | None = None
    """Least tokens of each translated sentence, its end token not counted."""
    max_tokens: int | None = None
    """Most tokens of each translated sentence, its end token included."""
    split_overlong: bool | None = None
    """False: a sentence that is longer than the model takes is an error."""
    split_sentences: bool | None = None
    """False: each line is translated in one go."""
    keep_untranslatable: bool | None = None
    """False: the model is given addresses, emoji and markup too."""
    mend: bool | None = None
    """False: a translation that is empty, repeats itself or has other numbers is not done again."""
    replace_unknown: bool | None = None
    """False: an unknown token of a translation is left out, and not replaced by a source word."""
    token_scores: bool = False
    """Also return each token with its log-probability."""
    alignment: bool = False
    """Also return which source tokens each target token was translated from."""
    timing: bool = False
    """Also return where the time went."""

    def __post_init__(self) -> None:
        if self.sampling is not None:
            require("sampling", self.sampling, Sampling, "give Sampling(temperature=…)")
        if isinstance(self.suppressed_pieces, str) or not isinstance(
            self.suppressed_pieces, Sequence
        ):
            raise wrong_type("suppressed_pieces", self.suppressed_pieces, "a list of str")
        for number, piece in enumerate(self.suppressed_pieces):
            require_text(f"suppressed_pieces[{number}]", piece)
        if self.split_overlong is not None:
            require("split_overlong", self.split_overlong, bool, "give True or False")
        _check(self, _KINDS)
        self.to_message()

    def to_message(self) -> pb.Options:
        """Return the message. Raises ``ConfigurationError`` for what the wire can't carry."""
        message = pb.Options(suppressed_pieces=self.suppressed_pieces)
        for name in _KINDS:
            _set(message, name, getattr(self, name))
        if self.sampling is not None:
            message.sampling.SetInParent()
            for name in _SAMPLING_KINDS:
                _set(message.sampling, name, getattr(self.sampling, name))
        if self.split_overlong is not None:
            message.overlong = (
                pb.OVERLONG_POLICY_SPLIT if self.split_overlong else pb.OVERLONG_POLICY_ERROR
            )
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
