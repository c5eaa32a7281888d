"""Whether a difference in BLEU is more than chance: paired bootstrap resampling (Koehn, 2004).

Both systems' translations of the same sentences are drawn again and again, with replacement, and
BLEU of both is computed on each draw. Most of what makes BLEU vary from text to text is common to
both, so their difference is known far better than BLEU itself.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.bleu import BLEU

RESAMPLES = 1000
CONFIDENCE = 0.95
_AT_ONCE = 50
"""Draws whose counts are in memory at a time."""

Interval = tuple[float, float]


def bleu_lost_interval(
    ours: Sequence[str], plain: Sequence[str], references: Sequence[str], target_language: str
) -> Interval:
    """Return between which figures lies the BLEU that ``ours`` lose against ``plain``.

    The true loss on such text lies there with a confidence of 95%. The same translations always
    give the same interval.
    """
    differ = [n for n, (a, b) in enumerate(zip(ours, plain, strict=True)) if a != b]
    if not differ:
        return 0.0, 0.0
    bleu = BLEU(trg_lang=target_language.partition("-")[0], effective_order=True)
    counts_NC = _counts(bleu, plain, references)
    ours_NC = counts_NC.copy()
    ours_NC[differ] = _counts(bleu, [ours[n] for n in differ], [references[n] for n in differ])
    rng = np.random.default_rng(1)
    size = len(references)
    lost: list[float] = []
    while len(lost) < RESAMPLES:
        drawn_RN = rng.multinomial(size, np.full(size, 1 / size), size=_AT_ONCE)
        lost += [
            _bleu(b) - _bleu(a)
            for a, b in zip(drawn_RN @ ours_NC, drawn_RN @ counts_NC, strict=True)
        ]
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(lost, (tail, 100 - tail))
    return float(low), float(high)


def _counts(
    bleu: BLEU, translations: Sequence[str], references: Sequence[str]
) -> npt.NDArray[np.int64]:
    """Return what BLEU adds up over sentences: matches and n-grams of each order, and lengths."""
    scores = (
        bleu.sentence_score(text, [reference])
        for text, reference in zip(translations, references, strict=True)
    )
    return np.array([[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in scores], np.int64)


def _bleu(sums: npt.NDArray[np.int64]) -> float:
    """Return BLEU of a text from the sums over its sentences, as sacrebleu computes it."""
    *counts, length, reference_length = sums.tolist()
    half = len(counts) // 2
    return float(BLEU.compute_bleu(counts[:half], counts[half:], length, reference_length).score)
