"""What the server answers, as values of the SDK."""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from dragoman.v1 import translation_pb2 as pb


class FinishReason(Enum):
    END = "end"
    """The model ended the sentence."""
    LENGTH = "length"
    """It was ended at the maximum length."""


@dataclass(frozen=True)
class Token:
    piece: str
    """As the vocabulary has it; "▁" stands for a space."""
    log_prob: float


@dataclass(frozen=True)
class Alignment:
    source_pieces: tuple[str, ...]
    target_pieces: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    """For each target piece, how much it looked at each source piece."""


@dataclass(frozen=True)
class Alternative:
    text: str
    score: float
    log_prob: float
    finish_reason: FinishReason


@dataclass(frozen=True)
class Segment:
    """A sentence: where it stands in the source and in the translation, in characters."""

    source: slice
    target: slice
    score: float
    log_prob: float
    finish_reason: FinishReason
    source_tokens: int
    target_tokens: int
    tokens: tuple[Token, ...] = ()
    alignment: Alignment | None = None
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True)
class Timing:
    """Seconds, on the server."""

    prepare: float
    queue: float
    first_token: float
    decode: float
    total: float
    encode: float = 0.0
    """The encoder's part of ``first_token``."""


@dataclass(frozen=True)
class Translation:
    text: str
    score: float
    """Log-probability by length; nearer to 0 is surer."""
    finish_reason: FinishReason
    source_tokens: int
    target_tokens: int
    model: str
    segments: tuple[Segment, ...]
    timing: Timing | None = None

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """Of a text of one sentence; a text of more has them in its segments."""
        return self.segments[0].alternatives if len(self.segments) == 1 else ()


@dataclass(frozen=True)
class Score:
    score: float
    log_prob: float
    source_tokens: int
    target_tokens: int
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Model:
    name: str
    version: str
    source_language: str
    target_language: str
    precision: str
    device: str
    max_source_tokens: int
    max_target_tokens: int
    max_beam_size: int
    rows: int
    licence: str


_FINISH = {
    pb.FINISH_REASON_LENGTH: FinishReason.LENGTH,
    pb.FINISH_REASON_END: FinishReason.END,
    pb.FINISH_REASON_UNSPECIFIED: FinishReason.END,
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
    )


def score(message: pb.SentenceScore) -> Score:
    return Score(
        message.score,
        message.log_prob,
        message.source_tokens,
        message.target_tokens,
        _tokens(message),
    )


def model(message: pb.Model) -> Model:
    return Model(**{name: getattr(message, name) for name in Model.__dataclass_fields__})


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
