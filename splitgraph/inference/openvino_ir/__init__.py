"""Inference of OpenVINO IR: its layers as nodes of a domain of their own, walked as the nodes of an ONNX model are."""

from splitgraph.inference.openvino_ir.infer import infer_ir
from splitgraph.inference.openvino_ir.mirror import Mirror, input_names, is_split, mirror

__all__ = ["Mirror", "infer_ir", "input_names", "is_split", "mirror"]
