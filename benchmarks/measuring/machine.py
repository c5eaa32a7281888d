"""This machine: what it is, and what it can do at most."""

import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper

from dragoman_server.engine.settings import available_cores

_FLAGS = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "amx_int8")
_PACKAGES = ("dragoman", "onnxruntime", "ctranslate2", "transformers", "torch", "grpcio", "numpy")
_BUSY = 0.5
"""Load average before anything is measured, above which figures are doubtful."""


def divisions() -> list[tuple[int, int]]:
    """Return the sensible ways to use all cores, as workers and threads of each worker."""
    cores = available_cores()
    return sorted({(cores, 1), (1, cores)})


def describe() -> dict[str, Any]:
    """Return what the page of results says of the machine, the software and the command."""
    known = _cpu_info()
    flags = known.get("flags", "").split()
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "cpu": known.get("model name", platform.processor() or platform.machine()),
        "cores": available_cores(),
        "flags": [flag for flag in _FLAGS if flag in flags],
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "versions": versions,
        "command": " ".join(["python", *sys.argv]),
        "date": time.strftime("%Y-%m-%d"),
    }


def _cpu_info() -> dict[str, str]:
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    lines = path.read_text().split("\n\n")[0].splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, _, value in pairs}


def warn_if_busy(machine: dict[str, Any]) -> None:
    """Print a warning if something else ran when the machine was described."""
    if machine["load_before"] > _BUSY:
        print(
            f"the machine is busy (load {machine['load_before']}): figures will be doubtful",
            file=sys.stderr,
        )


@dataclass(frozen=True)
class Limits:
    """What the machine can do at most, with a number of threads."""

    threads: int
    float32_rate: float
    """Operations a second of a large float32 matrix product in PyTorch."""
    int8_rate: float
    """Operations a second of a large int8 matrix product in onnxruntime."""
    read_rate: float
    """Bytes a second that are read from memory."""


def limits(threads: int) -> Limits:
    """Measure the machine's limits. Sets the threads of PyTorch."""
    torch.set_num_threads(threads)
    size = 2048
    a = torch.randn(size, size)
    large = torch.ones(128 << 20)
    session = _int8_product(threads)
    left = np.random.default_rng(1).integers(0, 255, (size, size), np.uint8)
    return Limits(
        threads,
        2 * size**3 / _best(lambda: a @ a),
        2 * size**3 / _best(lambda: session.run(None, {"a": left})),
        large.numel() * 4 / _best(lambda: large.sum()),
    )


def _int8_product(threads: int) -> Any:
    """Return a session with one product. Its matrix is constant, as a model's weights are."""
    size = 2048
    matrix = np.random.default_rng(2).integers(-63, 63, (size, size), np.int8)
    shape = [size, size]
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["c"])],
        "product",
        [helper.make_tensor_value_info("a", TensorProto.UINT8, shape)],
        [helper.make_tensor_value_info("c", TensorProto.INT32, shape)],
        [onnx.numpy_helper.from_array(matrix, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(
        model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )


def _best(call: Callable[[], object], times: int = 5) -> float:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return min(found)
