"""Replaying a bundle's golden decodings: does this machine compute what the exporter did?"""

import numpy as np

from dragoman_server.bundle.reading import Bundle
from dragoman_server.bundle.shortlist import Shortlist
from dragoman_server.errors import BundleError
from dragoman_server.runtime.graphs import Graphs
from dragoman_server.runtime.reference_search import encode, greedy

TOLERANCES = {"float32": 1e-3, "int8": 5e-2, "float16": 5e-2}
"""Of a token's log-probability; ids must be equal."""
_LISTED_TOLERANCE = 1e-3
"""Between two graphs on the same machine, which add up probabilities in another order."""


def replay(bundle: Bundle, graphs: Graphs) -> float:
    """Decode the golden sentences. Returns the largest difference of a log-probability."""
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
        _check_lists(bundle, graphs, bundle.shortlist)
    return worst


def _check_lists(bundle: Bundle, graphs: Graphs, shortlist: Shortlist) -> None:
    """A step with lists must give what the ordinary one does for the tokens of a list."""
    assert graphs.shortlists is not None
    for number, golden in enumerate(bundle.golden, start=1):
        tokens = shortlist.tokens_for(tuple(golden.source))
        if tokens is None:
            continue
        graphs.shortlists.fill([0], tokens)
        lengths = encode(graphs, [golden.source])
        begin = bundle.manifest.special_ids.begin
        for past, token in enumerate([begin, *golden.start, *golden.ids]):
            inputs = (np.array([token]), np.array([past]), lengths)
            graphs.step(*inputs, candidates=1)
            log_probs = graphs.log_probs(1)[0, tokens].astype(np.float64)
            expected = log_probs - np.logaddexp.reduce(log_probs)
            found = graphs.step_shortlisted(*inputs, candidates=1)
            (best,) = expected[tokens == found.top_ids[0, 0]]
            differences = (
                best - found.top_log_probs[0, 0],
                best - expected.max(),
                expected[0] - found.given_log_probs[0],
            )
            if not np.abs(differences).max() <= _LISTED_TOLERANCE:  # also where it is no number
                raise BundleError(
                    f"{bundle.path}: golden sentence {number} has other scores with its list"
                )
    graphs.shortlists.clear()
