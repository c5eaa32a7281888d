"""Reads bundles and runs their graphs, without PyTorch; the home of the gRPC service."""
