"""From the messages of a request to the nouns of the text and of the engine.

What a client asked for and can't have is an ``InvalidArgumentError`` that names the field as the
wire calls it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.core import MAX_SUPPRESSED, FieldError, Options, Sampling
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.text.markup.outline import MarkupOptions
from dragoman_server.text.markup.tokens import Syntax
from dragoman_server.text.plan import PlanOptions
from dragoman_server.text.vocabulary import Vocabulary

MAX_TAGS = 256
"""Most names of elements in each list of a request."""
_TAG_LISTS = ("ignore_tags", "splitting_tags", "inline_tags")
SYNTAXES = {pb.MARKUP_HTML: Syntax.HTML, pb.MARKUP_XML: Syntax.XML}
"""How texts are marked up, by what the wire calls it; those without markup are not there."""
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


_MAX_REMEMBERED = 256
"""Most options whose meaning is remembered: most requests have those of others."""


@dataclass(frozen=True)
class Wanted:
    """What the options of a request come to."""

    engine: Options
    plan: PlanOptions
    mends: bool
    """Whether translations that went wrong are done again."""
    replaces_unknown: bool
    """Whether source words take the place of unknown tokens."""
    markup: MarkupOptions | None
    """How the markup of texts is read; None where they have none."""


def wanted(options: pb.Options, target: Vocabulary, max_target_tokens: int) -> Wanted:
    """Return what the options of a request come to."""
    # What is of one vocabulary, or text, or may be long, is not remembered.
    if options.suppressed_pieces or options.target_prefix or options.glossary:
        return _read(options, _suppressed(options.suppressed_pieces, target), max_target_tokens)
    return _remembered(options.SerializeToString(deterministic=True), max_target_tokens)


@lru_cache(maxsize=_MAX_REMEMBERED)
def _remembered(packed: bytes, max_target_tokens: int) -> Wanted:
    return _read(pb.Options.FromString(packed), [], max_target_tokens)


def _read(options: pb.Options, suppressed: Sequence[int], max_target_tokens: int) -> Wanted:
    return Wanted(
        _engine_options(options, suppressed, max_target_tokens),
        _plan_options(options),
        mends=_is_on(options, "mend"),
        replaces_unknown=_is_on(options, "replace_unknown"),
        markup=markup_options(options),
    )


def _engine_options(
    options: pb.Options, suppressed: Sequence[int], max_target_tokens: int
) -> Options:
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
            suppressed=tuple(suppressed),
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


def _plan_options(options: pb.Options) -> PlanOptions:
    """Return how the texts of a request are to be taken apart."""
    if options.overlong not in pb.OverlongPolicy.values():
        raise InvalidArgumentError(
            "options.overlong", f"is {options.overlong}, which means nothing"
        )
    return PlanOptions(
        split_sentences=_is_on(options, "split_sentences"),
        keep=_is_on(options, "keep_untranslatable"),
        split_overlong=options.overlong != pb.OVERLONG_POLICY_ERROR,
        # A prefix is the client's spelling, which capitals would change.
        recase=_is_on(options, "recase") and not options.target_prefix,
    )


def markup_options(options: pb.Options) -> MarkupOptions | None:
    """Return how the markup of a request's texts is read; None where they have none."""
    if options.markup not in pb.Markup.values():
        raise InvalidArgumentError("options.markup", f"is {options.markup}, which means nothing")
    syntax = SYNTAXES.get(options.markup)
    lists = {name: getattr(options, name) for name in _TAG_LISTS}
    for name, tags in lists.items():
        if tags and syntax is None:
            raise InvalidArgumentError(f"options.{name}", "is for texts with markup")
        if len(tags) > MAX_TAGS:
            raise InvalidArgumentError(
                f"options.{name}", f"has {len(tags)} entries: the limit is {MAX_TAGS}"
            )
    if syntax is None:
        return None
    named = str.lower if syntax is Syntax.HTML else str
    return MarkupOptions(
        syntax=syntax,
        **{name: frozenset(map(named, tags)) for name, tags in lists.items()},
        outline=_is_on(options, "outline"),
        attributes=options.translate_attributes,
    )


def glossary_entries(options: pb.Options, max_entries: int) -> tuple[tuple[str, str], ...]:
    """Return the terms of the glossary that comes with a request, with what stands for each."""
    if len(options.glossary) > max_entries:
        raise InvalidArgumentError(
            "options.glossary",
            f"has {len(options.glossary)} entries: the limit is {max_entries}",
            reason="TOO_LARGE",
        )
    return tuple(
        (" ".join(entry.source.split()), " ".join(entry.target.split()))
        for entry in options.glossary
    )


def _is_on(options: pb.Options, name: str) -> bool:
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


def check_tags(field: str, texts: Sequence[str], max_tags: int) -> None:
    """Refuse a request whose texts have too many tags together."""
    tags = sum(text.count("<") for text in texts)
    if tags > max_tags:
        raise InvalidArgumentError(
            field, f"has {tags} tags: the limit of a request is {max_tags}", reason="TOO_LARGE"
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
