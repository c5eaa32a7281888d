"""The rules that searches share: how a hypothesis is scored, and when a search may stop.

Plain arithmetic over Python numbers. ``dragoman_training.translate.search`` has the same rules,
because training does not depend on the server; ``test_search_equality.py`` compares the searches.
"""


def default_limit(source_tokens: int, max_target_tokens: int) -> int:
    """Return the most tokens that a translation may have where nothing else is asked for.

    ``source_tokens`` does not count the source's end token; the limit counts the translation's.
    """
    return min(2 * source_tokens + 10, max_target_tokens)


def length_score(log_prob: float, length: int, alpha: float) -> float:
    """Return log_prob / length^alpha; the length counts the end token."""
    return log_prob / float(length**alpha)


def can_stop(worst_wanted: float, best_live: float, limit: int, alpha: float) -> bool:
    """Return whether no live hypothesis can still beat the worst finished one that is wanted.

    ``worst_wanted`` is a score, ``best_live`` the log-probability of the best live hypothesis,
    which can't do better than to reach the limit at no further cost.
    """
    return worst_wanted >= length_score(best_live, limit, alpha)


def candidates_of(beam: int) -> int:
    """Return how many continuations of a sentence a beam looks at: at most half of them end."""
    return 2 * beam


def ending_candidates(beam: int, *, ends_in_beam: bool) -> int:
    """Return how many of the best continuations finish a hypothesis where they end it.

    With ``ends_in_beam``, as in models of other projects, only those that are in the beam do.
    """
    return beam if ends_in_beam else candidates_of(beam)
