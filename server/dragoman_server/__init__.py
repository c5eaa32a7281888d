"""Reads bundles and runs their graphs, without PyTorch; the home of the gRPC service."""

import os

# onnxruntime's own builds send usage data to its makers unless told not to before they are loaded.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
