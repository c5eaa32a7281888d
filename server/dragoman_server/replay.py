"""Replaying a bundle's golden decodings: does this machine compute what the exporter did?"""

from dragoman_server.bundle import Bundle
from dragoman_server.errors import BundleError
from dragoman_server.graphs import Graphs
from dragoman_server.reference import greedy

TOLERANCES = {"float32": 1e-3, "int8": 5e-2, "float16": 5e-2}
"""Of a token's log-probability; ids must be equal."""


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
    return worst
