"""The versions of all operators of ai.onnx, with experimental ones and those that onnxruntime adds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from splitgraph.onnx_proto import AttributeProto
from splitgraph.schemas import table
from splitgraph.schemas.of_onnxruntime import ITS_OWN
from splitgraph.schemas.operator_version import Formal, FormalAttribute, OperatorVersion


@cache
def version_at(op: str, opset: int) -> OperatorVersion | None:
    """The version of an operator of ai.onnx at an opset, None where it does not exist."""
    if op in _EXPERIMENTAL:
        return _EXPERIMENTAL[op][opset >= _WITHOUT_EXPERIMENTS]
    if op in ITS_OWN:
        return ITS_OWN[op]
    return table.version_at("", op, opset)


@cache
def versions_between(op: str, lowest: int, highest: int) -> tuple[OperatorVersion, ...]:
    """All versions of an operator at the opsets lowest..highest, oldest first. It may be newer than `lowest`."""
    versions: list[OperatorVersion] = []
    version = version_at(op, highest)
    while version is not None:
        versions.append(version)
        if version.since_version <= lowest:
            break
        version = version_at(op, version.since_version - 1)
    return tuple(reversed(versions))


def _constant_fill() -> OperatorVersion:
    """The experimental operator of onnx 1.0 to 1.3, as documented there."""
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
