"""What keeps the memory of a long training small; docs/decisions/011 has what was measured."""

import os

_CAPACITY = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_PRIMITIVES = 128
"""Compiled products that are kept: somewhat more than one training step has."""


def bound_compiled_products() -> None:
    """Keep fewer of the products that oneDNN compiles for bfloat16, one for every new shape.

    Hardly two batches of varied text have the same number of tokens, so most are never used again,
    and each takes about a megabyte. Works before the first such product of the process; a value
    that the user has set stays.
    """
    os.environ.setdefault(_CAPACITY, str(_PRIMITIVES))
