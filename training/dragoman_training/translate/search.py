"""Search for the best translation: greedy and beam, plainly.

This is the definition, and every faster implementation must find the same:

- The log-probability of a hypothesis is the sum over its tokens, the end token included. Its score
  is that sum divided by length^alpha, where the length counts the end token.
- A hypothesis has at most ``limit`` tokens: at the last one the end token is forced.
- Greedy search takes the most probable token each time.
- Beam search takes, per sentence, the best 2 x beam continuations of its live hypotheses by
  log-probability. Those that end are finished; the best ``beam`` others live on. With
  ``ends_in_beam``, as models of other projects expect, a continuation that ends is finished only
  if it is among the best ``beam`` of all, and dropped otherwise.
- Beam search stops when as many are finished as are wanted and no live one can still beat the
  worst of them: a live hypothesis can't do better than to reach the limit at no further cost.

The server has the rules of scores and ends again, in ``dragoman_server.runtime.scoring``, because
neither package depends on the other. ``tests/engine/test_search_equality.py`` compares them.

Shapes: B sentences, R rows (one per live hypothesis), V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman_training.data.tokenizer import OURS, Ends
from dragoman_training.models.base import Memory, State, TranslationModel


@dataclass(frozen=True)
class Hypothesis:
    ids: tuple[int, ...]
    """Tokens of the translation, without begin and end."""
    log_prob: float
    """Log-probability of the translation, the end token included."""
    score: float
    """``log_prob`` divided by length^alpha."""


def default_limit(source_tokens: int, max_length: int) -> int:
    """Return the most tokens that a translation may have where nothing else is asked for.

    ``source_tokens`` does not count the source's end token; the limit counts the translation's.
    """
    return min(2 * source_tokens + 10, max_length)


def length_score(log_prob: float, length: int, alpha: float) -> float:
    """Return log_prob / length^alpha; the length counts the end token."""
    return log_prob / float(length**alpha)


@torch.inference_mode()
def greedy_search(
    model: TranslationModel[Memory, State],
    source_BS: Tensor,
    lengths_B: Tensor,
    limits: list[int],
    alpha: float = 1.0,
    ends: Ends = OURS,
) -> list[Hypothesis]:
    """Return the greedy hypothesis of each sentence."""
    state = model.start(model.encode(source_BS, lengths_B))
    sentences = list(range(len(limits)))  # of the rows that are still going
    ids: list[list[int]] = [[] for _ in limits]
    log_probs = [0.0] * len(limits)
    newest = torch.full_like(lengths_B, ends.begin)
    for token in ends.start:
        _, state = model.step(newest, state)
        newest = torch.full_like(lengths_B, token)
    while sentences:
        log_probs_RV, state = model.step(newest, state)
        tokens_so_far = state.length - len(ends.start)
        _force_end(log_probs_RV, [tokens_so_far >= limits[s] for s in sentences], ends.end)
        best, newest = log_probs_RV.max(dim=-1)
        going: list[int] = []
        for row, (token, log_prob) in enumerate(zip(newest.tolist(), best.tolist(), strict=True)):
            log_probs[sentences[row]] += log_prob
            if token != ends.end:
                ids[sentences[row]].append(token)
                going.append(row)
        if len(going) < len(sentences):
            rows = torch.tensor(going, dtype=torch.long, device=newest.device)
            state, newest = state.select(rows), newest.index_select(0, rows)
            sentences = [sentences[row] for row in going]
    return [
        Hypothesis(tuple(tokens), log_prob, length_score(log_prob, len(tokens) + 1, alpha))
        for tokens, log_prob in zip(ids, log_probs, strict=True)
    ]


@dataclass
class _Beam:
    """The hypotheses of one sentence."""

    sentence: int
    """Place of the sentence in the batch."""
    live: list[tuple[tuple[int, ...], float]]
    """Token ids and log-probability of each live hypothesis, best first."""
    finished: list[Hypothesis]
    """Hypotheses that have ended, in no order."""

    def is_done(self, wanted: int, limit: int, alpha: float) -> bool:
        """Return whether as many are finished as are wanted, and no live one can be better."""
        if not self.live:
            return True
        if len(self.finished) < wanted:
            return False
        worst_wanted = sorted((h.score for h in self.finished), reverse=True)[wanted - 1]
        return worst_wanted >= length_score(self.live[0][1], limit, alpha)


@torch.inference_mode()
def beam_search(
    model: TranslationModel[Memory, State],
    source_BS: Tensor,
    lengths_B: Tensor,
    limits: list[int],
    beam: int,
    alpha: float = 1.0,
    n_best: int = 1,
    *,
    ends: Ends = OURS,
    ends_in_beam: bool = False,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each sentence, best first; with a beam of 1, greedy search."""
    if not 1 <= n_best <= beam:
        raise ValueError(f"n_best is {n_best}: it must be at least 1 and at most the beam, {beam}")
    if beam == 1:
        return [[h] for h in greedy_search(model, source_BS, lengths_B, limits, alpha, ends)]
    state = model.start(model.encode(source_BS, lengths_B))
    first = ends.begin
    for token in ends.start:
        _, state = model.step(torch.full_like(lengths_B, first), state)
        first = token
    beams = [_Beam(sentence, [((), 0.0)], []) for sentence in range(len(limits))]
    going = beams
    while going:
        newest = [ids[-1] if ids else first for b in going for ids, _ in b.live]
        log_probs_RV, state = model.step(torch.tensor(newest, device=source_BS.device), state)
        tokens_so_far = state.length - len(ends.start)
        at_limit = [tokens_so_far >= limits[b.sentence] for b in going for _ in b.live]
        _force_end(log_probs_RV, at_limit, ends.end)
        parents: list[int] = []
        first_row = 0
        still_going: list[_Beam] = []
        for b in going:
            rows = len(b.live)
            log_probs = log_probs_RV[first_row : first_row + rows]
            in_beam = ends_in_beam or ends.in_beam
            kept = _advance(b, log_probs, beam, alpha, end=ends.end, ends_in_beam=in_beam)
            if not b.is_done(n_best, limits[b.sentence], alpha):
                still_going.append(b)
                parents += [first_row + row for row in kept]
            first_row += rows
        going = still_going
        state = _select(state, parents, source_BS.device)
    return [sorted(b.finished, key=lambda h: h.score, reverse=True)[:n_best] for b in beams]


def _advance(
    b: _Beam, log_probs_RV: Tensor, beam: int, alpha: float, *, end: int, ends_in_beam: bool
) -> list[int]:
    """Continue a beam by one token. Returns, for each hypothesis that lives, its parent's row."""
    vocabulary = log_probs_RV.shape[1]
    so_far_R1 = torch.tensor([log_prob for _, log_prob in b.live], dtype=torch.float64)[:, None]
    totals = (so_far_R1 + log_probs_RV.double().cpu()).flatten()
    best, places = totals.topk(min(2 * beam, totals.numel()))
    live: list[tuple[tuple[int, ...], float]] = []
    parents: list[int] = []
    for rank, (log_prob, place) in enumerate(zip(best.tolist(), places.tolist(), strict=True)):
        if log_prob == float("-inf"):
            break
        row, token = divmod(place, vocabulary)
        ids = b.live[row][0]
        if token == end:
            if rank < beam or not ends_in_beam:
                score = length_score(log_prob, len(ids) + 1, alpha)
                b.finished.append(Hypothesis(ids, log_prob, score))
        elif len(live) < beam:
            live.append(((*ids, token), log_prob))
            parents.append(row)
    b.live = live
    return parents


def _force_end(log_probs_RV: Tensor, forced: list[bool], end: int) -> None:
    """Leave only the end token in the rows at their limit."""
    if any(forced):
        rows = torch.tensor(forced, device=log_probs_RV.device)[:, None]
        is_end_V = torch.arange(log_probs_RV.shape[1], device=log_probs_RV.device) == end
        log_probs_RV.masked_fill_(rows & ~is_end_V, float("-inf"))


def _select(state: State, rows: list[int], device: torch.device) -> State:
    return state.select(torch.tensor(rows, dtype=torch.long, device=device))
