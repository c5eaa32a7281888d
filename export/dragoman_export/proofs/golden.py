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
SENTENCES = 8


def golden_decodings(
    graphs: Graphs,
    candidates: Iterable[Sequence[int]],
    wanted: int = SENTENCES,
    start: Sequence[int] = (),
) -> list[Golden]:
    """Decode candidates until enough of them are clear. Shorter limits where none is."""
    sources = list(candidates)
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
