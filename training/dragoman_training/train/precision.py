"""How a training run computes: which number formats and compilers there are here."""

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from dragoman_training.errors import RecipeError

_TRIAL = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); x @ x"
_SECONDS = 1.0
"""About how long each precision is tried for."""
_ROWS = 256
"""Tokens of the products that are tried."""


class Precision(NamedTuple):
    """What a run computes its matrix products in."""

    name: str
    reason: str = ""
    """Why it was chosen, where it was left to us."""


def choose_precision(wanted: str, model: nn.Module, device: torch.device) -> Precision:
    """Return the precision that a recipe asks for; for ``auto`` the faster one on this device.

    On a CPU both are tried on products of the model's own sizes. How fast they are depends on the
    machine and on what else it does, so ``auto`` may choose another one the next time.
    """
    if wanted != "auto":
        return Precision(wanted)
    if not _runs_bfloat16(device):
        return Precision("float32", f"{device} does not run bfloat16")
    if device.type != "cpu":
        return Precision("bfloat16", f"{device} runs it")
    plain, short = _seconds_of_products(model)
    if short < plain:
        return Precision("bfloat16", f"{plain / short:.1f} times as fast as float32 here")
    return Precision("float32", f"{short / plain:.1f} times as fast as bfloat16 here")


def autocast_dtype(precision: str, device: torch.device) -> torch.dtype | None:
    """What matrix products are computed in; None for plain float32."""
    if precision == "float32":
        return None
    if precision == "float16":
        if device.type == "cpu":
            raise RecipeError("training.precision is 'float16', which a CPU can't train in")
        return torch.float16
    if not _runs_bfloat16(device):
        raise RecipeError(f"training.precision is 'bfloat16', which {device} does not run here")
    return torch.bfloat16


def check_compiler() -> None:
    """``torch.compile`` writes C++ for CPUs; without a compiler it fails in the first step."""
    if not any(map(shutil.which, (os.environ.get("CXX", "g++"), "clang++"))):
        raise RecipeError("training.compile needs a C++ compiler, and there is none")


def _runs_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    # There are virtual machines that announce an instruction set (AMX) and then stop the process
    # that uses it: better that of a trial than the one that trains.
    trial = subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True, check=False)  # noqa: S603
    return trial.returncode == 0


def _seconds_of_products(model: nn.Module) -> tuple[float, float]:
    """Return how long the products of a few tokens take, forth and back: float32, bfloat16."""
    sizes = Counter(tuple(m.weight.shape) for m in model.modules() if isinstance(m, nn.Linear))
    total = [0.0, 0.0]
    for size, count in sizes.items():
        times: tuple[list[float], list[float]] = ([], [])
        ends = time.perf_counter() + 2 * _SECONDS / len(sizes)
        # In turns, so that both see the same of what else the machine does. The first of each
        # makes ready what later ones find.
        while len(times[1]) < 2 or time.perf_counter() < ends:
            for found, is_short in zip(times, (False, True), strict=True):
                found.append(_seconds_of_product(size, is_short=is_short))
        for number, found in enumerate(times):
            total[number] += count * min(found)
    return total[0], total[1]


def _seconds_of_product(size: tuple[int, ...], *, is_short: bool) -> float:
    """Time one product and its two gradients as training computes them."""
    rows, columns = size
    weight = torch.ones(rows, columns, requires_grad=True)
    x = torch.ones(_ROWS, columns, requires_grad=True)
    began = time.perf_counter()
    with torch.autocast("cpu", torch.bfloat16, enabled=is_short):
        product = F.linear(x, weight)
    product.backward(torch.ones_like(product))
    return time.perf_counter() - began
