"""Between the messages of the wire and the nouns of the engine."""

from collections.abc import Sequence
from typing import Any

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import MAX_SUPPRESSED, Finish, Hypothesis, Options, Sampling
from dragoman_server.engine.jobs import SentenceError
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.text.plan import PlanOptions
from dragoman_server.text.vocabulary import Vocabulary

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


def engine_options(options: pb.Options, target: Vocabulary, max_target_tokens: int) -> Options:
    """Raises ``InvalidArgumentError`` naming the field."""
    for name, most in (("max_tokens", max_target_tokens), ("min_tokens", max_target_tokens - 1)):
        if getattr(options, name) > most:
            raise InvalidArgumentError(
                f"options.{name}", f"is {getattr(options, name)}: the limit is {most}"
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


def plan_options(options: pb.Options) -> PlanOptions:
    if options.overlong not in pb.OverlongPolicy.values():
        raise InvalidArgumentError(
            "options.overlong", f"is {options.overlong}, which means nothing"
        )
    return PlanOptions(
        split_sentences=not options.HasField("split_sentences") or options.split_sentences,
        keep=not options.HasField("keep_untranslatable") or options.keep_untranslatable,
        split_overlong=options.overlong != pb.OVERLONG_POLICY_ERROR,
    )


def check_tokens(field: str, tokens: int, most: int) -> None:
    """Of a request, together."""
    if tokens > most:
        raise InvalidArgumentError(
            field, f"has {tokens} tokens: the limit of a request is {most}", reason="TOO_LARGE"
        )


def wire_error(error: SentenceError, where: str) -> InvalidArgumentError:
    """What the engine says of a sentence, in the words of the wire; ``where`` has the text."""
    return InvalidArgumentError(_WIRE_NAMES.get(error.field, where), error.problem)


def finish_reason(finish: Finish) -> pb.FinishReason:
    return _FINISH[finish]


def token_scores(hypothesis: Hypothesis, target: Vocabulary, end: int) -> list[pb.TokenScore]:
    return [
        pb.TokenScore(piece=target.piece(token), log_prob=log_prob)
        for token, log_prob in zip((*hypothesis.ids, end), hypothesis.token_log_probs, strict=True)
    ]


def alignment(
    hypothesis: Hypothesis,
    source_ids: Sequence[int],
    source: Vocabulary,
    target: Vocabulary,
    end: int,
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


def _suppressed(pieces: Sequence[str], target: Vocabulary) -> list[int]:
    if len(pieces) > MAX_SUPPRESSED:  # before each is looked up
        raise InvalidArgumentError(
            "options.suppressed_pieces",
            f"has {len(pieces)} entries: the limit is {MAX_SUPPRESSED}",
        )
    found: list[int] = []
    for number, piece in enumerate(pieces):
        token = target.find(piece)
        if token is None:
            raise InvalidArgumentError(
                f"options.suppressed_pieces[{number}]", "is not in the model's vocabulary"
            )
        found.append(token)
    return found
