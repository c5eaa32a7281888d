"""Devices, and how many candidates a step can give: what settings have to know of the runtime.

Imports nothing, so that ``dragoman --help`` need not load numpy and onnxruntime.
"""

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
"""onnxruntime's name of each device."""
MAX_CANDIDATES = 64
"""Most candidates of a row that an engine asks a step for. There is memory for them from the
start."""
