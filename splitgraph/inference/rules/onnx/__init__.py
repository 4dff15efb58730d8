"""Rules of the operators of ONNX (domains ai.onnx, ai.onnx.ml and ai.onnx.preview.training)."""
