"""What somebody may have meant by a name that is not known."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Return the end of a sentence that names the most similar name; empty where none is similar.

    ``prefix`` is what all names begin with, which makes none of them similar.
    """
    rests = sorted(each.removeprefix(prefix) for each in known)
    nearest = difflib.get_close_matches(name.removeprefix(prefix), rests, n=1)
    return f": did you mean {prefix}{nearest[0]}?" if nearest else ""
