"""What a schema does not allow and runtimes read, all in one way: element types, and attributes of another version.

A finding about such a node is a warning, and each entry was measured. `tests/campaigns/tolerated_slips.py` found them:
it tries every operator.

Element types: OpenVINO and the reference evaluator run the node, with the results of the node that the schema allows
(the integers as int64; the newer version of the operator). onnxruntime refuses the node.
`tests/inference/test_lenient_types.py` measures every entry again, in the installed engines; docs/diagnostics.md shows
the tables.

Attributes that only another version has, at values that change nothing: in no engine does the attribute change the
result. `dilations` of MaxPool and LpPool and both attributes of Resize run in OpenVINO and the reference evaluator.
`dilations` of AveragePool, `spatial` and `output_sequence` run in OpenVINO only: the reference evaluator knows the
attributes of a node by its version, and onnxruntime (1.15, 1.17, 1.32) refuses the node. That they change nothing at
these values is what the documents of the versions that have them say. What a later version has by default is found
without an entry (`repairs.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from splitgraph.schemas import OperatorVersion, version_at

_REDUCTIONS = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum"
# By operator, the inputs whose integers may be int32 where the schema asks for int64, or for one type in all of them.
# Runtimes read ConstantOfShape so, too, but a test of onnx demands the error (tests/conformance/test_onnx_suites.py).
INT32_INPUTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys((*_REDUCTIONS.split(), "ReduceSumSquare", "Squeeze", "Unsqueeze"), (1,)),
    **dict.fromkeys(("Expand", "GatherND", "Reshape", "ScatterND", "Tile", "TopK"), (1,)),
    "AffineGrid": (1,),
    "Loop": (0,),
    "NonMaxSuppression": (2,),
    "Resize": (3,),
    "ReverseSequence": (1,),
    "RoiAlign": (2,),
    "RotaryEmbedding": (3,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "STFT": (1, 3),
}
_SMALL = ("int8", "int16", "uint8", "uint16")
_INTEGERS = (*_SMALL, "int32", "int64", "uint32", "uint64")
_WIDE = ("int32", "int64", "uint32", "uint64")
# By operator, the version that takes more element types and is otherwise the same, and those of its types that older
# versions are run with.
NEWER_TYPES: dict[str, tuple[int, tuple[str, ...]]] = {
    **dict.fromkeys(("Add", "Div", "Mul", "Sub"), (14, _SMALL)),
    "Clip": (12, _INTEGERS),
    "Equal": (11, (*_INTEGERS, "float16", "float32", "float64")),
    "Flatten": (9, (*_INTEGERS, "bool")),
    **dict.fromkeys(("Greater", "Less"), (9, _INTEGERS)),
    **dict.fromkeys(("Gemm", "MatMul", "PRelu"), (9, _WIDE)),
    **dict.fromkeys(("Max", "Min"), (12, _INTEGERS)),
    "Pow": (12, ("int32", "int64")),
    "Relu": (14, ("int8", "int16", "int32", "int64")),
}
# The oldest opset that was measured.
FIRST_OPSET = 7

Types = Sequence[str | None]


@cache
def newer_version(schema: OperatorVersion, opset: int) -> OperatorVersion | None:
    """The newer version of an operator by which runtimes read this one; None for an operator without."""
    newer, _ = NEWER_TYPES.get(schema.op, (0, ()))
    if schema.domain or opset < FIRST_OPSET or schema.since_version >= newer:
        return None
    return version_at("", schema.op, newer)


def as_int64(schema: OperatorVersion, given: Types, opset: int) -> tuple[str | None, ...] | None:
    """The types of a node's inputs, with int32 read as int64 where runtimes do; None where they do not."""
    inputs = INT32_INPUTS.get(schema.op, ())
    if (
        schema.domain
        or opset < FIRST_OPSET
        or not any(given[index] == "int32" for index in inputs if index < len(given))
    ):
        return None
    return tuple("int64" if index in inputs and text == "int32" else text for index, text in enumerate(given))


def are_measured(schema: OperatorVersion, given: Types) -> bool:
    """True where the types that the version does not allow are among those that its newer version was measured with."""
    _, measured = NEWER_TYPES[schema.op]
    return all(text is None or text in measured or text.startswith("float") for text in given)


# Of a list: each element is this number.
ALL_ONES = "all 1"

# By operator and attribute, the value that changes nothing.
SUPERFLUOUS: Mapping[str, Mapping[str, int | str]] = {
    **{op: {"dilations": ALL_ONES} for op in ("AveragePool", "LpPool", "MaxPool")},
    "BatchNormalization": {"spatial": 1},
    **{op: {"output_sequence": 0} for op in ("GRU", "LSTM", "RNN")},
    "Resize": {"antialias": 0, "keep_aspect_ratio_policy": "stretch"},
}


def changes_nothing(op: str, name: str, value: object) -> bool:
    """True for an attribute of another version at a value that changes nothing."""
    held = SUPERFLUOUS.get(op, {}).get(name)
    if held == ALL_ONES:
        return isinstance(value, tuple) and bool(value) and set(value) == {1}
    return held is not None and value == held
