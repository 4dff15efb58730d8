"""Rules of OpenVINO's layers on IR written by hand: refusals, extensions, and forms that its own API never makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from one_layer import one_layer

from splitgraph.conversion.openvino_ir import convert_ir
from splitgraph.inference.openvino_ir import infer_ir
from splitgraph.options import Sizes

INVALID: dict[str, tuple[str, str, dict[str, str], list[Any], str]] = {
    "broadcast": ("Add", "opset1", {}, ["f32 2,3", "f32 2,4"], "dimensions 3 and 4 do not broadcast"),
    # OpenVINO refuses these when it runs them; of GatherND it reads other memory, or crashes.
    "scatter_beyond": ("ScatterUpdate", "opset3", {}, [[1, 2, 3], [0, 3], [7, 8], 0], "index 3 is out of range"),
    "scatter_before": ("ScatterUpdate", "opset3", {}, [[1, 2, 3], [0, -1], [7, 8], 0], "must be at least 0"),
    "scatter_elements": ("ScatterElementsUpdate", "opset12", {}, ["i64 5", [6], [7], 0], "index 6 is out of range"),
    "gather_elements": ("GatherElements", "opset6", {"axis": "0"}, ["f32 5", [6]], "index 6 is out of range"),
    "gather_off_axis": ("GatherElements", "opset6", {"axis": "0"}, ["f32 5,4", "i64 1,3"], "on axis 1 must be equal"),
    "gather_tuples": ("GatherND", "opset8", {}, ["f32 5", [6]], "index 6 is out of range"),
    "embeddings": ("EmbeddingBagOffsetsSum", "opset3", {}, ["f32 5,2", [6], [0]], "index 6 is out of range"),
    "alike": ("Add", "opset1", {"auto_broadcast": "none"}, ["f32 2,3", "f32 1,3"], "must be equal, not 2 and 1"),
    "alike_ranks": ("Add", "opset1", {"auto_broadcast": "none"}, ["f32 2,3", "f32 3"], "ranks 2 and 1"),
    "broadcast_mode": ("Add", "opset1", {"auto_broadcast": "torch"}, ["f32 2", "f32 2"], "must be numpy, none or pdpd"),
    "element_types": ("Add", "opset1", {}, ["f32 2", "i64 2"], "same element type, not float32 and int64"),
    "reshape": ("Reshape", "opset1", {"special_zero": "false"}, ["f32 2,3", [4, -1]], "cannot be reshaped"),
    "flag": ("Reshape", "opset1", {"special_zero": "maybe"}, ["f32 2,3", [6]], "must be true or false"),
    "concat": ("Concat", "opset1", {"axis": "2"}, ["f32 2,3", "f32 2,3"], "axis 2 is out of range"),
    "number": ("Concat", "opset1", {"axis": "last"}, ["f32 2,3", "f32 2,3"], "which is not an integer"),
    "gather": (
        "Gather",
        "opset8",
        {"batch_dims": "2"},
        ["f32 2,3", "i64 2,3", 1],
        "batch_dims 2 is greater than the axis 1",
    ),
    "transpose": ("Transpose", "opset1", {}, ["f32 2,3", [0, 0]], "not a permutation"),
    "strides": ("StridedSlice", "opset1", {}, ["f32 4", [0], [2], [0]], "a stride is 0; strides must not be 0"),
    "entries": ("StridedSlice", "opset1", {}, ["f32 4", [0, 0], [2, 2], [1, 1]], "more entries than the 1 axes"),
    "strides_count": ("StridedSlice", "opset1", {}, ["f32 4,4", [0], [2, 2]], "the numbers must be equal"),
    "matmul": ("MatMul", "opset1", {"transpose_b": "true"}, ["f32 2,3", "f32 3,4"], "must be equal, not 3 and 4"),
    "channels": ("Convolution", "opset1", {"strides": "1"}, ["f32 1,3,8", "f32 4,2,3"], "must be equal, not 3 and 2"),
    "sides": ("Convolution", "opset1", {"strides": "1,1"}, ["f32 1,3,8", "f32 4,3,3"], "2 strides for 1 spatial"),
    "window": ("Convolution", "opset1", {}, ["f32 1,3,2", "f32 4,3,3"], "does not fit"),
    "auto_pad": ("MaxPool", "opset1", {"kernel": "2", "auto_pad": "full"}, ["f32 1,3,8"], "auto_pad is 'full'"),
    "kernel": ("AvgPool", "opset1", {"kernel": "2,2"}, ["f32 1,3,8"], "it must have 2 elements fewer"),
    "numpy_target": ("Broadcast", "opset3", {"mode": "numpy"}, ["f32 2,3", [4, 3]], "must be equal, not 2 and 4"),
    "pads": ("Pad", "opset1", {"pad_mode": "constant"}, ["f32 2,3", [1], [1, 1]], "1 pads for an input of rank 2"),
    "lengths": ("ReverseSequence", "opset1", {"seq_axis": "1"}, ["f32 3,5", "i64 2"], "axis 0; it must be 3"),
    "scales": ("GroupNormalization", "opset12", {"num_groups": "2"}, ["f32 3,4,5", "f32 4", "f32 2"], "it must be [4]"),
    "depth": ("DepthToSpace", "opset1", {"block_size": "2"}, ["f32 1,6,2,2"], "not divisible by 4"),
    "bias": (
        "ScaledDotProductAttention",
        "opset13",
        {},
        ["f32 2,5,8", "f32 2,6,8", "f32 2,6,9", "f32 5,4"],
        "4 and 6 do not broadcast",
    ),
    "repeats": ("Tile", "opset1", {}, ["f32 2", [-1]], "a repeat is -1"),
    "body": ("If", "opset8", {}, ["boolean "], "then_body is missing"),
    "iterated": ("TensorIterator", "opset1", {}, ["f32 2"], "body is missing"),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_layer(tmp_path: Path, name: str) -> None:
    type_, version, data, inputs, message = INVALID[name]
    analysis = infer_ir(one_layer(tmp_path, type_, version, data, inputs))
    assert [found.code for found in analysis.diagnostics] == ["SG302"]
    assert message in analysis.diagnostics[0].message
    assert analysis.diagnostics[0].location == "main/tested"


VALID: dict[str, tuple[str, str, dict[str, str], list[Any], str]] = {
    "pdpd": ("Add", "opset1", {"auto_broadcast": "pdpd", "axis": "1"}, ["f32 2,3,4", "f32 3"], "float32[2, 3, 4]"),
    "interval": ("Add", "opset1", {}, ["f32 2..5,1", "f32 3"], "float32[i0_0, 3]"),
    "gather_7_of_negative": ("Gather", "opset7", {}, ["f32 ?,3", [-1], 0], "float32[1, 3]"),
    "no_strides": ("StridedSlice", "opset1", {"begin_mask": "0"}, ["f32 5,7", [1], [4]], "float32[3, 7]"),
    "ellipsis_of_all": (
        "StridedSlice", "opset1", {"ellipsis_mask": "1,0", "shrink_axis_mask": "0, 1"}, ["f32 5,7", [0, 2], [0, 3]],
        "float32[5]",
    ),
    "first_softmax_names": ("SoftMax", "opset1", {"axis": "1"}, ["f32 2,?"], "float32[2, unk0]"),
    "space": ("SpaceToDepth", "opset1", {"block_size": "2"}, ["f32 1,2,4..8,4"], "float32[1, 8, i0_2//2, 2]"),
    "unknown_rank": ("Add", "opset1", {}, ["f32 ...", "f32 2"], "float32[...]"),
    "range": ("Range", "opset4", {"output_type": "i32"}, [2, 9, 3], "int32[3]"),
    "convert": ("Convert", "opset1", {"destination_type": "boolean"}, ["f32 2"], "bool[2]"),
    "pool_of_unknown_rank": ("MaxPool", "opset1", {"kernel": "2,2"}, ["f32 ..."], "float32[?, ?, ?, ?]"),
    "slice_of_first_axes": ("Slice", "opset8", {}, ["f32 5,7", [1], [4], [1]], "float32[3, 7]"),
    "slice_of_axes": ("Slice", "opset8", {}, ["f32 5,7", [1], [4], [1], [1]], "float32[5, 3]"),
    "slice_of_unknown_axes": ("Slice", "opset8", {}, ["f32 5,7", [1], [4], [1], "i64 1"], "float32[?, ?]"),
    "attention": (
        "ScaledDotProductAttention", "opset13", {}, ["f32 2,5,8", "f32 ?,6,8", "f32 2,6,9"], "float32[2, 5, 9]"
    ),
    "attention_of_matrices": (
        "ScaledDotProductAttention", "opset13", {}, ["f32 5,8", "f32 6,8", "f32 6,9"], "float32[5, 9]"
    ),
    "attention_with_a_mask": (
        "ScaledDotProductAttention", "opset13", {}, ["f32 2,5,8", "f32 2,6,8", "f32 2,6,9", "boolean ..."],
        "float32[2, 5, 9]",
    ),
    "attention_with_a_bias": (
        "ScaledDotProductAttention", "opset13", {}, ["f32 2,5,8", "f32 2,6,8", "f32 2,6,9", "f32 1,6"],
        "float32[2, 5, 9]",
    ),
    "causal_attention_ignores_its_mask": (
        "ScaledDotProductAttention", "opset13", {"causal": "true"},
        ["f32 2,5,8", "f32 2,6,8", "f32 2,6,9", "f32 3,4"], "float32[2, 5, 9]",
    ),
    "attention_to_an_unknown_key": (
        "ScaledDotProductAttention", "opset13", {}, ["f32 2,5,8", "f32 ...", "f32 2,6,9"], "float32[...]"
    ),
    "attention_to_an_unknown_value": (
        "ScaledDotProductAttention", "opset13", {}, ["f32 2,5,8", "f32 2,6,8", "f32 ..."], "float32[...]"
    ),
    "pdpd_target": ("Broadcast", "opset3", {"mode": "pdpd"}, ["f32 3", [2, 3, 4]], "float32[2, 3, 4]"),
    "depth_in_one_axis": ("DepthToSpace", "opset1", {"block_size": "2"}, ["f32 1,4,5"], "float32[1, 2, 10]"),
}  # fmt: skip


@pytest.mark.parametrize("name", VALID)
def test_valid_layer(tmp_path: Path, name: str) -> None:
    type_, version, data, inputs, expected = VALID[name]
    analysis = infer_ir(one_layer(tmp_path, type_, version, data, inputs))
    assert not analysis.diagnostics
    assert str(analysis.types["y"]) == expected


# Layers that compute a small tensor, and the dimensions that it is read as.
FOLLOWED: dict[str, tuple[str, str, dict[str, str], list[Any], str]] = {
    "identity": ("Identity", "opset16", {}, [[2, 3]], "[2, 3]"),
    "assign": ("Assign", "opset3", {"variable_id": "v"}, [[2, 3]], "[2, 3]"),
    "clamp": ("Clamp", "opset1", {"min": "1", "max": "5"}, [[0, 3, 9]], "[1, 3, 5]"),
    "clamp_to_what_is_not_whole": ("Clamp", "opset1", {"min": "0.5", "max": "5"}, [[0, 3, 9]], "[?, ?, ?]"),
    "clamp_to_what_is_inexact": ("Clamp", "opset1", {"min": "1", "max": "9007199254740993"}, [[0, 3]], "[?, ?]"),
    "scatter": ("ScatterUpdate", "opset3", {}, [[1, 2, 3], [0, 2], [7, 8], 0], "[7, 2, 8]"),
    "scatter_twice": ("ScatterUpdate", "opset3", {}, [[1, 2, 3], [0, 0], [7, 8], 0], "[?, ?, ?]"),
    "scatter_too_few": ("ScatterUpdate", "opset3", {}, [[1, 2, 3], [0, 1], [7], 0], "[?, ?, ?]"),
    "scatter_unknown": ("ScatterUpdate", "opset3", {}, [[1, 2, 3], "i64 1", [7], 0], "[?, ?, ?]"),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_elements_of_small_tensors(tmp_path: Path, name: str) -> None:
    type_, version, data, inputs, expected = FOLLOWED[name]
    analysis = infer_ir(one_layer(tmp_path, type_, version, data, inputs, as_shape=True))
    assert not analysis.diagnostics
    assert str(analysis.types["shaped"]) == f"int64{expected}"


@pytest.mark.parametrize("name", ["Add", "Split", "VariadicSplit"])
def test_extension_of_the_same_name(tmp_path: Path, name: str) -> None:
    """What an extension called Add does, nobody knows but its author: the declared dims are believed, and one called
    Split is no split, neither for inference nor for conversion.
    """
    model = one_layer(tmp_path, name, "extension", {"num_splits": "2"}, ["f32 2,3", "f32 2,4"], declared="7,-1")
    analysis = infer_ir(model)
    assert [found.severity for found in analysis.diagnostics] == ["warning"]
    assert analysis.splits == ()
    assert convert_ir(model, "variadic-split").changes == ()
    assert str(analysis.types["y"]) == "?[7, ?]"


def test_declared_dims_that_cannot_be(tmp_path: Path) -> None:
    analysis = infer_ir(one_layer(tmp_path, "Add", "opset1", {}, ["f32 2,3", "f32 2,3"], declared="2,4"))
    assert [found.code for found in analysis.diagnostics] == ["SG301"]


def test_declared_dims_fill_what_is_unknown(tmp_path: Path) -> None:
    model = one_layer(tmp_path, "NonZero", "opset3", {"output_type": "i64"}, ["f32 ?,3"], declared="2,5")
    assert str(infer_ir(model).types["y"]) == "int64[2, 5]"


GIVEN: list[tuple[dict[str, Any], str | None]] = [
    ({"bind": {"i0_0": 2}}, None),
    ({"bind": {"i0_0": 5}}, None),
    ({"bind": {"i0_0": 1}}, "i0_0 is given as 1, but declared as 2..5"),
    ({"bind": {"i0_0": 6}}, "i0_0 is given as 6, but declared as 2..5"),
    ({"bind": {"i0_1": 63}}, "i0_1 is given as 63, but declared as 64.."),
    ({"input_shapes": {"i0": [5, 64, 1]}}, None),
    ({"input_shapes": {"i0": [None, 1000, None]}}, None),
    ({"input_shapes": {"i0": [6, None, None]}}, "i0_0 is given as 6, but declared as 2..5"),
]


@pytest.mark.parametrize(("given", "said"), GIVEN, ids=str)
def test_a_size_given_for_an_interval_lies_in_it(tmp_path: Path, given: dict[str, Any], said: str | None) -> None:
    analysis = infer_ir(one_layer(tmp_path, "Relu", "opset1", {}, ["f32 2..5,64..,?"]), Sizes(**given))
    assert [(found.code, found.severity) for found in analysis.diagnostics] == ([("SG304", "error")] if said else [])
    assert said is None or said in analysis.diagnostics[0].message
