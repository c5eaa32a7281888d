"""How a training run computes: which number formats and compilers there are here."""

import os
import shutil
import subprocess
import sys

import torch

from dragoman_training.errors import RecipeError

_TRIAL = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); x @ x"


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
