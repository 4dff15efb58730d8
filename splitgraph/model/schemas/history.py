"""The versions of all operators of ai.onnx, with experimental operators and those that onnxruntime adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from splitgraph.model.onnx_proto import AttributeProto
from splitgraph.model.schemas import table
from splitgraph.model.schemas.operator_version import Formal, FormalAttribute, OperatorVersion

# Operators of onnxruntime --------------------------------------------------------------------------------------------


# Operators that onnxruntime had before onnx took them over, with the opset at which onnx did. Below it, they mean the
# same.
_TAKEN_OVER: Mapping[str, int] = {"LayerNormalization": 17}


def _simplified_layer_normalization() -> OperatorVersion:
    """Return the root mean square normalization of its exporters of language models; it has one version."""
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

# Experimental operators that onnx removed, with the opset from which on onnxruntime no longer runs them.
_REMOVED: Mapping[str, int] = {"Affine": 10, "Crop": 10, "ImageScaler": 10}


def removed_at(op: str, otherwise: int) -> int:
    """Return the opset from which on onnxruntime no longer has an operator of its own; `otherwise` if it still has
    it.
    """
    return _REMOVED.get(op, otherwise)


def meant_opset(op: str, opset: int) -> int:
    """Return the opset at which onnx defines what a node of ai.onnx means at this opset: a later one if onnx took the
    operator over later.
    """
    return max(opset, _TAKEN_OVER.get(op, 0))


# History -------------------------------------------------------------------------------------------------------------


@cache
def version_at(op: str, opset: int) -> OperatorVersion | None:
    """Return the version of an operator of ai.onnx at an opset, None where it does not exist."""
    if op in _EXPERIMENTAL:
        return _EXPERIMENTAL[op][opset >= _WITHOUT_EXPERIMENTS]
    if op in ITS_OWN:
        return ITS_OWN[op]
    return table.version_at("", op, opset)


@cache
def versions_between(op: str, lowest: int, highest: int) -> tuple[OperatorVersion, ...]:
    """Return all versions of an operator at the opsets lowest..highest, oldest first. It may be newer than `lowest`."""
    versions: list[OperatorVersion] = []
    version = version_at(op, highest)
    while version is not None:
        versions.append(version)
        if version.since_version <= lowest:
            break
        version = version_at(op, version.since_version - 1)
    return tuple(reversed(versions))


def _constant_fill() -> OperatorVersion:
    """Return the experimental operator of onnx 1.0 to 1.3, as documented there."""
    types = frozenset(f"tensor({name})" for name in ("float", "int32", "int64", "bool"))
    kinds = AttributeProto
    attributes = {
        "value": FormalAttribute("value", kinds.FLOAT, False, 0.0),
        "dtype": FormalAttribute("dtype", kinds.INT, False, 1),
        "shape": FormalAttribute("shape", kinds.INTS, False),
        "extra_shape": FormalAttribute("extra_shape", kinds.INTS, False),
        "input_as_shape": FormalAttribute("input_as_shape", kinds.INT, False),
    }
    inputs = (Formal("input", "T1", types, "optional", True, 1),)
    outputs = (Formal("output", "T2", types, "single", True, 1),)
    return OperatorVersion("", "ConstantFill", 1, False, False, attributes, inputs, outputs, 0, 1, 1)


# From this opset on, ConstantOfShape replaces it. onnx no longer has the schemas of experimental operators.
_WITHOUT_EXPERIMENTS = 9
_EXPERIMENTAL = {
    version.op: (version, replace(version, since_version=_WITHOUT_EXPERIMENTS, deprecated=True))
    for version in (_constant_fill(),)
}
