"""The nouns of the engine: what is asked of it, and what it answers.

Everything here is plain values over token ids. A *request* is a list of sentences with the same
options; each of its sentences is answered exactly once, with hypotheses or with a failure.
"""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt

MAX_SUPPRESSED = 256


class FieldError(ValueError):
    """An option or a sentence that can't be taken: which field it is, and what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Draw each token instead of taking the best."""

    temperature: float = 1.0
    top_k: int = 0
    """Draw from so many of the most probable tokens; 0: from all."""
    top_p: float = 1.0
    """Draw from the fewest of the most probable tokens that have this much probability together."""
    seed: int | None = None
    """Repeats the same draws, whatever else runs; unset: different ones each time."""

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
    """How the sentences of a request are to be translated."""

    beam: int = 1
    """Hypotheses kept at a time; 1 is greedy search."""
    n_best: int = 1
    """Translations to return, at most the beam."""
    length_penalty: float = 1.0
    """alpha: a score is the log-probability divided by length^alpha."""
    sampling: Sampling | None = None
    repetition_penalty: float = 1.0
    """Scores of tokens that occurred are divided by it where positive, multiplied elsewhere."""
    no_repeat_ngram: int = 0
    """No sequence of so many tokens occurs twice; 0: any may."""
    suppressed: tuple[int, ...] = ()
    """Tokens that never occur."""
    min_tokens: int = 0
    """The end token is not among them."""
    max_tokens: int | None = None
    """The end token included; unset: 2 x source + 10, and room for the prefix and ``min_tokens``.

    Never above the model's limit.
    """
    alignment: bool = False
    """Also say which source tokens each token was translated from."""

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
            raise FieldError("n_best", f"is {self.n_best}: it must be at most beam, {self.beam}")
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


@dataclass(frozen=True)
class Sentence:
    """What to translate, as token ids without begin and end."""

    source: tuple[int, ...]
    prefix: tuple[int, ...] = ()
    """How the translation has to begin."""
    target: tuple[int, ...] | None = None
    """Score this translation instead of searching for one."""
    start: tuple[int, ...] = ()
    """What decoding begins with and is no part of the translation, as the token of its language:
    it costs nothing, and no length or limit counts it."""

    def __post_init__(self) -> None:
        if self.target is not None and self.prefix:
            raise FieldError("prefix", "and target are both given: a target is scored as it is")


class Finish(Enum):
    END = "end"
    """The model ended the sentence."""
    LENGTH = "length"
    """It was ended at the maximum length."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    ids: tuple[int, ...]
    """Without begin and end."""
    log_prob: float
    """The sum over its tokens, the end token included."""
    score: float
    """log_prob divided by length^alpha."""
    finish: Finish
    token_log_probs: tuple[float, ...]
    """Of each token, the end token last."""
    alignment: npt.NDArray[np.float32] | None = None
    """For each of these tokens, how much it looked at each source token, end token included."""


class Failure(Enum):
    """Why a sentence has no translation."""

    CANCELLED = "cancelled"
    EXPIRED = "expired"
    POISONED = "poisoned"
    """The model computed something that is not a number."""
    FAULT = "fault"
    """The step that it took part in failed."""
    STOPPED = "stopped"
    """The engine was closed."""


@dataclass(frozen=True, order=True)
class Ticket:
    """Which sentence of which request."""

    request: int
    sentence: int


@dataclass
class Timing:
    """Moments of a sentence's life, on the engine's clock; 0 where it did not come so far."""

    submitted: float = 0.0
    admitted: float = 0.0
    encoded: float = 0.0
    first_token: float = 0.0
    finished: float = 0.0


@dataclass(frozen=True, eq=False)
class Answer:
    """The end of a sentence: hypotheses, best first, or a failure."""

    ticket: Ticket
    hypotheses: tuple[Hypothesis, ...] = ()
    failure: Failure | None = None
    timing: Timing = field(default_factory=Timing)
    source_tokens: int = 0
    steps: int = 0
    """Decoder steps it took part in."""


@dataclass(frozen=True)
class NewToken:
    """One more token of a sentence whose tokens are wanted as they come."""

    ticket: Ticket
    token: int
    log_prob: float


@dataclass(eq=False)
class Report:
    """What one turn of one lane came to: plain numbers, for whoever exports metrics."""

    lane: int
    tokens: list[NewToken] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    rows: int = 0
    """Of the step."""
    encoded: int = 0
    """Sentences."""
    source_tokens: int = 0
    padding: int = 0
    """Source positions that were computed for nothing."""
    target_tokens: int = 0
    encode_seconds: float = 0.0
    """In the encoder's graph."""
    step_seconds: float = 0.0
    """In the decoder's graph."""
    graph_seconds: float = 0.0
    """In any graph."""
    turn_seconds: float = 0.0
    """All of it, from the decision what to do until it is done."""
    faults: int = 0
    """Calls of a graph that failed."""
