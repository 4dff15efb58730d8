"""Run models with the reference evaluator of onnx and with NumPy kernels of the split operators."""
