"""Golden decodings: what the graphs gave when the bundle was made, for the server to replay.

Only sentences in which the best token leads clearly at every step are used: another CPU may round
differently, but it must not decide differently.
"""

from collections.abc import Iterable, Sequence

from dragoman_export.errors import VerificationError
from dragoman_server.bundle.golden import Golden
from dragoman_server.runtime.graphs import Graphs
from dragoman_server.runtime.reference_search import greedy
from dragoman_server.runtime.scoring import default_limit

MIN_MARGIN = 0.1
"""Smallest lead that the best token must have at every step, as a difference of log-probability."""
SENTENCES = 8
"""Golden decodings of a bundle."""


def golden_decodings(
    graphs: Graphs,
    sentences: Iterable[Sequence[int]],
    wanted: int = SENTENCES,
    start: Sequence[int] = (),
) -> list[Golden]:
    """Decode sentences greedily until enough of them have a clear lead at every step.

    If none has, only their first tokens are decoded. Raises ``VerificationError`` if that is no
    help either.
    """
    sources = list(sentences)
    max_tokens = graphs.manifest.max_target_tokens - len(start)
    rows = graphs.settings.rows
    for shortest in (None, 4, 2):
        found: list[Golden] = []
        for at in range(0, len(sources), rows):
            batch = sources[at : at + rows]
            limits = [
                default_limit(len(s), max_tokens) if shortest is None else min(max_tokens, shortest)
                for s in batch
            ]
            for source, limit, decoded in zip(
                batch, limits, greedy(graphs, batch, limits, start=start), strict=True
            ):
                if decoded.margin >= MIN_MARGIN:
                    found.append(
                        Golden(
                            source=list(source),
                            limit=limit,
                            ids=list(decoded.ids),
                            token_log_probs=list(decoded.token_log_probs),
                            start=list(start),
                        )
                    )
            if len(found) >= wanted:
                return found[:wanted]
        if found:
            return found
    raise VerificationError("no sentence is decoded with a clear lead: is the model trained?")
