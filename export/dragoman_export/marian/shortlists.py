"""Marian's lexical shortlist as the shortlist of a bundle."""

import numpy as np

from dragoman_export.errors import ExportError
from dragoman_export.marian.lexical_shortlist import LexicalShortlist
from dragoman_server.bundle.shortlist import MAX_SHORTLIST_TOKENS, Shortlist

_UNRANKED_TOKENS = 2 * MAX_SHORTLIST_TOKENS
"""Most tokens of a sentence's shortlist where it is not known which of them are the likeliest. If
there are more, some are left out blindly, so there should hardly ever be more."""
_MAX_LINE = 1000
"""Most target tokens of one source token."""


def bundle_shortlist(
    lexical: LexicalShortlist, *, end: int, unknown: int, is_shared: bool, target_vocabulary: int
) -> Shortlist:
    """Return the shortlist of a bundle, with which a sentence may become what it may in Marian.

    Where one vocabulary serves both sides, a source token may also be copied. The unknown token is
    left out, because no translation has it. A source token without entries may become any token,
    which in Marian it may not.
    """
    longest = int(np.diff(lexical.offsets).max(initial=0))
    if longest > _MAX_LINE:
        raise ExportError(f"the shortlist has {longest} tokens for one: at most {_MAX_LINE} can be")
    frequent = [t for t in range(min(lexical.frequent, target_vocabulary)) if t != unknown]
    always = np.array([end, *(token for token in frequent if token != end)], np.int32)
    without = np.zeros(target_vocabulary, np.bool_)
    without[[*always, unknown]] = True
    vocabulary = len(lexical.offsets) - 1
    likely = np.full((vocabulary, longest + is_shared), -1, np.int32)
    for source in range(vocabulary):
        entries = lexical.entries[lexical.offsets[source] : lexical.offsets[source + 1]]
        if not len(entries):
            continue
        own = [source] if is_shared and not without[source] else []
        line = [*own, *entries[~without[entries] & (entries != source if own else True)]]
        # An empty line would be that of a token without entries.
        line = line or [int(always[0])]
        likely[source, : len(line)] = line
    max_tokens = MAX_SHORTLIST_TOKENS if lexical.ranked else _UNRANKED_TOKENS
    shortlist = Shortlist(always, likely, max_tokens)
    try:
        shortlist.check(vocabulary, target_vocabulary, end)
    except ValueError as error:
        raise ExportError(f"the shortlist can't be imported: {error}") from None
    return shortlist
