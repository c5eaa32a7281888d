"""Running each graph once before anyone waits for it."""

import numpy as np

from dragoman_server.engine.lane import Lane
from dragoman_server.runtime.limits import MAX_CANDIDATES


def warm_up(lane: Lane, max_encode_tokens: int) -> None:
    """Run each graph of a lane.

    Where all memory is to be taken at the start, they run at the largest shapes that they will
    meet, so that memory hardly grows later. Otherwise one row does.
    """
    graphs = lane.graphs
    is_thorough = graphs.settings.touch_memory
    manifest = graphs.manifest
    rows = graphs.settings.rows if is_thorough else min(2, graphs.settings.rows)
    longest = manifest.max_source_tokens if is_thorough else 2
    end = manifest.special_ids.end
    for length in {longest, min(longest, max(2, max_encode_tokens // rows))}:
        sentences = max(1, min(rows, max_encode_tokens // length))
        ids = np.full((sentences, length), end, np.int64)
        every = np.arange(rows)
        graphs.encode(ids, np.full(sentences, length), every % sentences, every)
    last = manifest.max_target_tokens - 1 if is_thorough else 0
    inputs = (np.full(rows, end), np.full(rows, last), np.full(rows, longest))
    candidates = min(MAX_CANDIDATES, manifest.dimensions.target_vocabulary)
    graphs.step(*inputs, candidates=candidates)
    lane.shortlisting.warm_up(*inputs, candidates=candidates)
    half = rows // 2
    if half:
        graphs.move(range(half), range(half, 2 * half), last + 1, longest)
