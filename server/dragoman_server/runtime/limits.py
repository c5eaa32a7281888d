"""Devices, and how many candidates a step can give: what settings have to know of the runtime.

Imports nothing, so that ``dragoman --help`` need not load numpy and onnxruntime.
"""

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
"""onnxruntime's name of each device."""
MAX_CANDIDATES = 64
"""Best tokens of a row that there is memory for from the start."""
