"""How Marian quantized a model, in terms of the products that our graphs compute.

A file of 8-bit weights has a step for each matrix, and may have a multiplier for the input of each
product. Our graphs put some matrices side by side and cut others in two. To follow each row through
that, our model is built again, with its step, or its largest input, in place of every weight.
"""

from collections.abc import Callable, Mapping

import numpy as np

from dragoman_export.errors import ExportError
from dragoman_export.graphs.precision import Quantization
from dragoman_export.graphs.weights import ModelWeights, weights_for_graphs
from dragoman_export.marian.architecture import Architecture
from dragoman_export.marian.model_file import Weight
from dragoman_export.marian.weights import ACTIVATION_MULTIPLIER, build_model

_LARGEST = 127
"""Largest of the whole numbers that an activation becomes."""
_SHORTLISTED = f"none{ACTIVATION_MULTIPLIER}"
"""Multiplier of the input of the output product, where that is of columns that have no name."""


def quantization_of(
    architecture: Architecture, weights: Mapping[str, Weight]
) -> Quantization | None:
    """Return how a model was quantized; None if its file has floats."""
    if not any(_is_quantized(name, weight) for name, weight in weights.items()):
        return None
    steps = _built(architecture, weights, lambda name: weights[name].step)
    largest = {name: _largest_input(name, weights) for name in weights}
    inputs = _built(architecture, weights, lambda name: largest[name])
    rows = {each.name: each.matrix.max(axis=1) for each in inputs.linears()}
    is_known = all(row.min() > 0 for row in rows.values())
    return Quantization(
        highest={name: float(row.max()) for name, row in rows.items()} if is_known else {},
        steps={
            **{each.name: each.matrix[:, 0] for each in steps.linears()},
            **{each.name: each.table[:, 0] for each in (steps.source, steps.target)},
        },
    )


def _is_quantized(name: str, weight: Weight) -> bool:
    return bool(weight.multiplier) and not name.endswith(ACTIVATION_MULTIPLIER)


def _largest_input(name: str, weights: Mapping[str, Weight]) -> float:
    """Return the largest input of the product with a weight; 0 if the file does not say it."""
    found = weights.get(f"{name}{ACTIVATION_MULTIPLIER}")
    if found is None and name.endswith(("Wemb", "logit_out_W")):
        found = weights.get(_SHORTLISTED)
    if found is None:
        return 0.0
    multiplier = float(found.values.flat[0])
    if multiplier <= 0 or found.values.size != 1:
        raise ExportError(f"{name}{ACTIVATION_MULTIPLIER} is {multiplier}: it must be above 0")
    return _LARGEST / multiplier


def _built(
    architecture: Architecture, weights: Mapping[str, Weight], number: Callable[[str], float]
) -> ModelWeights:
    """Return our model's weights, with one number in place of all values of each."""
    numbers = {
        name: np.full_like(weight.values, number(name))
        for name, weight in weights.items()
        if not name.endswith(ACTIVATION_MULTIPLIER)
    }
    return weights_for_graphs(build_model(architecture, numbers, unknown=0))
