"""Between the messages of the wire and the nouns of the engine."""

from collections.abc import Sequence
from typing import Any

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import Finish, Hypothesis, Options, Sampling
from dragoman_server.engine.jobs import SentenceError
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.text.pieces import Pieces

_WIRE_NAMES = {
    "beam": "options.beam_size",
    "n_best": "options.alternatives",
    "length_penalty": "options.length_penalty",
    "temperature": "options.sampling.temperature",
    "top_k": "options.sampling.top_k",
    "top_p": "options.sampling.top_p",
    "seed": "options.sampling.seed",
    "repetition_penalty": "options.repetition_penalty",
    "no_repeat_ngram": "options.no_repeat_ngram_size",
    "suppressed": "options.suppressed_pieces",
    "prefix": "options.target_prefix",
    "min_tokens": "options.min_tokens",
    "max_tokens": "options.max_tokens",
}
"""What the engine calls it, and the wire."""
_FINISH = {Finish.END: pb.FINISH_REASON_END, Finish.LENGTH: pb.FINISH_REASON_LENGTH}


def engine_options(options: pb.Options, target: Pieces, max_target_tokens: int) -> Options:
    """Raises ``InvalidArgumentError`` naming the field."""
    if options.max_tokens > max_target_tokens:
        raise InvalidArgumentError(
            "options.max_tokens", f"is {options.max_tokens}: the limit is {max_target_tokens}"
        )
    given = {
        "beam": _set(options, "beam_size"),
        "n_best": _set(options, "alternatives"),
        "length_penalty": _set(options, "length_penalty"),
        "repetition_penalty": _set(options, "repetition_penalty"),
        "no_repeat_ngram": _set(options, "no_repeat_ngram_size"),
        "min_tokens": _set(options, "min_tokens"),
        "max_tokens": _set(options, "max_tokens"),
    }
    try:
        return Options(
            **{name: value for name, value in given.items() if value is not None},
            sampling=_sampling(options.sampling) if options.HasField("sampling") else None,
            suppressed=tuple(_suppressed(options.suppressed_pieces, target)),
            alignment=options.alignment,
        )
    except ValueError as error:
        name, _, problem = str(error).partition(" ")
        raise InvalidArgumentError(_WIRE_NAMES.get(name, f"options.{name}"), problem) from None


def wire_error(error: SentenceError, where: str) -> InvalidArgumentError:
    """What the engine says of a sentence, in the words of the wire; ``where`` has the text."""
    return InvalidArgumentError(_WIRE_NAMES.get(error.field, where), error.problem)


def finish_reason(finish: Finish) -> pb.FinishReason:
    return _FINISH[finish]


def token_scores(hypothesis: Hypothesis, target: Pieces, end: int) -> list[pb.TokenScore]:
    return [
        pb.TokenScore(piece=target.piece(token), log_prob=log_prob)
        for token, log_prob in zip((*hypothesis.ids, end), hypothesis.token_log_probs, strict=True)
    ]


def alignment(
    hypothesis: Hypothesis, source_ids: Sequence[int], source: Pieces, target: Pieces, end: int
) -> pb.Alignment | None:
    if hypothesis.alignment is None:
        return None
    return pb.Alignment(
        source_pieces=[source.piece(token) for token in (*source_ids, end)],
        target_pieces=[target.piece(token) for token in (*hypothesis.ids, end)],
        rows=[pb.AlignmentRow(weights=row) for row in hypothesis.alignment.tolist()],
    )


def _set(options: pb.Options | pb.Sampling, name: str) -> Any:
    return getattr(options, name) if options.HasField(name) else None


def _sampling(sampling: pb.Sampling) -> Sampling:
    names = ("temperature", "top_k", "top_p", "seed")
    given = {name: _set(sampling, name) for name in names}
    return Sampling(**{name: value for name, value in given.items() if value is not None})


def _suppressed(pieces: Sequence[str], target: Pieces) -> list[int]:
    found: list[int] = []
    for number, piece in enumerate(pieces):
        token = target.find(piece)
        if token is None:
            raise InvalidArgumentError(
                f"options.suppressed_pieces[{number}]", "is not in the model's vocabulary"
            )
        found.append(token)
    return found
