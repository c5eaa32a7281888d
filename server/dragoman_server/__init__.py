"""Serves bundles over gRPC, without PyTorch (not built yet)."""
