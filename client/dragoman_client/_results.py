"""What the server answers, as values of the SDK."""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING

from dragoman.v1 import translation_pb2 as pb
from dragoman_client._field_docs import documented

if TYPE_CHECKING:
    Span = slice[int, int, None]  # at run time, only since Python 3.14
else:
    Span = slice


class FinishReason(Enum):
    """Why a translation ended."""

    END = "end"
    """The model ended the translation."""
    LENGTH = "length"
    """The translation reached its maximum length."""


@documented
@dataclass(frozen=True)
class Token:
    """A token of a translation."""

    piece: str
    """Spelling of the token in the vocabulary; "▁" stands for a space."""
    log_prob: float
    """Natural logarithm of the token's probability."""


@documented
@dataclass(frozen=True)
class Alignment:
    """Which source tokens each target token was translated from; the end token is the last."""

    source_pieces: tuple[str, ...]
    """Spellings of the source tokens."""
    target_pieces: tuple[str, ...]
    """Spellings of the target tokens."""
    weights: tuple[tuple[float, ...], ...]
    """For each target token, how much it looked at each source token; each row sums to 1."""


@documented
@dataclass(frozen=True)
class Alternative:
    """Another translation of a sentence."""

    text: str
    """The other translation."""
    score: float
    """Log-probability of the translation divided by its length; nearer to 0 is better."""
    log_prob: float
    """Natural logarithm of the translation's probability."""
    finish_reason: FinishReason
    """Why the translation ended."""


@documented
@dataclass(frozen=True)
class Segment:
    """A sentence of a text, and its translation."""

    source: Span
    """Where the sentence stands in the text, in characters: a slice, as ``text[segment.source]``
    wants it."""
    target: Span
    """Where the sentence's translation stands in the translated text, in characters: a slice."""
    score: float
    """Log-probability of the translation divided by its length; nearer to 0 is better."""
    log_prob: float
    """Natural logarithm of the translation's probability."""
    finish_reason: FinishReason
    """Why the sentence's translation ended."""
    source_tokens: int
    """Tokens of the sentence, its end token not counted."""
    target_tokens: int
    """Tokens of the translation, its end token not counted."""
    tokens: tuple[Token, ...] = ()
    """Tokens of the translation, the end token last; with ``Options.token_scores``."""
    alignment: Alignment | None = None
    """Which source tokens the translation's tokens come from; with ``Options.alignment``."""
    alternatives: tuple[Alternative, ...] = ()
    """Best translations of the sentence, best first; with ``Options.alternatives``."""


@documented
@dataclass(frozen=True)
class Timing:
    """Where the time of a call went on the server, in seconds."""

    prepare: float
    """Seconds in which the text was split into sentences and tokens."""
    queue: float
    """Seconds that the slowest sentence waited for its rows."""
    first_token: float
    """Seconds from when the slowest sentence got its rows to its first token."""
    decode: float
    """Seconds from the slowest sentence's first token to its last."""
    total: float
    """Seconds from the request's arrival to the response."""
    encode: float = 0.0
    """Seconds of ``first_token`` that the encoder took."""


class WarningCode(Enum):
    """What may be wrong with a translation."""

    EMPTY = "empty"
    """The model wrote nothing, and the source stands in place of the translation."""
    LOOP = "loop"
    """The translation repeated itself, and was cut off there."""
    NUMBERS = "numbers"
    """The translation has other numbers than its source."""
    GLOSSARY = "glossary"
    """A term of the glossary does not stand in the translation as it was asked for."""
    OTHER = "other"
    """Something that this version of the SDK does not know."""


@documented
@dataclass(frozen=True)
class TranslationWarning:
    """Something that may be wrong with a translation, and could not be mended."""

    code: WarningCode
    """What may be wrong."""
    segment: int
    """Number of the sentence in ``Translation.segments``."""
    entry: int | None = None
    """Number of the term in ``Options.glossary``, where it is about one."""


@documented
@dataclass(frozen=True)
class DetectedLanguage:
    """A language that a text may be in."""

    language: str
    """Tag of the language, as ``Model.source_languages`` has it."""
    confidence: float
    """How sure the server is, from 0 to 1; 0 where the text has no letters."""


@documented
@dataclass(frozen=True)
class Translation:
    """A text that was translated."""

    text: str
    """The translated text."""
    score: float
    """Mean of the sentences' scores, weighted by their tokens; nearer to 0 is better."""
    finish_reason: FinishReason
    """Why the translation ended: LENGTH where any sentence reached its maximum length."""
    source_tokens: int
    """Tokens of all sentences of the source."""
    target_tokens: int
    """Tokens of all translated sentences."""
    model: str
    """Name of the model that translated."""
    segments: tuple[Segment, ...]
    """Sentences of the text in their order; what is between them is as it was."""
    timing: Timing | None = None
    """Where the time of the call went; with ``Options.timing``."""
    detected_language: DetectedLanguage | None = None
    """Language that the text was taken to be in; where ``source_language`` was "auto"."""
    warnings: tuple[TranslationWarning, ...] = ()
    """What may be wrong with the translation, and could not be mended."""

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """Translations of a text of one sentence; a text of more has them in its segments."""
        return self.segments[0].alternatives if len(self.segments) == 1 else ()


@documented
@dataclass(frozen=True)
class Score:
    """How probable a model finds a translation."""

    score: float
    """Log-probability of the translation divided by its length; nearer to 0 is better."""
    log_prob: float
    """Natural logarithm of the translation's probability, its end included."""
    source_tokens: int
    """Tokens of the sentence, its end token not counted."""
    target_tokens: int
    """Tokens of the translation, its end token not counted."""
    tokens: tuple[Token, ...] = ()
    """Tokens of the translation, the end token last; with ``token_scores``."""


@documented
@dataclass(frozen=True)
class Model:
    """A model that a server has loaded."""

    name: str
    """Name of the model, by which a call may ask for it."""
    version: str
    """Version of the model, as its bundle has it."""
    source_language: str
    """Tag of the language that the model translates from; "mul" stands for several."""
    target_language: str
    """Tag of the language that the model translates to; "mul" stands for several."""
    precision: str
    """Type of numbers that the model computes with: float32, int8 or float16."""
    device: str
    """Device that the model runs on: cpu or cuda."""
    max_source_tokens: int
    """Most tokens of a sentence, its end token included."""
    max_target_tokens: int
    """Most tokens of a translated sentence, its end token included."""
    max_beam_size: int
    """Largest beam that a call may ask for."""
    rows: int
    """Sentences, or hypotheses of beams, that are decoded at a time."""
    licence: str
    """Licence of the model, as its bundle names it."""
    source_languages: tuple[str, ...] = ()
    """Tags of all languages that the model translates from; empty where its bundle names none."""
    target_languages: tuple[str, ...] = ()
    """Tags of all languages that the model translates to; empty where its bundle names none."""


_SEVERAL = "mul"
"""Tag that stands for several languages."""
_FINISH = {
    pb.FINISH_REASON_LENGTH: FinishReason.LENGTH,
    pb.FINISH_REASON_END: FinishReason.END,
    pb.FINISH_REASON_UNSPECIFIED: FinishReason.END,
}
_WARNINGS = {
    pb.WARNING_CODE_EMPTY: WarningCode.EMPTY,
    pb.WARNING_CODE_LOOP: WarningCode.LOOP,
    pb.WARNING_CODE_NUMBERS: WarningCode.NUMBERS,
    pb.WARNING_CODE_GLOSSARY: WarningCode.GLOSSARY,
}


def translation(message: pb.Translation) -> Translation:
    return Translation(
        text=message.text,
        score=message.score,
        finish_reason=_finish(message.finish_reason),
        source_tokens=message.source_tokens,
        target_tokens=message.target_tokens,
        model=message.model,
        segments=tuple(_segment(segment) for segment in message.segments),
        timing=_timing(message.timing) if message.HasField("timing") else None,
        detected_language=detected(message.detected_language)
        if message.HasField("detected_language")
        else None,
        warnings=tuple(map(_warning, message.warnings)),
    )


def detected(message: pb.DetectedLanguage) -> DetectedLanguage:
    return DetectedLanguage(message.language, message.confidence)


def score(message: pb.SentenceScore) -> Score:
    return Score(
        message.score,
        message.log_prob,
        message.source_tokens,
        message.target_tokens,
        _tokens(message),
    )


def model(message: pb.Model) -> Model:
    values = {name: getattr(message, name) for name in Model.__dataclass_fields__}
    for side in ("source", "target"):
        # A server of before these fields names one language alone, or says that there are several.
        one = values[f"{side}_language"]
        told = tuple(values[f"{side}_languages"])
        values[f"{side}_languages"] = told or ((one,) if one not in ("", _SEVERAL) else ())
    return Model(**values)


def _segment(message: pb.Segment) -> Segment:
    return Segment(
        source=slice(message.source.start, message.source.end),
        target=slice(message.target.start, message.target.end),
        score=message.score,
        log_prob=message.log_prob,
        finish_reason=_finish(message.finish_reason),
        source_tokens=message.source_tokens,
        target_tokens=message.target_tokens,
        tokens=_tokens(message),
        alignment=_alignment(message.alignment) if message.HasField("alignment") else None,
        alternatives=tuple(
            Alternative(a.text, a.score, a.log_prob, _finish(a.finish_reason))
            for a in message.alternatives
        ),
    )


def _warning(message: pb.TranslationWarning) -> TranslationWarning:
    return TranslationWarning(
        _WARNINGS.get(message.code, WarningCode.OTHER),
        message.segment,
        message.entry if message.HasField("entry") else None,
    )


def _tokens(message: pb.Segment | pb.SentenceScore) -> tuple[Token, ...]:
    return tuple(Token(token.piece, token.log_prob) for token in message.tokens)


def _alignment(message: pb.Alignment) -> Alignment:
    return Alignment(
        tuple(message.source_pieces),
        tuple(message.target_pieces),
        tuple(tuple(row.weights) for row in message.rows),
    )


def _finish(reason: pb.FinishReason) -> FinishReason:
    return _FINISH.get(reason, FinishReason.END)


def _timing(message: pb.Timing) -> Timing:
    def seconds(name: str) -> float:
        duration: timedelta = getattr(message, name).ToTimedelta()
        return duration.total_seconds()

    return Timing(**{name: seconds(name) for name in Timing.__dataclass_fields__})
