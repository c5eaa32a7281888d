"""Subjects with a shortlist each.

*en-pt* and *en-pt-wide* are those of the other benchmarks, with lists learnt from parallel text.

*opus* is a seeded Transformer-base with as large a vocabulary as models of OPUS-MT have, all
translations of the same length. Its lists are made up, with tokens that recur as words do: the
vocabulary has a random order, in which the token of rank r is drawn with a probability that goes
as 1/r (Zipf). The first ranks are for every sentence, 200 tokens with the special ones; each source
token has 50 draws, of which our engine takes 43 for a source of 19 tokens, so there are 43.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from dragoman_export.lexicon import shortlist_from
from dragoman_server.bundle.shortlist import MAX_SHORTLIST_TOKENS, Shortlist
from dragoman_training.data.text.corpus import ParallelText
from dragoman_training.data.tokenizer import BEGIN, END, UNKNOWN
from subjects import catalogue
from subjects.catalogue import Subject
from subjects.seeded import SOURCE

LEARNT = {"en-pt": catalogue.en_pt, "en-pt-wide": catalogue.en_pt_wide}
OPUS = "opus"
VOCABULARY = 58_000
_ALWAYS, _LIKELY = 200, 50


def learnt(name: str, source: Path, target: Path) -> tuple[Subject, Shortlist]:
    subject = LEARNT[name]()
    encode = subject.tokenizer.encode  # one for both sides
    shortlist = shortlist_from(
        ((encode(pair.source), encode(pair.target)) for pair in ParallelText((source,), (target,))),
        source_vocabulary=subject.model.source_vocabulary,
        target_vocabulary=subject.model.target_vocabulary,
        end=END,
        watch=lambda stage, done, total: None,
    )
    what = f"{subject.what}; lists learnt from {source.name} and {target.name}"
    return replace(subject, what=what), shortlist


def opus(preset: str, vocabulary: int) -> tuple[Subject, Shortlist]:
    seeded = catalogue.base(preset, vocabulary)
    shortlist = _made_up(vocabulary)
    always, likely = len(shortlist.always), shortlist.likely.shape[1]
    what = f"{seeded.what}; made-up lists, {always} tokens always and {likely} for a source token"
    return replace(seeded, name=OPUS, what=what), shortlist


def _made_up(vocabulary: int) -> Shortlist:
    # Our engine cuts the lists of many source tokens. A map does not, so it is to have no more.
    likely = min(_LIKELY, (MAX_SHORTLIST_TOKENS - _ALWAYS) // (SOURCE - 1))
    rng = np.random.default_rng(1)
    by_rank = rng.permutation(np.arange(END + 1, vocabulary, dtype=np.int32))
    weights = 1 / np.arange(1, len(by_rank) + 1)
    ranks = rng.choice(len(by_rank), (vocabulary, likely), p=weights / weights.sum())
    # A map always has the unknown and the begin token, and a seeded model does choose them.
    always = np.array([END, UNKNOWN, BEGIN, *by_rank[: _ALWAYS - 3]], np.int32)
    return Shortlist(always, by_rank[ranks])
