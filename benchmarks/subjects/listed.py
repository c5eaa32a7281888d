"""Models with a shortlist each.

*en-pt* and *en-pt-wide* are those of the other benchmarks, with lists learnt from parallel text.

*opus* is a seeded Transformer-base with as large a vocabulary as the models of OPUS-MT have, and
all its translations have the same length. Its lists are made up, of tokens that recur as words do:
tokens are ranked at random, and the one of rank r is drawn with a probability proportional to 1/r
(Zipf). The first 200, with the special tokens, are on every list; each source token adds 43 draws,
as many as our engine takes for a source of this length.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from dragoman_export.lexicon import shortlist_from
from dragoman_server.bundle.shortlist import MAX_SHORTLIST_TOKENS, Shortlist
from dragoman_training.data.text.corpus import ParallelText
from dragoman_training.data.tokenizer import BEGIN, END, UNKNOWN
from subjects import catalogue
from subjects.seeded import SOURCE_TOKENS
from subjects.subject import Subject

LEARNT = {"en-pt": catalogue.en_pt, "en-pt-wide": catalogue.en_pt_wide}
OPUS = "opus"
VOCABULARY = 58_000
"""Tokens of the vocabulary of *opus*, unless told otherwise."""
_ALWAYS, _LIKELY = 200, 50
"""Tokens on every list of *opus*, and tokens that a source token adds at most."""


def learnt(name: str, source: Path, target: Path) -> tuple[Subject, Shortlist]:
    """Return a subject with lists learnt from parallel text."""
    subject = LEARNT[name]()
    encode = subject.tokenizer.encode  # one for both sides
    shortlist = shortlist_from(
        ((encode(pair.source), encode(pair.target)) for pair in ParallelText((source,), (target,))),
        source_vocabulary=subject.model.source_vocabulary,
        target_vocabulary=subject.model.target_vocabulary,
        end=END,
        watch=lambda stage, done, total: None,
    )
    what = f"{subject.what}; the lists are learnt from {source.name} and {target.name}"
    return replace(subject, what=what), shortlist


def opus(preset: str, vocabulary: int) -> tuple[Subject, Shortlist]:
    """Return a seeded subject with made-up lists."""
    seeded = catalogue.base(preset, vocabulary)
    shortlist = _made_up(vocabulary)
    always, likely = len(shortlist.always), shortlist.likely.shape[1]
    what = (
        f"{seeded.what}; the lists are made up: {always} tokens on every list, and {likely} for "
        "each source token"
    )
    return replace(seeded, name=OPUS, what=what), shortlist


def _made_up(vocabulary: int) -> Shortlist:
    # Our engine shortens the lists of long sources, and a map does not: so no list is to be long.
    likely = min(_LIKELY, (MAX_SHORTLIST_TOKENS - _ALWAYS) // (SOURCE_TOKENS - 1))
    rng = np.random.default_rng(1)
    by_rank = rng.permutation(np.arange(END + 1, vocabulary, dtype=np.int32))
    weights = 1 / np.arange(1, len(by_rank) + 1)
    ranks = rng.choice(len(by_rank), (vocabulary, likely), p=weights / weights.sum())
    # CTranslate2 adds the unknown and the begin token to every list, and a seeded model uses them.
    always = np.array([END, UNKNOWN, BEGIN, *by_rank[: _ALWAYS - 3]], np.int32)
    return Shortlist(always, by_rank[ranks])
