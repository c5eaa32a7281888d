"""The graphs of a bundle on onnxruntime, and the buffers they work on."""
