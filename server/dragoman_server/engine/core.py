"""The nouns of the engine: what is asked of it, and what it answers.

Everything here is plain values over token ids. A *request* is a list of sentences with the same
options; each of its sentences is answered exactly once, with hypotheses or with a failure.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MAX_SUPPRESSED = 256
"""Most tokens that a request may suppress."""


class FieldError(ValueError):
    """An option or a sentence that can't be taken: which field it is, and what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn, where the best is not always taken."""

    temperature: float = 1.0
    """Divides the log-probabilities before a draw: above 1, unlikely tokens come more often."""
    top_k: int = 0
    """Number of most probable tokens to draw from; 0 draws from the whole vocabulary."""
    top_p: float = 1.0
    """Draws are from the fewest most probable tokens that have this much probability together."""
    seed: int | None = None
    """Seed of the draws: the same one repeats them, whatever else runs. Unset, they differ."""

    def __post_init__(self) -> None:
        if not 0.01 <= self.temperature <= 100:
            raise FieldError("temperature", f"is {self.temperature}: it must be from 0.01 to 100")
        if self.top_k < 0:
            raise FieldError("top_k", f"is {self.top_k}: it must be at least 0")
        if not 0 < self.top_p <= 1:
            raise FieldError("top_p", f"is {self.top_p}: it must be above 0 and at most 1")
        if self.seed is not None and not 0 <= self.seed < 2**64:
            raise FieldError("seed", f"is {self.seed}: it must be from 0 to 2^64 - 1")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the sentences of a request are translated."""

    beam: int = 1
    """Hypotheses of a sentence that are kept at a time; 1 is greedy search."""
    n_best: int = 1
    """Translations to return for each sentence, at most the beam."""
    length_penalty: float = 1.0
    """alpha: a score is the log-probability divided by length^alpha."""
    sampling: Sampling | None = None
    """How tokens are drawn; unset, the best ones are searched for."""
    repetition_penalty: float = 1.0
    """Penalty of tokens that occurred: divides their logit where it is positive, multiplies it
    where it is negative."""
    no_repeat_ngram: int = 0
    """Length of token sequences that may not occur twice; 0 allows all."""
    suppressed: tuple[int, ...] = ()
    """Tokens that never occur."""
    min_tokens: int = 0
    """Fewest tokens of a translation, the end token not counted."""
    max_tokens: int | None = None
    """Most tokens of a translation, the end token counted.

    Unset: 2 x source + 10, and room for the prefix and ``min_tokens``. Never above the model's
    limit.
    """
    alignment: bool = False
    """Whether to return how much each token looked at each source token."""

    def __post_init__(self) -> None:
        for name, minimum in (
            ("beam", 1),
            ("n_best", 1),
            ("no_repeat_ngram", 0),
            ("min_tokens", 0),
        ):
            if getattr(self, name) < minimum:
                problem = f"is {getattr(self, name)}: it must be at least {minimum}"
                raise FieldError(name, problem)
        if self.n_best > self.beam:
            raise FieldError(
                "n_best", f"is {self.n_best}: it must be at most the beam size, {self.beam}"
            )
        if self.max_tokens is not None and self.max_tokens <= self.min_tokens:
            raise FieldError(
                "max_tokens",
                f"is {self.max_tokens}: it must be above min_tokens, {self.min_tokens}",
            )
        if not 0 <= self.length_penalty <= 10:
            raise FieldError("length_penalty", f"is {self.length_penalty}: it must be from 0 to 10")
        if not 0.01 <= self.repetition_penalty <= 100:
            raise FieldError(
                "repetition_penalty",
                f"is {self.repetition_penalty}: it must be from 0.01 to 100",
            )
        # Each is a number for every row of a step, so there can't be any number of them.
        object.__setattr__(self, "suppressed", tuple(sorted({*self.suppressed})))
        if len(self.suppressed) > MAX_SUPPRESSED:
            raise FieldError(
                "suppressed", f"has {len(self.suppressed)} tokens: it may have {MAX_SUPPRESSED}"
            )
        if self.sampling is not None and self.beam > 1:
            raise FieldError("beam", f"is {self.beam}: sampling needs a beam of 1")


GREEDY = Options()
"""The default options: greedy search."""


@dataclass(frozen=True)
class Sentence:
    """A sentence to translate or to score, as token ids without begin and end."""

    source: tuple[int, ...]
    """Tokens of the sentence."""
    prefix: tuple[int, ...] = ()
    """Tokens that the translation has to begin with."""
    target: tuple[int, ...] | None = None
    """Translation to score, instead of searching for one."""
    start: tuple[int, ...] = ()
    """Tokens that decoding begins with and that are no part of the translation, such as the token
    of a language. They cost nothing, and no length or limit counts them."""

    def __post_init__(self) -> None:
        if self.target is not None and self.prefix:
            raise FieldError("prefix", "and target are both given: a target is scored as it is")


class Finish(Enum):
    """Why a hypothesis ends where it does."""

    END = "end"
    """The model chose the end token."""
    LENGTH = "length"
    """The end token was forced at the limit."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A translation that was found, or a given one that was scored."""

    ids: tuple[int, ...]
    """Tokens of the translation, without begin and end."""
    log_prob: float
    """Log-probability of the translation: the sum over its tokens, the end token included."""
    score: float
    """``log_prob`` divided by length^alpha; the length counts the end token."""
    finish: Finish
    """Why the translation ends where it does."""
    token_log_probs: tuple[float, ...]
    """Log-probability of each token, the end token last."""
    alignment: npt.NDArray[np.float32] | None = None
    """How much each token looked at each source token, where that was asked for.

    A line for each target token, a column for each source token, both with their end token.
    """


class Failure(Enum):
    """Why a sentence has no translation."""

    CANCELLED = "cancelled"
    """The request was cancelled."""
    EXPIRED = "expired"
    """The deadline of the request passed, or would have."""
    POISONED = "poisoned"
    """The model computed something that is not a number for this sentence."""
    FAULT = "fault"
    """A call of a graph that the sentence took part in failed."""
    STOPPED = "stopped"
    """The engine was closed."""


class Ticket(NamedTuple):
    """The name of a sentence: which sentence of which request."""

    request: int
    """Number of the request, in order of submission."""
    sentence: int
    """Place of the sentence in its request, from 0."""


@dataclass
class Timing:
    """Moments of a sentence's life, on ``time.monotonic()``; 0 where it did not come so far."""

    submitted: float = 0.0
    """Moment at which the sentence was queued."""
    admitted: float = 0.0
    """Moment at which a lane gave the sentence its rows."""
    encoded: float = 0.0
    """Moment at which the source was encoded."""
    first_token: float = 0.0
    """Moment at which the first step of the sentence ended."""
    finished: float = 0.0
    """Moment at which the sentence was answered."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The end of a sentence: hypotheses, best first, or a failure."""

    ticket: Ticket
    hypotheses: tuple[Hypothesis, ...] = ()
    """Hypotheses, best first; none where the sentence failed."""
    failure: Failure | None = None
    """Why there are no hypotheses; None where there are."""
    timing: Timing = field(default_factory=Timing)
    source_tokens: int = 0
    """Source tokens of the sentence, without the end token."""
    steps: int = 0
    """Decoder steps that the sentence took part in."""


class NewToken(NamedTuple):
    """One more token of a sentence that is streamed."""

    ticket: Ticket
    token: int
    """Token id."""
    log_prob: float
    """Log-probability of the token."""


@dataclass(eq=False)
class Report:
    """What one turn of one lane came to: plain numbers, for whoever exports metrics.

    Turns before it in which there was nothing but a step can be part of the same report.
    """

    lane: int
    """Number of the lane."""
    tokens: list[NewToken] = field(default_factory=list)
    """New tokens of the sentences that are streamed."""
    answers: list[Answer] = field(default_factory=list)
    """Answers of the sentences that ended."""
    rows: int = 0
    """Rows that took part in the last step; 0 where there was none."""
    encoded: int = 0
    """Sentences that were encoded."""
    source_tokens: int = 0
    """Source tokens that were encoded, end tokens included."""
    padding: int = 0
    """Source positions that the encoder computed for nothing."""
    target_tokens: int = 0
    """Tokens of the best hypotheses of the answers, end tokens included."""
    encode_seconds: float = 0.0
    """Seconds in the encoder's graph."""
    step_seconds: float = 0.0
    """Seconds of the last step in the decoder's graph."""
    graph_seconds: float = 0.0
    """Seconds in any graph."""
    turn_seconds: float = 0.0
    """Seconds of the whole turn, from the decision what to do until it is done."""
    faults: int = 0
    """Calls of a graph that failed."""
    earlier_steps: list[tuple[int, float]] = field(default_factory=list)
    """Rows and seconds of the steps before the last: of the same turn, and of earlier ones. The
    other seconds of these are in the sums here."""

    @property
    def has_news(self) -> bool:
        """Whether someone waits for what is in here."""
        return bool(self.tokens or self.answers or self.faults)

    @property
    def is_step_only(self) -> bool:
        """Whether nothing happened but a step."""
        return bool(self.rows and not self.encoded and not self.has_news)

    def add_step(self, rows: int, seconds: float) -> None:
        """Take note of a step."""
        if self.rows:
            self.earlier_steps.append((self.rows, self.step_seconds))
        self.rows, self.step_seconds = rows, seconds

    def add_earlier(self, earlier: "Report") -> None:
        """Take in the report of the turns before, in which nothing happened but steps."""
        earlier.earlier_steps.append((earlier.rows, earlier.step_seconds))
        self.earlier_steps = earlier.earlier_steps + self.earlier_steps
        self.graph_seconds += earlier.graph_seconds
        self.turn_seconds += earlier.turn_seconds
