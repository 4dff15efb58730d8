"""What onnxruntime adds to ai.onnx: its tools write such nodes into models that they optimize or export, and it runs
them at every opset. Source: onnxruntime's registered schemas.
"""

from __future__ import annotations

from collections.abc import Mapping

from splitgraph.onnx_proto import AttributeProto
from splitgraph.schemas.operator_version import Formal, FormalAttribute, OperatorVersion

# Operators that it had before onnx took them over, with the opset at which onnx did: below it they mean the same.
_TAKEN_OVER: Mapping[str, int] = {"LayerNormalization": 17}


def _simplified_layer_normalization() -> OperatorVersion:
    """The root mean square normalization of its exporters of language models; it has one version."""
    floats = frozenset(f"tensor({name})" for name in ("bfloat16", "double", "float", "float16"))
    kinds = AttributeProto
    attributes = {
        "axis": FormalAttribute("axis", kinds.INT, False, -1),
        "epsilon": FormalAttribute("epsilon", kinds.FLOAT, False, 1e-5),
        "stash_type": FormalAttribute("stash_type", kinds.INT, False, 1),
    }
    inputs = (Formal("X", "T", floats, "single", True, 1), Formal("scale", "V", floats, "single", True, 1))
    statistics = frozenset({"tensor(double)", "tensor(float)"})
    outputs = (
        Formal("Y", "V", floats, "single", True, 1),
        Formal("inv_std_var", "U", statistics, "optional", True, 1),
    )
    return OperatorVersion("", "SimplifiedLayerNormalization", 1, False, False, attributes, inputs, outputs, 2, 2, 2)


# Operators that onnx does not have.
ITS_OWN: Mapping[str, OperatorVersion] = {version.op: version for version in (_simplified_layer_normalization(),)}

# Experimental operators of onnx that onnx removed, with the opset at which onnxruntime stops to run them.
_REMOVED: Mapping[str, int] = {"Affine": 10, "Crop": 10, "ImageScaler": 10}


def removed_at(op: str, otherwise: int) -> int:
    """The opset from which on onnxruntime has an operator of its own no more; `otherwise` where it still has it."""
    return _REMOVED.get(op, otherwise)


def meant_opset(op: str, opset: int) -> int:
    """The opset at which onnx defines what a node of ai.onnx means at this one: this one itself, but for operators that
    onnx took over later.
    """
    return max(opset, _TAKEN_OVER.get(op, 0))
