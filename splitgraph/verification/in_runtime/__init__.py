"""Run a model in a runtime itself, compare it with what onnxruntime gives, and find the first node that goes wrong."""
