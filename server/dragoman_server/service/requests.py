"""From the messages of a request to the nouns of the text and of the engine.

What a client asked for and can't have is an ``InvalidArgumentError`` that names the field as the
wire calls it.
"""

from collections.abc import Sequence
from typing import Any

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import MAX_SUPPRESSED, FieldError, Options, Sampling
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
"""The fields of the wire, by what the engine calls them."""


def engine_options(options: pb.Options, target: Vocabulary, max_target_tokens: int) -> Options:
    """Return the options of the engine that a request asks for."""
    for name, limit in (("max_tokens", max_target_tokens), ("min_tokens", max_target_tokens - 1)):
        if getattr(options, name) > limit:
            raise InvalidArgumentError(
                f"options.{name}", f"is {getattr(options, name)}: the limit is {limit}"
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
    except FieldError as error:
        raise wire_error(error, f"options.{error.field}") from None


def score_options(request: pb.ScoreRequest) -> Options:
    """Return the options of the engine that a request for scores asks for."""
    if not request.HasField("length_penalty"):
        return Options()
    try:
        return Options(length_penalty=request.length_penalty)
    except FieldError as error:
        raise InvalidArgumentError(error.field, error.problem) from None


def plan_options(options: pb.Options) -> PlanOptions:
    """Return how the texts of a request are to be taken apart."""
    if options.overlong not in pb.OverlongPolicy.values():
        raise InvalidArgumentError(
            "options.overlong", f"is {options.overlong}, which means nothing"
        )
    return PlanOptions(
        split_sentences=is_on(options, "split_sentences"),
        keep=is_on(options, "keep_untranslatable"),
        split_overlong=options.overlong != pb.OVERLONG_POLICY_ERROR,
    )


def is_on(options: pb.Options, name: str) -> bool:
    """Return a switch of the options that is on where a client says nothing."""
    return not options.HasField(name) or bool(getattr(options, name))


def check_tokens(field: str, tokens: int, max_tokens: int) -> None:
    """Refuse a request whose texts have too many source tokens together."""
    if tokens > max_tokens:
        raise InvalidArgumentError(
            field,
            f"has {tokens} tokens: the limit of a request is {max_tokens}",
            reason="TOO_LARGE",
        )


def wire_error(error: FieldError, otherwise: str) -> InvalidArgumentError:
    """Return what the engine refuses in the words of the wire.

    ``otherwise`` is the field for what has no name of its own there, such as a text's tokens.
    """
    return InvalidArgumentError(_WIRE_NAMES.get(error.field, otherwise), error.problem)


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
