"""From a sentence and its options to a job: checked against the model, with everything decided.

How a sentence is decoded is decided here once, in ``Decoding``. Whoever runs the job reads that,
and does not ask the options again.
"""

import secrets
import time
from dataclasses import dataclass, field
from enum import Enum, auto

from dragoman_server.bundle.manifest import Manifest
from dragoman_server.engine.core import (
    Answer,
    Failure,
    FieldError,
    Hypothesis,
    Options,
    Sentence,
    Ticket,
    Timing,
)
from dragoman_server.runtime.limits import MAX_CANDIDATES
from dragoman_server.runtime.scoring import candidates_of, default_limit


class SentenceError(FieldError):
    """A sentence or option that this model can't take."""


class Selection(Enum):
    """How the next token of a sentence is chosen, where none is given."""

    GREEDY = auto()
    """The most probable token is taken."""
    BEAM = auto()
    """Several hypotheses go on side by side."""
    SAMPLE_CANDIDATES = auto()
    """A token is drawn from the most probable ones, which the step lists."""
    SAMPLE_VOCABULARY = auto()
    """A token is drawn from the whole vocabulary, or from more of it than the step lists."""


@dataclass(frozen=True)
class Decoding:
    """How a sentence is decoded."""

    selection: Selection
    beam: int
    """Rows that the sentence holds: one for each hypothesis of its beam."""
    candidates: int
    """Most probable tokens of each row that the selection looks at."""
    is_plain_greedy: bool
    """Each step takes the best token and nothing else has to be known: no token is given, and no
    alignment is kept. Constraints may hold: they change probabilities before a token is chosen."""
    is_constrained: bool
    """Penalties or bans change the probabilities of some tokens."""
    may_use_shortlist: bool
    """The search is for the best translation whatever its words. A sentence that is sampled, given
    or constrained needs all tokens; a minimum length is no obstacle."""
    keeps_alignment: bool
    """The alignment of each new token with the source is kept."""

    @classmethod
    def of(cls, sentence: Sentence, options: Options, forced: tuple[int, ...]) -> "Decoding":
        """Decide for a sentence whose first tokens are ``forced``."""
        selection, candidates = _selection(options)
        is_penalised = bool(
            options.repetition_penalty != 1.0 or options.no_repeat_ngram or options.suppressed
        )
        is_given = bool(sentence.prefix) or sentence.target is not None
        return cls(
            selection=selection,
            beam=options.beam,
            candidates=candidates,
            is_plain_greedy=selection is Selection.GREEDY and not (options.alignment or forced),
            is_constrained=is_penalised or options.min_tokens > 0,
            may_use_shortlist=options.sampling is None and not is_penalised and not is_given,
            keeps_alignment=options.alignment,
        )


def _selection(options: Options) -> tuple[Selection, int]:
    """Return how tokens are chosen, and from how many candidates."""
    if options.beam > 1:
        return Selection.BEAM, candidates_of(options.beam)
    if options.sampling is None:
        return Selection.GREEDY, 1
    # By the sentence's own options alone, so that a draw never depends on other rows.
    if 0 < options.sampling.top_k <= MAX_CANDIDATES:
        return Selection.SAMPLE_CANDIDATES, options.sampling.top_k
    return Selection.SAMPLE_VOCABULARY, 1


@dataclass(eq=False, slots=True)
class Job:
    """A sentence to decode, with everything decided that depends on the model."""

    ticket: Ticket
    """Name of the sentence, once it is queued."""
    sentence: Sentence
    options: Options
    decoding: Decoding
    forced: tuple[int, ...]
    """Tokens that are given. To translate: the start tokens and the prefix. To score: the start
    tokens, the whole translation and the end token."""
    limit: int
    """Most tokens of the translation, the end token included."""
    seed: int
    """Seed of the draws, where tokens are sampled."""
    stream: bool
    """Tokens are reported as they come."""
    timing: Timing = field(default_factory=Timing)
    """Moments of the sentence's life, which whoever has the job writes down."""

    @property
    def source_length(self) -> int:
        """Source tokens of the sentence with an end token, which some models do without."""
        return len(self.sentence.source) + 1

    def answer(
        self,
        *,
        hypotheses: tuple[Hypothesis, ...] = (),
        failure: Failure | None = None,
        steps: int = 0,
    ) -> Answer:
        """Return the answer of the sentence, which ends now."""
        self.timing.finished = time.monotonic()
        return Answer(
            self.ticket,
            hypotheses=hypotheses,
            failure=failure,
            timing=self.timing,
            source_tokens=len(self.sentence.source),
            steps=steps,
        )


class JobMaker:
    """Makes jobs for one model, and refuses what it can't take."""

    def __init__(self, manifest: Manifest, max_beam: int) -> None:
        self._manifest = manifest
        self._max_beam = max_beam

    def job(self, sentence: Sentence, options: Options, *, stream: bool) -> Job:
        """Return the job of a sentence, without a ticket yet. Raises ``SentenceError``."""
        self._check_tokens(sentence, options)
        if options.beam > self._max_beam:
            raise SentenceError("beam", f"is {options.beam}: this engine takes {self._max_beam}")
        if candidates_of(options.beam) > self._manifest.dimensions.target_vocabulary:
            raise SentenceError("beam", f"is {options.beam}: too large for the vocabulary")
        limit = self._limit(sentence, options)
        forced = (*sentence.start, *sentence.prefix)
        if sentence.target is not None:
            options = Options(length_penalty=options.length_penalty, alignment=options.alignment)
            forced = (*sentence.start, *sentence.target, self._manifest.special_ids.end)
        seed = options.sampling.seed if options.sampling else 0
        if seed is None:
            seed = secrets.randbits(64)
        decoding = Decoding.of(sentence, options, forced)
        return Job(Ticket(-1, -1), sentence, options, decoding, forced, limit, seed, stream)

    def _check_tokens(self, sentence: Sentence, options: Options) -> None:
        sizes, end = self._manifest.dimensions, self._manifest.special_ids.end
        for name, ids, vocabulary in (
            ("source", sentence.source, sizes.source_vocabulary),
            ("start", sentence.start, sizes.target_vocabulary),
            ("prefix", sentence.prefix, sizes.target_vocabulary),
            ("target", sentence.target or (), sizes.target_vocabulary),
            ("suppressed", options.suppressed, sizes.target_vocabulary),
        ):
            if ids and not 0 <= min(ids) <= max(ids) < vocabulary:
                raise SentenceError(name, f"has a token outside the vocabulary of {vocabulary}")
            if name != "source" and end in ids:
                raise SentenceError(name, f"has the end token, {end}")
        if not sentence.source and not self._manifest.source_end:
            raise SentenceError("source", "has no token, and the model adds none")
        max_source = self._manifest.max_source_tokens - 1
        if len(sentence.source) > max_source:
            raise SentenceError(
                "source", f"has {len(sentence.source)} tokens: the model takes {max_source}"
            )

    def _limit(self, sentence: Sentence, options: Options) -> int:
        """Return the most tokens of the translation, the end token included."""
        max_target = self._manifest.max_target_tokens - len(sentence.start)
        if sentence.target is not None:
            if len(sentence.target) >= max_target:
                raise SentenceError(
                    "target",
                    f"has {len(sentence.target)} tokens: the model takes {max_target - 1}",
                )
            return len(sentence.target) + 1
        limit = options.max_tokens
        if limit is None:
            limit = default_limit(len(sentence.source), max_target) + len(sentence.prefix)
            limit = max(limit, options.min_tokens + 1)
        limit = min(limit, max_target)
        for name, tokens in (("prefix", len(sentence.prefix)), ("min_tokens", options.min_tokens)):
            if tokens >= limit:
                raise SentenceError(
                    name, f"is {tokens} tokens: the translation may have {limit}, end included"
                )
        return limit
