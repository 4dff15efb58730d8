"""Inference of OpenVINO IR. Its layers are mirrored as nodes of an ONNX model, in a domain of their own."""

from splitgraph.inference.openvino_ir.infer import infer_ir, walk_mirror, with_layers
from splitgraph.inference.openvino_ir.mirror import Mirror, input_names, is_split, mirror

__all__ = ["Mirror", "infer_ir", "input_names", "is_split", "mirror", "walk_mirror", "with_layers"]
