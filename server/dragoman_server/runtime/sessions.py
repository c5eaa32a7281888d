"""A graph's file as a session of onnxruntime, with the options that all graphs run under."""

from pathlib import Path

import onnxruntime as ort

from dragoman_server.errors import BundleError

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
"""By device."""


def open_session(graph: Path, device: str, threads: int, spin: bool) -> ort.InferenceSession:
    """On this device and no other: onnxruntime would fall back to the CPU in silence."""
    provider = PROVIDERS[device]
    if provider not in ort.get_available_providers():
        raise BundleError(f"device {device}: this onnxruntime has no {provider}")
    try:
        session = ort.InferenceSession(
            graph,
            _options(threads, spin),
            providers=[provider],
            enable_fallback=0,
            # Fused, the two take several times as long on the CPU.
            disabled_optimizers=["SkipLayerNormFusion"] if device == "cpu" else None,
        )
    except Exception as error:  # onnxruntime has no common class for them
        reason = str(error).splitlines()[0]
        raise BundleError(f"{graph}: onnxruntime can't load it ({reason})") from None
    if session.get_providers()[0] != provider:
        raise BundleError(f"device {device}: onnxruntime fell back to {session.get_providers()[0]}")
    return session


def _options(threads: int, spin: bool) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    # The level decides which kernels compute what, and with it the last bits of every score.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spin)))
    options.enable_mem_pattern = False  # shapes change from step to step
    options.log_severity_level = 3
    return options
