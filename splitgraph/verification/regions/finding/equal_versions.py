"""Versions of operators of ai.onnx that compute the same as the version before them, although their texts differ.

A version often says more than the one before it: negative axes, an optional attribute, what happens at a limit. A node
that uses nothing new computes the same in both. A test runs each entry of the table in onnxruntime and in the reference
evaluator, in both versions, and compares bits.

The table leaves out what an engine computes otherwise (negative indices of OneHot-9, AveragePool-11 in ceil mode), what
changed its meaning (Softmax-13), and splits: whatever a split is written as is compared alone. Below opset 7,
onnxruntime guarantees nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from splitgraph.model.schemas import OperatorVersion, version_at
from splitgraph.model.scopes import plain_domain
from splitgraph.verification.models.model_files import oldest_same_version

_REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSumSquare"),
    *("ReduceMax", "ReduceMin"),
)
# Of each operator, the versions that compute the same as the version before.
EQUAL_VERSIONS: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), (14,)),
    **dict.fromkeys(("Abs", "Ceil", "Floor", "Erf", "LRN"), (13,)),
    **dict.fromkeys(("ArgMax", "ArgMin"), (11, 12, 13)),
    **dict.fromkeys(("Conv", "ConvTranspose", "Concat", "Flatten", "Compress"), (11,)),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax", "Squeeze", "Unsqueeze"), (11,)),
    **dict.fromkeys(_REDUCTIONS, (11, 13)),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), (11, 12, 13)),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), (14,)),
    **dict.fromkeys(("ScatterElements", "ScatterND"), (16, 18)),
    "Cast": (13, 19),
    "Clip": (13,),
    "DepthToSpace": (11, 13),
    "Gather": (11, 13),
    "GatherElements": (13,),
    "GatherND": (12, 13),
    "Gemm": (11, 13),
    "Identity": (14,),
    "MaxPool": (10, 11, 12, 22),
    "Mod": (13,),
    "PRelu": (16,),
    "Pad": (13, 18, 19),
    "Pow": (12,),
    "ReduceSum": (11,),
    "Reshape": (14,),
    "Resize": (13, 18, 19),
    "Scan": (11,),
    "Shape": (15,),
    "Slice": (11, 13),
    "TopK": (11,),
    "Transpose": (21, 25),
}
# The same, of nodes with one output: more of them mean training.
EQUAL_OF_ONE_OUTPUT: Mapping[str, Sequence[int]] = {"BatchNormalization": (14, 15)}


def means_same(node: onnx.NodeProto, opsets: Sequence[int | None]) -> bool:
    """Return True if a node means the same at two opsets of its domain: newer versions only added types, or compute the
    same from what the node uses. An operator of another domain that nobody here knows is not called changed.
    """
    plain = plain_domain(node.domain)
    if None in opsets:
        return False
    found = [version_at(plain, node.op_type, opset or 0) for opset in opsets]
    versions = [version for version in found if version is not None]
    if len(versions) < 2:
        return bool(plain) and not versions
    older, newer = sorted(versions, key=lambda version: version.since_version)
    if older.since_version == newer.since_version:
        return True
    return not plain and (
        oldest_same_version(node.op_type, newer.since_version) <= older.since_version
        or (has_only(node, older) and has_only(node, newer) and _oldest_equal(node, newer) <= older.since_version)
    )


def _oldest_equal(node: onnx.NodeProto, version: OperatorVersion) -> int:
    """Return the oldest version from which on all compute the same from what a node uses."""
    equal = EQUAL_VERSIONS.get(node.op_type, ())
    if len(node.output) == 1:
        equal = (*equal, *EQUAL_OF_ONE_OUTPUT.get(node.op_type, ()))
    since = oldest_same_version(node.op_type, version.since_version)
    while since in equal and (before := version_at("", node.op_type, since - 1)) is not None:
        since = oldest_same_version(node.op_type, before.since_version)
    return since


def has_only(node: onnx.NodeProto, version: OperatorVersion) -> bool:
    """Return True if a version has all attributes, inputs and outputs of a node."""
    fits = len(node.input) <= version.max_inputs and len(node.output) <= version.max_outputs
    return fits and all(attribute.name in version.attributes for attribute in node.attribute)
