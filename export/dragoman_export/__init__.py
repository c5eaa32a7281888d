"""Writes a checkpoint as ONNX graphs in a self-describing bundle."""
