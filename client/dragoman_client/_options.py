"""How to translate, as the SDK has it."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Draw tokens instead of taking the best."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    """Repeats the same draws, whatever else the server does."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is None is left to the server."""

    beam_size: int | None = None
    """1 is greedy search."""
    alternatives: int | None = None
    """Translations of each sentence, at most the beam."""
    length_penalty: float | None = None
    sampling: Sampling | None = None
    repetition_penalty: float | None = None
    no_repeat_ngram_size: int | None = None
    suppressed_pieces: Sequence[str] = ()
    """Pieces of the model's vocabulary that must not occur."""
    target_prefix: str | None = None
    """How the translation begins; for a text of one sentence."""
    min_tokens: int | None = None
    max_tokens: int | None = None
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
    alignment: bool = False
    timing: bool = False

    def to_message(self) -> pb.Options:
        """Raises ``ConfigurationError`` for what the wire can't carry; the rest is the server's."""
        message = pb.Options()
        for name in _PLAIN:
            _set(message, name, getattr(self, name))
        if isinstance(self.suppressed_pieces, str):
            raise ConfigurationError("suppressed_pieces is one text: give a list")
        try:
            message.suppressed_pieces.extend(self.suppressed_pieces)
        except (TypeError, ValueError):
            raise ConfigurationError("suppressed_pieces are not all texts") from None
        if self.sampling is not None:
            message.sampling.SetInParent()
            for name in ("temperature", "top_k", "top_p", "seed"):
                _set(message.sampling, name, getattr(self.sampling, name))
        if self.split_overlong is not None:
            message.overlong = (
                pb.OVERLONG_POLICY_SPLIT if self.split_overlong else pb.OVERLONG_POLICY_ERROR
            )
        return message


def _set(message: pb.Options | pb.Sampling, name: str, value: object) -> None:
    if value is None:
        return
    try:
        setattr(message, name, value)
    except TypeError:
        raise ConfigurationError(f"{name} is {value!r}, which is of the wrong type") from None
    except ValueError:
        raise ConfigurationError(f"{name} is {value!r}, which is out of range") from None


_PLAIN = (
    *("beam_size", "alternatives", "length_penalty", "repetition_penalty"),
    *("no_repeat_ngram_size", "target_prefix", "min_tokens", "max_tokens"),
    *("split_sentences", "keep_untranslatable", "mend", "replace_unknown"),
    *("token_scores", "alignment", "timing"),
)
"""What has the same name and type on the wire."""
