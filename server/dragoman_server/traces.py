"""Exceptions as lines of a log: where they passed, without the paths of this machine."""

import traceback
from collections.abc import Iterator
from pathlib import PurePath

_MAX_CHAIN = 8
"""Most exceptions of a trace, each the cause of the one before."""


def trace_of(error: BaseException | None, *, says: bool) -> Iterator[str]:
    """Yield an exception and its causes, each with the places that it passed, innermost last.

    Without ``says``, what they say is left out: it may be a user's text.
    """
    for _ in range(_MAX_CHAIN):
        if error is None:
            return
        yield f"{type(error).__name__}: {error}" if says else type(error).__name__
        for frame in traceback.extract_tb(error.__traceback__):
            yield f"  {PurePath(frame.filename).name}:{frame.lineno} {frame.name}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
