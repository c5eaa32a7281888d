"""How far an export is, for whoever shows it."""

from collections.abc import Callable

Watch = Callable[[str, int, int], None]
"""Is told the stage that an export is in, and how much of it is done, of how much."""
