"""The ONNX graphs of a bundle, written from a model's weights."""
