"""Rules of the operators that onnxruntime adds to ONNX."""
