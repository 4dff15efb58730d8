"""The versions of an ai.onnx operator that conversion meets: those of the schemas, what was experimental, and what
onnxruntime adds to the domain.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from splitgraph import schemas
from splitgraph.onnx_proto import AttributeProto
from splitgraph.schemas import Formal, FormalAttribute, OperatorVersion


@cache
def version_at(op: str, opset: int) -> OperatorVersion | None:
    """The version of an ai.onnx operator that an opset means, None when the operator does not exist there."""
    if op in _EXPERIMENTAL:
        return _EXPERIMENTAL[op][opset >= _WITHOUT_EXPERIMENTS]
    if op in _OF_ONNXRUNTIME:
        return _OF_ONNXRUNTIME[op]
    return schemas.version_at("", op, opset)


@cache
def versions_between(op: str, lowest: int, highest: int) -> tuple[OperatorVersion, ...]:
    """Every version that the opsets lowest..highest mean, oldest first; the operator may be younger than `lowest`."""
    versions: list[OperatorVersion] = []
    version = version_at(op, highest)
    while version is not None:
        versions.append(version)
        if version.since_version <= lowest:
            break
        version = version_at(op, version.since_version - 1)
    return tuple(reversed(versions))


def _constant_fill() -> OperatorVersion:
    """The experimental operator that onnx 1.0 to 1.3 had, as its document gives it."""
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


def _simplified_layer_normalization() -> OperatorVersion:
    """onnxruntime's root mean square normalization, which its exporters of language models write into ai.onnx. It has
    one version, and does the same at every opset. Source: onnxruntime's registered schemas.
    """
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


_OF_ONNXRUNTIME = {version.op: version for version in (_simplified_layer_normalization(),)}
# From this opset on ConstantOfShape is there. No schema is left of what was experimental.
_WITHOUT_EXPERIMENTS = 9
_EXPERIMENTAL = {
    version.op: (version, replace(version, since_version=_WITHOUT_EXPERIMENTS, deprecated=True))
    for version in (_constant_fill(),)
}
