"""Replaying a bundle's golden decodings: does this machine compute what the exporter did?"""

import numpy as np

from dragoman_server.bundle.reading import Bundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.errors import BundleError
from dragoman_server.runtime.graphs import Graphs
from dragoman_server.runtime.reference_search import encode, greedy

TOLERANCES = {"float32": 1e-3, "int8": 5e-2, "float16": 5e-2}
"""Largest difference that a token's log-probability may have, by precision; ids must be equal."""
_SHORTLIST_TOLERANCE = 1e-3
"""Largest difference between the log-probabilities of the two decoder graphs on one machine. They
add up probabilities in another order."""


def replay(bundle: Bundle, graphs: Graphs) -> float:
    """Decode the golden sentences, and return the largest difference of a log-probability.

    Raises ``BundleError`` where a token differs, or a log-probability by more than is allowed.
    """
    worst = 0.0
    tolerance = TOLERANCES[bundle.manifest.precision]
    for number, golden in enumerate(bundle.golden, start=1):
        (decoded,) = greedy(graphs, [golden.source], [golden.limit], start=golden.start)
        if list(decoded.ids) != golden.ids:
            raise BundleError(
                f"{bundle.path}: golden sentence {number} is decoded to other tokens here"
            )
        for ours, theirs in zip(decoded.token_log_probs, golden.token_log_probs, strict=True):
            difference = abs(ours - theirs)
            if not difference <= tolerance:  # also where it is not a number
                raise BundleError(
                    f"{bundle.path}: golden sentence {number} has scores that differ by "
                    f"{difference:.2g}, more than {tolerance}"
                )
            worst = max(worst, difference)
    if bundle.shortlist is not None:
        _check_shortlists(bundle, graphs, bundle.shortlist)
    return worst


def _check_shortlists(bundle: Bundle, graphs: Graphs, shortlist: Shortlist) -> None:
    """Raise ``BundleError`` if a shortlisted step rates tokens otherwise than the other."""
    assert graphs.shortlists is not None
    for number, golden in enumerate(bundle.golden, start=1):
        listed = shortlist.tokens_for(tuple(golden.source))
        if listed is None:
            continue
        graphs.shortlists.fill([0], listed)
        lengths = encode(graphs, [golden.source])
        begin = bundle.manifest.special_ids.begin
        for past, token in enumerate([begin, *golden.start, *golden.ids]):
            inputs = (np.array([token]), np.array([past]), lengths)
            found = graphs.step_shortlisted(*inputs, candidates=1, is_trial=True)
            chosen = int(found.top_ids[0, 0])
            of_chosen, of_end = float(found.top_log_probs[0, 0]), float(found.given_log_probs[0])
            graphs.step(*inputs, candidates=1)
            log_probs = graphs.log_probs(1)[0, listed].astype(np.float64)
            expected = log_probs - np.logaddexp.reduce(log_probs)
            (best,) = expected[listed == chosen]
            differences = (best - of_chosen, best - expected.max(), expected[0] - of_end)
            if not np.abs(differences).max() <= _SHORTLIST_TOLERANCE:  # also where it is no number
                raise BundleError(
                    f"{bundle.path}: golden sentence {number} has other scores with its shortlist"
                )
    graphs.shortlists.clear()
