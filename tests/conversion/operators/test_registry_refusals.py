"""Of each rule of a boundary, and of each operator that it is about: a node that it refuses to keep, or edits where it
keeps every node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import onnx
import pytest
from conversion.keeping import check
from onnx import AttributeProto, TensorProto, helper

from splitgraph.conversion.operators.registry import RULES, always, load_families

load_families()
NEWEST = onnx.defs.onnx_opset_version()
FNUZ = {"to": TensorProto.FLOAT8E4M3FNUZ, "out": ["float8e4m3fnuz"]}
TYPED_AS_FNUZ = {"dtypes": ["float32", "float8e4m3fnuz"], "out": ["float8e4m3fnuz"]}
# A window of 2 that ceil_mode lets start in the padding.
LATE_WINDOW = {"kernel_shape": [2], "strides": [2], "pads": [0, 1], "ceil_mode": 1}
MIDDLE_AXIS = {"axis": 1, "shapes": [(2, 3, 4)]}
LAST_BUT_ONE = {"axis": -2, "shapes": [(2, 3, 4)]}


class Refused(NamedTuple):
    """Nodes of several operators, with so many inputs and outputs each, on the way over a boundary."""

    ops: str
    boundary: int
    way: str
    inputs: int
    options: dict[str, Any]
    outputs: int = 1


def _branch(size: int) -> onnx.GraphProto:
    return helper.make_graph([], "branch", [], [helper.make_tensor_value_info("b", 1, (size,))])


BROADCAST = "Add Sub Mul Div And Or Xor Equal Greater Less Pow"
REDUCTIONS = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare"
RECURRENT = ("GRU", "LSTM", "RNN")
REFERENCE = {"references": [("direction", AttributeProto.STRING)]}

CASES = [
    Refused(BROADCAST, 7, "up", 2, {"broadcast": 1, "axis": 0}),
    Refused(BROADCAST, 7, "down", 2, {"shapes": [(3, 1), (1, 3)]}),
    Refused("Max Mean Min Sum", 8, "down", 2, {"shapes": [(3, 1), (1, 3)]}),
    Refused("Gemm", 7, "down", 3, {"shapes": [(2, 2), (2, 2), (1, 2)]}),
    Refused("PRelu", 7, "up", 2, {"shapes": [(1, 3, 4, 4), (3,)]}),
    Refused("PRelu", 7, "down", 2, {"shapes": [(1, 3, 4, 4), (4,)]}),
    Refused("BatchNormalization", 6, "down", 5, {"shapes": [(2, 3, 4)]}),
    Refused("BatchNormalization", 7, "up", 5, {}),
    Refused("BatchNormalization", 7, "down", 5, {}, 2),
    Refused("BatchNormalization", 14, "up", 5, {}, 5),
    Refused("BatchNormalization", 14, "down", 5, {"training_mode": 1}, 1),
    *[
        Refused("BatchNormalization", 15, way, 5, {"dtypes": ["float16"] * 5, "out": ["float16"], "training_mode": 1})
        for way in ("up", "down")
    ],
    Refused("Dropout", 7, "up", 1, {}),
    Refused("Dropout", 7, "down", 1, {}, 2),
    *[Refused("Dropout", boundary, way, 1, {}, 2) for boundary in (10, 12) for way in ("up", "down")],
    Refused("InstanceNormalization", 6, "down", 3, {"shapes": [(2, 3, 4)]}),
    Refused("GRU", 3, "up", 3, REFERENCE),
    Refused("Reshape", 5, "up", 1, {"shape": [1]}),
    Refused("Reshape", 5, "down", 2, {}),
    Refused("Tile", 6, "up", 3, {}),
    Refused("Tile", 6, "down", 2, {}),
    Refused("Upsample", 7, "up", 1, {"height_scale": 2.0, "width_scale": 2.0}),
    Refused("Upsample", 7, "down", 1, {"scales": [1.0, 1.0, 2.0, 2.0]}),
    Refused("Upsample", 9, "up", 1, {"scales": [1.0, 1.0, 2.0, 2.0]}),
    Refused("Upsample", 9, "down", 2, {}),
    Refused("Upsample", 10, "up", 2, {}),
    Refused("Upsample", 10, "down", 2, {}),
    Refused("Slice", 10, "up", 1, {"starts": [0], "ends": [1]}),
    Refused("Slice", 10, "down", 3, {}),
    Refused("Slice", 11, "down", 4, {}),
    Refused("TopK", 10, "up", 1, {"k": 1}, 2),
    Refused("TopK", 10, "down", 2, {}, 2),
    Refused("Clip", 6, "up", 1, {"dtypes": ["float64"]}),
    Refused("Clip", 6, "down", 1, {"dtypes": ["float64"]}),
    Refused("Clip", 11, "up", 1, {"min": 0.0}),
    Refused("Clip", 11, "down", 2, {}),
    Refused("Pad", 2, "up", 1, {"paddings": [0, 1]}),
    Refused("Pad", 2, "down", 1, {"pads": [0, 1]}),
    Refused("Pad", 11, "up", 1, {"pads": [0, 1]}),
    Refused("Pad", 11, "down", 2, {}),
    Refused("Pad", 19, "down", 2, {"mode": "wrap"}),
    Refused("ReduceSum Squeeze Unsqueeze", 13, "up", 1, {"axes": [0]}),
    Refused("ReduceSum Squeeze Unsqueeze", 13, "down", 2, {}),
    Refused(REDUCTIONS, 18, "up", 1, {"axes": [0]}),
    Refused(REDUCTIONS, 18, "down", 1, {"noop_with_empty_axes": 1}),
    Refused("DFT", 20, "up", 1, {"axis": 1, "shapes": [(1, 4, 5, 2)]}),
    Refused("DFT", 20, "down", 3, {"shapes": [(1, 4, 5, 2)]}),
    Refused("ArgMax ArgMin Compress Concat Flatten Hardmax LogSoftmax Softmax", 11, "down", 1, {"axis": -1}),
    Refused(f"{REDUCTIONS} ReduceSum Squeeze Unsqueeze", 11, "down", 1, {"axes": [-1]}),
    Refused("Scan", 11, "down", 1, {"scan_input_axes": [0], "scan_output_axes": [-1]}),
    *[Refused("OneHot", 11, way, 3, {"dtypes": ["int64", "int64", "float32"]}) for way in ("up", "down")],
    *[Refused("Hardmax LogSoftmax Softmax", 13, way, 1, MIDDLE_AXIS) for way in ("up", "down")],
    *[Refused("Hardmax LogSoftmax Softmax", 13, way, 1, LAST_BUT_ONE) for way in ("up", "down")],
    Refused("Cast", 6, "up", 1, {"to": "NONE"}),
    Refused("Cast", 6, "down", 1, {"to": 99}),
    Refused("ConvTranspose", 11, "up", 2, {"output_shape": [4]}),
    Refused("ConvTranspose", 11, "down", 2, {"auto_pad": "SAME_UPPER"}),
    Refused("Constant", 12, "down", 0, {"references": [("value_int", AttributeProto.INT)]}),
    Refused("QuantizeLinear DequantizeLinear", 13, "down", 2, {"shapes": [(2, 3), (3,)]}),
    Refused("Resize", 11, "up", 2, {}),
    Refused("Resize", 11, "down", 3, {}),
    Refused("Resize", 13, "up", 4, {}),
    Refused("Resize", 19, "down", 3, {"coordinate_transformation_mode": "half_pixel_symmetric"}),
    *[Refused("RoiAlign", 16, way, 3, {"mode": "max"}) for way in ("up", "down")],
    Refused("ScatterElements ScatterND", 18, "down", 3, {"reduction": "max"}),
    Refused("ScatterElements ScatterND", 18, "down", 3, {"reduction": "min"}),
    Refused("GridSample", 20, "up", 2, {"mode": "linear"}),
    Refused("GridSample", 20, "down", 2, {"mode": "linear", "shapes": [(1, 1, 2, 2, 2)]}),
    Refused("AveragePool LpPool MaxPool", 22, "down", 1, LATE_WINDOW),
    Refused("MaxPool", 22, "up", 1, LATE_WINDOW),
    *[Refused("Cast", 24, way, 1, FNUZ) for way in ("up", "down")],
    *[Refused("CastLike", 24, way, 2, TYPED_AS_FNUZ) for way in ("up", "down")],
    Refused("BitShift", 28, "down", 2, {"dtypes": ["uint8"] * 2, "out": ["uint8"], "direction": "LEFT"}),
    Refused("Mod", 28, "down", 2, {}),
    Refused("Scan", 9, "up", 2, {}),
    Refused("Scan", 9, "down", 2, {}),
    *[Refused("Scatter", 11, way, 3, {}) for way in ("up", "down")],
    Refused("If", 11, "down", 1, {"dtypes": ["bool"], "then_branch": _branch(2), "else_branch": _branch(3)}),
    *[Refused("GroupNormalization", 21, way, 3, {"num_groups": 2}) for way in ("up", "down")],
    *[
        Refused("Attention", 24, way, 4, {"shapes": [(1, 1, 2, 4), (1, 1, 3, 4), None, (2, 1)]})
        for way in ("up", "down")
    ],
    Refused("Attention", 25, "up", 5, {}),
    *[Refused("ConstantFill", 9, way, 1, {}) for way in ("up", "down")],
    *[
        Refused("Affine Crop GivenTensorFill ImageScaler ParametricSoftplus Scale ScaledTanh", 10, way, 1, {})
        for way in ("up", "down")
    ],
    *[Refused("DynamicSlice", 10, way, 3, {}) for way in ("up", "down")],
    *[Refused("MeanVarianceNormalization", 9, way, 1, {}) for way in ("up", "down")],
    Refused("ThresholdedRelu", 10, "down", 1, {}),
]
# onnx 1.20 to 1.22 have opset 25, but not yet this part of it.
LATEST = 24 if NEWEST < 28 else NEWEST
EACH = [(op, case) for case in CASES for op in case.ops.split() if case.boundary <= LATEST]


def _checked(op: str, boundary: int, way: str, *arguments: Any, **options: Any) -> Any:
    below, above = boundary - 1, boundary
    return check(op, *((below, above) if way == "up" else (above, below)), *arguments, **options)


@pytest.mark.parametrize(("op", "case"), EACH, ids=[f"{op}-{case.boundary}-{case.way}" for op, case in EACH])
def test_refused(op: str, case: Refused) -> None:
    _, blockers = _checked(op, case.boundary, case.way, case.inputs, case.outputs, **case.options)
    told = [blocker.message for blocker in blockers if blocker.code == "SG405"]
    assert [f"{op} changes at opset {case.boundary}: " in text for text in told] == [True], blockers


# Rules that keep every node, and what they make of its attributes.
EDITED: list[tuple[str, int, str, int, dict[str, Any], dict[str, Any]]] = [
    ("Concat", 4, "up", 2, {}, {"axis": 1}),
    ("Gemm", 7, "up", 3, {"broadcast": 1}, {"broadcast": None}),
    *[(op, 7, "up", 3, {"output_sequence": 1}, {"output_sequence": None}) for op in RECURRENT],
    *[(op, 7, "down", 3, {}, {"output_sequence": 1}) for op in RECURRENT],
    ("MeanVarianceNormalization", 13, "up", 1, {}, {"axes": [0, 2, 3]}),
    *[(op, 22, "up", 1, LATE_WINDOW, {}) for op in ("AveragePool", "LpPool")],
]


@pytest.mark.parametrize(("op", "boundary", "way", "inputs", "options", "expected"), EDITED)
def test_edited(
    op: str, boundary: int, way: str, inputs: int, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    edits, blockers = _checked(op, boundary, way, inputs, **options)
    assert blockers == []
    assert edits == expected


def test_no_rule_is_left_out() -> None:
    load_families()
    # Those of ai.onnx.ml have tables of their own.
    others = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == "ai.onnx.ml"}
    rules = {
        (op, boundary, way)
        for (op, boundary), rule in RULES.items()
        for way, predicate in (("up", rule.up), ("down", rule.down))
        if predicate is not always and op not in others
    }
    refused = {(op, case.boundary, case.way) for case in CASES for op in case.ops.split()}
    assert rules == refused | {(op, boundary, way) for op, boundary, way, *_ in EDITED}
