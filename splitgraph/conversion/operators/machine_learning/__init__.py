"""Operators of ai.onnx.ml: the boundaries between their versions, and their standard forms, a family a file."""
