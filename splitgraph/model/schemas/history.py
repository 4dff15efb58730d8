"""The versions of all operators, with experimental operators of ai.onnx and those that onnxruntime adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from splitgraph.model.onnx_proto import AttributeProto
from splitgraph.model.schemas import table
from splitgraph.model.schemas.experimental import EXPERIMENTAL, experimental_at, experiments_end, was_experimental
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


def meant_opset(op: str, opset: int) -> int:
    """Return the opset at which onnx defines what a node of ai.onnx means at this opset: a later one if onnx took the
    operator over later.
    """
    return max(opset, _TAKEN_OVER.get(op, 0))


# History -------------------------------------------------------------------------------------------------------------


@cache
def meant_version(op: str, opset: int, domain: str = "") -> OperatorVersion | None:
    """Return the version that a node of an operator means at an opset of its domain; None where it does not exist.
    Experimental operators and those of onnxruntime count, which `table.version_at` does not know.
    """
    if domain:
        return table.version_at(domain, op, opset)
    experiment = experimental_at(op, opset)
    if experiment is not None:
        return experiment
    if op in EXPERIMENTAL and was_experimental(op):
        return replace(EXPERIMENTAL[op], since_version=experiments_end(op), deprecated=True)
    if op in ITS_OWN:
        return ITS_OWN[op]
    return table.version_at("", op, opset)


@cache
def versions_between(op: str, lowest: int, highest: int, domain: str = "") -> tuple[OperatorVersion, ...]:
    """Return all versions of an operator at the opsets lowest..highest, oldest first. It may be newer than `lowest`."""
    versions: list[OperatorVersion] = []
    version = meant_version(op, highest, domain)
    while version is not None:
        versions.append(version)
        if version.since_version <= lowest:
            break
        version = meant_version(op, version.since_version - 1, domain)
    return tuple(reversed(versions))
