"""What the engine must answer, in PyTorch: one sentence at a time, plainly and slowly.

Every step reads the whole hypotheses again and works on all logits: no cache, no other sentence, no
list of best tokens. Options follow their descriptions in ``dragoman_server.engine.core``.

Shapes: h hypotheses of one sentence, equally long; V vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from dragoman_server.engine.core import Finish, Options, Sentence
from dragoman_training.data.batch import pad_sources
from dragoman_training.data.tokenizer import BEGIN, END
from dragoman_training.models.transformer import Transformer
from dragoman_training.translate.search import default_limit

Ids = tuple[int, ...]
Prices = tuple[float, ...]


@dataclass(frozen=True)
class Found:
    ids: Ids
    token_log_probs: Prices
    """Log-probability of each token, the end token last."""
    score: float
    finish: Finish


@dataclass(frozen=True)
class Expected:
    """Hypotheses, best first, and how near the search was to another result."""

    found: list[Found]
    margin: float
    """Smallest difference of two values that were compared to decide something."""


def expect(model: Transformer, sentence: Sentence, options: Options) -> Expected:
    """Search for translations, or score the target where one is given."""
    if sentence.target is None:
        return _Search(model, sentence, options).run()
    prices = price(model, sentence, sentence.target, Options())
    found = Found(sentence.target, prices, score(prices, options), Finish.END)
    return Expected([found], math.inf)


def price(model: Transformer, sentence: Sentence, ids: Ids, options: Options) -> Prices:
    """Return the log-probability of each token of a hypothesis and of its end."""
    tokens = (*ids, END)
    return tuple(
        log_probs(model, sentence, [tokens[:at]], options)[0, token].item()
        for at, token in enumerate(tokens)
    )


def log_probs(
    model: Transformer, sentence: Sentence, hypotheses: Sequence[Ids], options: Options
) -> Tensor:
    """Return the log-probability of every token that may come next, after each hypothesis."""
    source, lengths = pad_sources([list(sentence.source)] * len(hypotheses), torch.device("cpu"))
    with torch.no_grad():
        target = torch.tensor([[BEGIN, *ids] for ids in hypotheses])
        logits_hV = model(source, lengths, target)[:, -1].double()
    for ids, logits_V in zip(hypotheses, logits_hV, strict=True):
        if len(ids) < len(sentence.prefix):
            continue  # what is forced comes at the model's own price
        for token in set(ids):
            logits_V[token] = penalised(logits_V[token].item(), options.repetition_penalty)
        for token in banned(ids, options):
            logits_V[token] = -math.inf
    return logits_hV.log_softmax(-1)


def penalised(logit: float, penalty: float) -> float:
    """Return a logit made less probable, be it positive or negative, as in CTRL."""
    return logit / penalty if logit > 0 else logit * penalty


def banned(ids: Ids, options: Options) -> set[int]:
    """Return the tokens that may not follow these."""
    tokens = set(options.suppressed)
    if len(ids) < options.min_tokens:
        tokens.add(END)
    n = options.no_repeat_ngram
    if 0 < n <= len(ids):
        context = ids[len(ids) - n + 1 :]
        grams = {ids[at : at + n] for at in range(len(ids) - n + 1)}
        tokens |= {gram[-1] for gram in grams if gram[:-1] == context}
    return tokens


def limit_of(model: Transformer, sentence: Sentence, options: Options) -> int:
    """Return the most tokens of a translation, the end token included."""
    max_length = model.settings.max_length
    if options.max_tokens is not None:
        return min(options.max_tokens, max_length)
    limit = default_limit(len(sentence.source), max_length) + len(sentence.prefix)
    return min(max(limit, options.min_tokens + 1), max_length)


def score(prices: Prices, options: Options) -> float:
    return math.fsum(prices) / len(prices) ** options.length_penalty


class _Search:
    """Beam search of one sentence; a beam of 1 takes the best token each time."""

    def __init__(self, model: Transformer, sentence: Sentence, options: Options) -> None:
        self.model, self.sentence, self.options = model, sentence, options
        self.limit = limit_of(model, sentence, options)
        self.live: list[tuple[Ids, Prices]] = [((), ())]
        self.finished: list[Found] = []
        self.margin = math.inf

    def run(self) -> Expected:
        for token in self.sentence.prefix:
            ((ids, prices),) = self.live
            log_prob = self._log_probs()[0, token].item()
            self.live = [((*ids, token), (*prices, log_prob))]
        while self.live and not self._is_done():
            if len(self.live[0][0]) + 1 == self.limit:
                self._end_all()
            else:
                self._advance()
        self.finished.sort(key=lambda found: -found.score)
        wanted = self.options.n_best
        self._note_margins([found.score for found in self.finished[: wanted + 1]])
        return Expected(self.finished[:wanted], self.margin)

    def _log_probs(self) -> Tensor:
        return log_probs(self.model, self.sentence, [ids for ids, _ in self.live], self.options)

    def _advance(self) -> None:
        candidates = [
            (math.fsum((*prices, log_prob)), (*ids, token), (*prices, log_prob))
            for (ids, prices), line in zip(self.live, self._log_probs().tolist(), strict=True)
            for token, log_prob in enumerate(line)
            if log_prob > -math.inf
        ]
        candidates.sort(key=lambda candidate: -candidate[0])
        beam = self.options.beam
        considered = 2 * beam if beam > 1 else 1
        self._note_margins([total for total, _, _ in candidates[: considered + 1]])
        self.live = []
        for _, ids, prices in candidates[:considered]:
            if ids[-1] == END:
                self._finish(ids[:-1], prices, Finish.END)
            elif len(self.live) < beam:
                self.live.append((ids, prices))

    def _end_all(self) -> None:
        """End all live hypotheses at their last position, at the price that the end has there."""
        for (ids, prices), line in zip(self.live, self._log_probs().tolist(), strict=True):
            self._note_margins(sorted(line)[-2:])
            finish = Finish.END if max(line) == line[END] else Finish.LENGTH
            self._finish(ids, (*prices, line[END]), finish)
        self.live = []

    def _finish(self, ids: Ids, prices: Prices, finish: Finish) -> None:
        self.finished.append(Found(ids, prices, score(prices, self.options), finish))

    def _is_done(self) -> bool:
        """Return whether enough are finished, and no live one can beat the worst of them.

        A live one can't do better than to reach the limit at no further cost.
        """
        wanted = self.options.n_best
        if len(self.finished) < wanted:
            return False
        worst = sorted((found.score for found in self.finished), reverse=True)[wanted - 1]
        best_total = max(math.fsum(prices) for _, prices in self.live)
        possible = best_total / self.limit**self.options.length_penalty
        self._note_margins([worst, possible])
        return worst >= possible

    def _note_margins(self, values: Sequence[float]) -> None:
        for one, other in pairwise(values):
            self.margin = min(self.margin, abs(one - other))
