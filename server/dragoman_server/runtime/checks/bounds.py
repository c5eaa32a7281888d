"""Checks before memory is handed to graphs: those would read beside it without a word."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime as ort

from dragoman_server.bundle.graph_io import RowCache, updated
from dragoman_server.errors import BundleError
from dragoman_server.runtime.arrays import Ints


def check_caches(
    graph: Path, session: ort.InferenceSession, caches: Mapping[str, RowCache]
) -> None:
    """Raise ``BundleError`` if a graph's caches are not of the shapes that the manifest says.

    Memory is bound by its address: a graph that sees other shapes there would go astray.
    """
    found = {value.name: tuple(value.shape[1:]) for value in session.get_inputs()}
    found.update({value.name: tuple(value.shape[1:]) for value in session.get_outputs()})
    for name, cache in caches.items():
        for place in (name, updated(name)):
            if found.get(place) != cache.shape:
                raise BundleError(
                    f"{graph}: {place} is {found.get(place)}, but the manifest says {cache.shape}"
                )


def check_range(name: str, values: Ints, count: int, min_value: int, max_value: int) -> int:
    """Return the largest of the values. Raise ``ValueError`` if one is out of range.

    The graphs themselves would wrap around, cut off, or read another row. This is called at every
    step, so it uses the functions that numpy's methods are made of.
    """
    if len(values) != count or count == 0:
        raise ValueError(f"{len(values)} {name}, not {max(1, count)}")
    largest = int(np.maximum.reduce(values))
    if largest > max_value or np.minimum.reduce(values) < min_value:
        raise ValueError(f"{name} must be from {min_value} to {max_value}")
    return largest
