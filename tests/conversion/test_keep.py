"""The generic guard: what is refused and why, what is kept untouched, what is edited."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from conversion.keeping import check
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from splitgraph.conversion.keep import route_of
from splitgraph.splits import SPLIT_OPERATORS

FLOAT3 = ("float32",) * 3


INT, STRING = onnx.AttributeProto.INT, onnx.AttributeProto.STRING

REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], list[str], str]] = [
    # Missing at the target, or at the source
    ("no body", ("GridSample", 16, 15, 2), {}, ["SG404"], "from opset 16 on"),
    ("body", ("LayerNormalization", 17, 13, 3), {}, ["SG404"], "from opset 17 on"),
    ("invalid source", ("GridSample", 13, 18, 2), {}, ["SG404"], "not an operator of ai.onnx at opset 13"),
    ("unknown", ("Mish", 9, 18), {}, ["SG404"], "not an operator"),
    ("deprecated Scatter", ("Scatter", 9, 11, 3), {}, ["SG405"], "ScatterElements replaces it"),
    ("deprecated Upsample", ("Upsample", 9, 10, 2), {}, ["SG405"], "Resize replaces it"),
    # Element types
    ("type", ("Erf", 9, 13), {"dtypes": ["int32"], "out": ["int32"]}, ["SG403"], "int32 from opset 13 on"),
    ("type down", ("Relu", 14, 13), {"dtypes": ["int8"], "out": ["int8"]}, ["SG403"], "int8 below opset 14"),
    ("integers 28", ("ReduceLogSum", 18, 28), {"dtypes": ["int64"], "out": ["int64"]}, ["SG403"], "from opset 28 on"),
    ("unknown type", ("Relu", 14, 13), {"dtypes": [None], "out": [None]}, ["SG403"], "is unknown"),
    (
        "in function",
        ("Relu", 14, 13),
        {"dtypes": [None], "out": [None], "in_function": True},
        ["SG403"],
        "declares no types",
    ),
    ("output type", ("Cast", 13, 8), {"to": TensorProto.BFLOAT16, "out": [None]}, ["SG403"], "bfloat16 below opset 13"),
    ("Constant below 9", ("Constant", 13, 8, 0), {"out": [None], "value_int": 3}, ["SG403"], "int64 below opset 9"),
    (
        "sequence",
        ("Identity", 14, 13),
        {"kinds": ["sequence"], "out_kinds": [None]},
        ["SG403"],
        "a sequence of float32",
    ),
    (
        "optional",
        ("Identity", 16, 15),
        {"kinds": ["optional"], "out_kinds": [None]},
        ["SG403"],
        "does not take an optional of float32 below opset 16",
    ),
    ("kind unknown", ("Identity", 14, 13), {"kinds": [None], "out_kinds": [None]}, ["SG403"], "float32 in every form"),
    (
        "one variable",
        ("Pow", 12, 11, 2),
        {"dtypes": ["float32", "int32"]},
        ["SG403"],
        "does not take int32 below opset 12",
    ),
    (
        "T and T1",
        ("BatchNormalization", 15, 14, 5),
        {"dtypes": ["float16"] + ["float32"] * 4, "out": ["float16"]},
        ["SG403"],
        "one element type",
    ),
    (
        "scale 19",
        ("QuantizeLinear", 13, 19, 2),
        {"dtypes": ["int32", "float32"], "out": ["uint8"]},
        ["SG403"],
        "int32 and float32",
    ),
    # Attributes, inputs, outputs that are not there
    (
        "new attribute",
        ("Shape", 15, 13),
        {"out": ["int64"], "start": 1},
        ["SG406"],
        "no attribute start below opset 15; here it is 1",
    ),
    ("two attributes", ("Shape", 15, 13), {"out": ["int64"], "start": 1, "end": 2}, ["SG406", "SG406"], "end"),
    (
        "reference",
        ("Shape", 15, 13),
        {"out": ["int64"], "references": [("start", INT)]},
        ["SG406"],
        "attribute of the function",
    ),
    ("reference to default", ("Selu", 6, 1), {"references": [("alpha", 1)]}, ["SG406"], "another default for alpha"),
    ("new input", ("Pad", 18, 13, 4), {"dtypes": ["float32", "int64", "float32", "int64"]}, ["SG406"], "no input axes"),
    ("empty input", ("Clip", 11, 6, ["x", "", ""]), {}, ["SG406", "SG406"], "no input min"),
    (
        "new output",
        ("MaxPool", 8, 7, 1, 2),
        {"out": ["float32", "int64"], "kernel_shape": [2]},
        ["SG406"],
        "no output Indices",
    ),
    ("required input", ("Gemm", 11, 9, 2), {}, ["SG406"], "needs the input C below opset 11"),
    ("required attribute", ("LpPool", 1, 2), {}, ["SG406"], "needs the attribute kernel_shape"),
    ("not integral", ("LpPool", 1, 2), {"kernel_shape": [2], "p": 2.5}, ["SG406"], "takes p as INT"),
    ("axes that are not dilations", ("Resize", 18, 13, 3), {"axes": [1]}, ["SG406"], "no attribute axes"),
    ("beyond float32", ("GlobalLpPool", 2, 1), {"p": 2**24 + 1}, ["SG406"], "takes p as FLOAT"),
    (
        "no meaning yet",
        ("Cast", 13, 19),
        {"to": 1, "saturate": 0},
        ["SG406"],
        "reads the attribute saturate from opset 19 on",
    ),
    (
        "sparse",
        ("Constant", 11, 9, 0),
        {
            "sparse_value": helper.make_sparse_tensor(
                helper.make_tensor("v", 1, [1], [1.0]), helper.make_tensor("i", 7, [1], [0]), [2]
            )
        },
        ["SG406", "SG406"],
        "sparse_value",
    ),
    # Changed meanings
    ("softmax default", ("Softmax", 11, 13), {}, ["SG405"], "only the axis"),
    ("softmax middle", ("Softmax", 11, 13), {"axis": 1, "shapes": [(2, 3, 4)]}, ["SG405"], "only the axis"),
    ("softmax beyond", ("Softmax", 11, 13), {"axis": 5, "shapes": [(2, 3, 4)]}, ["SG405"], "only the axis"),
    ("ai.onnx spelt out", ("Squeeze", 11, 13), {"axes": [0], "domain": "ai.onnx"}, ["SG405"], "became an input"),
    ("softmax reference", ("Softmax", 11, 13), {"references": [("axis", INT)]}, ["SG405"], "only the axis"),
    ("squeeze axes", ("Squeeze", 11, 13), {"axes": [0]}, ["SG405"], "became an input"),
    ("reduce axes down", ("ReduceMean", 18, 17, 2), {"dtypes": ["float32", "int64"]}, ["SG405"], "became an input"),
    ("reduce nothing", ("ReduceMean", 18, 17), {"noop_with_empty_axes": 1}, ["SG405"], "became an input"),
    ("broadcast axis", ("Add", 6, 7, 2), {"broadcast": 1, "axis": 0}, ["SG405"], "as in NumPy"),
    ("broadcast down", ("Add", 7, 6, 2), {}, ["SG405"], "as in NumPy"),
    ("broadcast unknown dims", ("Add", 7, 6, 2), {"shapes": [(None, 3), (None, 3)]}, ["SG405"], "as in NumPy"),
    ("broadcast both ways", ("Add", 7, 6, 2), {"shapes": [(3, 1), (1, 3)]}, ["SG405"], "as in NumPy"),
    ("sum of unequal", ("Sum", 8, 6, 2), {}, ["SG405"], "same shape"),
    ("gemm matrix", ("Gemm", 7, 6, 3), {"shapes": [(2, 2), (2, 2), (1, 2)]}, ["SG405"], "broadcasts only"),
    (
        "gemm transposed by the function",
        ("Gemm", 7, 6, 3),
        {"shapes": [(2, 3), (2, 4), (3, 4)], "references": [("transA", INT)]},
        ["SG405"],
        "broadcasts only",
    ),
    ("slope", ("PRelu", 6, 7, 2), {"shapes": [(1, 3, 4, 4), (3,)]}, ["SG405"], "for each channel"),
    ("train by default", ("BatchNormalization", 6, 7, 5), {}, ["SG405"], "is_test"),
    ("train 9", ("BatchNormalization", 9, 14, 5, 5), {}, ["SG405"], "five outputs"),
    (
        "statistics",
        ("BatchNormalization", 14, 15, 5, 3),
        {"dtypes": ["float16"] * 5, "out": ["float16"] * 3, "training_mode": 1},
        ["SG405"],
        "float32",
    ),
    ("spatial", ("BatchNormalization", 7, 9, 5), {"spatial": 0}, ["SG406"], "spatial"),
    ("dropout train", ("Dropout", 6, 7), {}, ["SG405"], "is_test"),
    ("dropout ratio", ("Dropout", 10, 12), {"ratio": 0.1}, ["SG405"], "ratio"),
    ("dropout mask", ("Dropout", 12, 10, 1, 2), {"out": ["float32", "bool"]}, ["SG405"], "mask"),
    ("clip bound", ("Clip", 6, 11), {"min": 0.0}, ["SG405"], "became inputs"),
    ("clip double", ("Clip", 6, 11), {"dtypes": ["float64"], "out": ["float64"]}, ["SG405"], "became inputs"),
    ("slice", ("Slice", 9, 10), {"starts": [0], "ends": [1]}, ["SG405"], "became inputs"),
    ("paddings", ("Pad", 1, 2), {"paddings": [0, 1]}, ["SG405"], "contradicts its own example"),
    ("minus axis", ("Concat", 11, 9, 2), {"axis": -1}, ["SG405"], "must not be negative"),
    ("per axis", ("QuantizeLinear", 13, 10, 2), {"out": ["uint8"], "shapes": [(2, 3), (3,)]}, ["SG405"], "one scale"),
    ("wrap", ("Pad", 19, 18, 2), {"dtypes": ["float32", "int64"], "mode": "wrap"}, ["SG405"], "mode=wrap"),
    (
        "reduction",
        ("ScatterND", 18, 17, 3),
        {"dtypes": ["float32", "int64", "float32"], "reduction": "max"},
        ["SG405"],
        "max and min",
    ),
    (
        "ceil",
        ("MaxPool", 12, 22),
        {"kernel_shape": [2], "strides": [2], "pads": [0, 1], "ceil_mode": 1},
        ["SG405"],
        "ceil_mode",
    ),
    ("fnuz", ("Cast", 23, 24), {"to": TensorProto.FLOAT8E4M3FNUZ, "out": ["float8e4m3fnuz"]}, ["SG405"], "FNUZ"),
    ("float modulus", ("Mod", 28, 13, 2), {}, ["SG405"], "fmod=0"),
    ("one hot", ("OneHot", 9, 11, 3), {"dtypes": ["int64", "int64", "float32"]}, ["SG405"], "negative indices"),
    ("output shape", ("ConvTranspose", 1, 11, 2), {"output_shape": [4]}, ["SG405"], "other way round"),
    (
        "tf nearest",
        ("Resize", 11, 13, 3),
        {"coordinate_transformation_mode": "tf_half_pixel_for_nn"},
        ["SG405"],
        "removed",
    ),
    (
        "roi max",
        ("RoiAlign", 10, 16, 3),
        {"dtypes": ["float32", "float32", "int64"], "mode": "max"},
        ["SG405"],
        "mode=max",
    ),
    (
        "grid mode of the function",
        ("GridSample", 20, 16, 2),
        {"shapes": [(1, 1, 2, 2)], "references": [("mode", STRING)]},
        ["SG405"],
        "modes were renamed",
    ),
    ("short mask", ("Attention", 23, 24, 4), {"shapes": [(1, 1, 2, 4), (1, 1, 3, 4), None, (2, 1)]}, ["SG405"], "mask"),
    (
        "mask shorter than the keys, of as many heads as these are long",
        ("Attention", 24, 23, 4),
        {"shapes": [(1, 3, 2, 4), (1, 3, 3, 4), None, (1, 3, 2, 2)]},
        ["SG405"],
        "mask",
    ),
    (
        "mask and keys of unknown lengths",
        ("Attention", 23, 24, 4),
        {"shapes": [(1, 1, 2, 4), (1, 1, None, 4), None, (1, 1, 2, None)]},
        ["SG405"],
        "mask",
    ),
    ("channels", ("GroupNormalization", 18, 21, 3), {"num_groups": 2}, ["SG405"], "each group"),
]


# What an opset beyond the installed onnx changes, its schemas cannot tell.
REFUSED_HERE = [case for case in REFUSED if max(case[1][1:3]) <= onnx.defs.onnx_opset_version()]


@pytest.mark.parametrize(
    ("arguments", "options", "codes", "words"), [case[1:] for case in REFUSED_HERE], ids=[c[0] for c in REFUSED_HERE]
)
def test_refused(arguments: tuple[Any, ...], options: dict[str, Any], codes: list[str], words: str) -> None:
    edits, blockers = check(*arguments, **options)
    assert [b.code for b in blockers] == codes
    assert any(words in b.message for b in blockers), [b.message for b in blockers]
    assert all(b.message.startswith(arguments[0]) for b in blockers)
    assert edits == {}


KEPT_UNTOUCHED: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    # onnxruntime's own, written into ai.onnx at whatever opset the model is
    ("of onnxruntime", ("SimplifiedLayerNormalization", 14, 28, 2), {"axis": -1, "stash_type": 1}),
    ("of onnxruntime, down", ("SimplifiedLayerNormalization", 21, 1, 2), {}),
    # of onnxruntime before onnx took it over at opset 17; what goes down from there is in REFUSED
    ("taken over", ("LayerNormalization", 14, 28, 3), {"axis": -1}),
    ("not yet taken over", ("LayerNormalization", 14, 16, 3), {"axis": -1}),
    ("not yet taken over, down", ("LayerNormalization", 16, 11, 3), {}),
    ("same version", ("Relu", 14, 28), {"dtypes": [None], "out": [None]}),
    ("same version down", ("Relu", 28, 14), {"dtypes": ["int8"], "out": ["int8"]}),
    ("wider types", ("Relu", 6, 14), {"dtypes": [None], "out": [None]}),
    ("allowed type", ("Relu", 14, 6), {}),
    ("type by variable", ("Relu", 14, 6), {"out": [None]}),
    ("type by output", ("Relu", 14, 6), {"dtypes": [None]}),
    ("other domain", ("Relu", 14, 6), {"domain": "com.example", "dtypes": [None]}),
    ("ai.onnx spelt out", ("Relu", 14, 6), {"domain": "ai.onnx"}),
    ("constant", ("Constant", 13, 1, 0), {"out": [None], "value": helper.make_tensor("v", 1, [1], [1.0])}),
    ("last axis", ("Softmax", 11, 13), {"axis": -1}),
    ("known last axis", ("Softmax", 11, 13), {"axis": 2, "shapes": [(2, 3, 4)]}),
    ("ones after axis", ("Softmax", 11, 13), {"axis": 1, "shapes": [(2, 3, 1, 1)]}),
    ("squeeze all", ("Squeeze", 11, 13), {}),
    ("squeeze all down", ("Squeeze", 13, 11), {}),
    ("reduce all", ("ReduceSum", 11, 13), {"keepdims": 0}),
    ("reduce all down", ("ReduceMax", 18, 12), {}),
    ("equal shapes", ("Add", 6, 7, 2), {}),
    ("equal shapes down", ("Add", 7, 6, 2), {"shapes": [(2, 3), (2, 3)]}),
    ("equal shapes known", ("Sum", 8, 6, 2), {"shapes": [(2, 3), (2, 3)]}),
    ("one input", ("Max", 8, 6), {}),
    ("shared slope", ("PRelu", 6, 7, 2), {"shapes": [(1, 3, 4, 4), (1,)]}),
    ("inference", ("BatchNormalization", 9, 15, 5), {}),
    ("dropout without mask", ("Dropout", 7, 22), {}),
    ("clip without bounds", ("Clip", 6, 13), {}),
    ("one stays one", ("Shape", 19, 15), {"out": ["int64"], "start": 1}),
    ("sequence", ("Identity", 16, 14), {"kinds": ["sequence"], "out_kinds": [None]}),
    ("a tensor of any type", ("Identity", 14, 13), {"dtypes": [None], "out": [None]}),
    ("sequence of any type", ("Identity", 16, 14), {"dtypes": [None], "out": [None], "kinds": ["sequence"]}),
    ("remainder with the sign of the dividend", ("Mod", 28, 13, 2), {"fmod": 1}),
    ("positive axis", ("Concat", 11, 4, 2), {"axis": 1}),
    ("window inside", ("MaxPool", 12, 22), {"kernel_shape": [3], "strides": [2], "pads": [1, 1], "ceil_mode": 1}),
    ("floor", ("AveragePool", 22, 19), {"kernel_shape": [2], "strides": [2], "pads": [1, 1]}),
    ("unsigned one hot", ("OneHot", 9, 11, 3), {"dtypes": ["uint8", "int64", "float32"]}),
    ("unsigned one hot on the last axis", ("OneHot", 11, 9, 3), {"dtypes": ["uint8", "int64", "float32"], "axis": -1}),
    (
        "fnuz unsaturated",
        ("Cast", 23, 24),
        {"to": TensorProto.FLOAT8E4M3FNUZ, "saturate": 0, "out": ["float8e4m3fnuz"]},
    ),
    ("float8", ("Cast", 23, 24), {"to": TensorProto.FLOAT8E5M2, "out": ["float8e5m2"]}),
    ("gru default", ("GRU", 1, 3, 3, 2), {"hidden_size": 1}),
    ("reference kept", ("LeakyRelu", 6, 16), {"references": [("alpha", 1)]}),
    ("grid sample nearest", ("GridSample", 16, 20, 2), {"mode": "nearest"}),
    ("explicit padding", ("ConvTranspose", 1, 11, 2), {"pads": [1, 1]}),
    ("an input too many", ("Relu", 14, 6, 2), {}),
    ("mask of several keys", ("Attention", 23, 24, 4), {"shapes": [None, None, None, (2, 3)]}),
    ("long mask", ("Attention", 23, 24, 4), {"shapes": [(1, 1, 2, 4), (1, 1, 3, 4), None, (2, 3)]}),
]


@pytest.mark.parametrize(
    ("arguments", "options"), [case[1:] for case in KEPT_UNTOUCHED], ids=[c[0] for c in KEPT_UNTOUCHED]
)
def test_kept_untouched(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    assert check(*arguments, **options) == ({}, [])


EDITED: list[tuple[str, tuple[Any, ...], dict[str, Any], dict[str, Any]]] = [
    ("legacy", ("Abs", 1, 13), {"consumed_inputs": [0]}, {"consumed_inputs": None}),
    ("default dropped", ("Shape", 15, 13), {"out": ["int64"], "start": 0}, {"start": None}),
    ("ones dropped", ("MaxPool", 10, 8), {"kernel_shape": [2], "dilations": [1]}, {"dilations": None}),
    ("default written", ("Softmax", 13, 11), {}, {"axis": -1}),
    ("default written then counted", ("Softmax", 13, 9), {"shapes": [(2, 3)]}, {"axis": 1}),
    ("selu", ("Selu", 1, 6), {}, {"alpha": pytest.approx(1.6732, abs=1e-6), "gamma": pytest.approx(1.0507, abs=1e-6)}),
    ("selu half", ("Selu", 6, 1), {"alpha": 1.0}, {"gamma": pytest.approx(1.050701, abs=1e-6)}),
    ("broadcast off", ("Add", 6, 7, 2), {"broadcast": 0, "axis": 1}, {"broadcast": None, "axis": None}),
    ("broadcast suffix", ("Mul", 6, 14, 2), {"broadcast": 1}, {"broadcast": None}),
    (
        "broadcast at axis",
        ("Sub", 6, 7, 2),
        {"broadcast": 1, "axis": 1, "shapes": [(2, 3), (3,)]},
        {"broadcast": None, "axis": None},
    ),
    ("broadcast written", ("Div", 14, 6, 2), {"shapes": [(2, None), (1, 1)]}, {"broadcast": 1}),
    ("scalar", ("Pow", 7, 6, 2), {"shapes": [None, ()]}, {"broadcast": 1}),
    ("row", ("Gemm", 7, 6, 3), {"shapes": [None, None, (3,)]}, {"broadcast": 1}),
    ("gemm up", ("Gemm", 6, 7, 3), {"broadcast": 1}, {"broadcast": None}),
    ("test mode", ("BatchNormalization", 6, 9, 5), {"is_test": 1, "spatial": 1}, {"is_test": None, "spatial": None}),
    ("test mode down", ("BatchNormalization", 9, 6, 5), {}, {"is_test": 1}),
    ("dropout", ("Dropout", 6, 13), {"is_test": 1, "ratio": 0.5}, {"is_test": None, "ratio": None}),
    ("dropout seed", ("Dropout", 13, 10), {"seed": 3}, {"seed": None}),
    ("lstm", ("LSTM", 1, 7, 3), {"hidden_size": 1, "output_sequence": 1}, {"output_sequence": None}),
    ("rnn unread", ("RNN", 1, 7, 3, ["", "h"]), {"hidden_size": 1, "output_sequence": 0}, {"output_sequence": None}),
    ("lstm unasked", ("LSTM", 1, 7, 3), {"hidden_size": 1, "output_sequence": 0}, {"output_sequence": None}),
    ("rnn down", ("RNN", 7, 1, 3), {"hidden_size": 1}, {"output_sequence": 1}),
    ("gru spelling", ("GRU", 1, 3, 3, 2), {"hidden_size": 1, "direction": "foward"}, {"direction": b"forward"}),
    (
        "gru down",
        ("GRU", 3, 1, 3, 2),
        {"hidden_size": 1, "linear_before_reset": 0},
        {"direction": b"forward", "linear_before_reset": None},
    ),
    ("cast up", ("Cast", 1, 9), {"to": "FLOAT16", "out": ["float16"]}, {"to": TensorProto.FLOAT16}),
    ("cast down", ("Cast", 9, 1), {"to": TensorProto.INT64, "out": ["int64"]}, {"to": b"INT64"}),
    ("concat", ("Concat", 1, 4, 2), {}, {"axis": 1}),
    ("counted", ("Concat", 11, 4, 2), {"axis": -1, "shapes": [(None, 3, 2)]}, {"axis": 2}),
    ("counted list", ("ReduceMean", 11, 1), {"axes": [-1, 0], "shapes": [(2, 3, 4)]}, {"axes": [2, 0]}),
    ("counted output", ("Unsqueeze", 11, 1), {"axes": [-1, 0], "shapes": [(3,)]}, {"axes": [2, 0]}),
    ("int p", ("LpPool", 1, 2), {"kernel_shape": [2], "p": 3.0}, {"p": 3}),
    ("float p", ("GlobalLpPool", 2, 1), {"p": 3}, {"p": 3.0}),
    (
        "scalar scale",
        ("DequantizeLinear", 13, 10, 2),
        {"dtypes": ["uint8", "float32"], "shapes": [(2,), ()], "axis": 0},
        {"axis": None},
    ),
    (
        "roi",
        ("RoiAlign", 10, 16, 3),
        {"dtypes": ["float32", "float32", "int64"]},
        {"coordinate_transformation_mode": b"output_half_pixel"},
    ),
    (
        "roi down",
        ("RoiAlign", 16, 10, 3),
        {"dtypes": ["float32", "float32", "int64"], "coordinate_transformation_mode": "output_half_pixel"},
        {"coordinate_transformation_mode": None},
    ),
    ("grid", ("GridSample", 16, 20, 2), {"mode": "bicubic"}, {"mode": b"cubic"}),
    ("grid down", ("GridSample", 20, 16, 2), {"mode": "linear", "shapes": [(1, 1, 2, 2)]}, {"mode": b"bilinear"}),
    ("dft", ("DFT", 17, 20), {"axis": 1, "shapes": [(1, 4, 1)]}, {"axis": None}),
    ("dft of images", ("DFT", 17, 20), {"axis": 2, "shapes": [(1, 4, 5, 1)]}, {"axis": None}),
    ("dft down", ("DFT", 20, 17), {"shapes": [(1, 4, 5, 1)]}, {"axis": 2}),
]


@pytest.mark.parametrize(("arguments", "options", "expected"), [c[1:] for c in EDITED], ids=[c[0] for c in EDITED])
def test_edited(arguments: tuple[Any, ...], options: dict[str, Any], expected: dict[str, Any]) -> None:
    edits, blockers = check(*arguments, **options)
    assert blockers == []
    assert edits == expected


CONSTANTS = [
    ("value_int", 3, TensorProto.INT64, []),
    ("value_ints", [3, -(2**40)], TensorProto.INT64, [2]),
    ("value_float", 0.1, TensorProto.FLOAT, []),
    ("value_floats", [0.1], TensorProto.FLOAT, [1]),
    ("value_string", "é", TensorProto.STRING, []),
    ("value_strings", ["a", ""], TensorProto.STRING, [2]),
]


@pytest.mark.parametrize(("name", "value", "dtype", "dims"), CONSTANTS, ids=[c[0] for c in CONSTANTS])
def test_constants_become_tensors(name: str, value: Any, dtype: int, dims: list[int]) -> None:
    values, blockers = check("Constant", 13, 11, 0, out=[None], **{name: value})
    assert blockers == []
    assert values.pop(name) is None
    expected = helper.make_tensor("", dtype, dims, value if dims else [value])
    assert values == {"value": expected}


def test_branches_of_if_may_differ_in_shape_from_11_on() -> None:
    def branch(*shape: int | str | None) -> onnx.GraphProto:
        return helper.make_graph([], "branch", [], [helper.make_tensor_value_info("b", 1, shape)])

    equal = check("If", 11, 1, dtypes=["bool"], then_branch=branch(2, 3), else_branch=branch(2, 3))
    other = check("If", 11, 1, dtypes=["bool"], then_branch=branch(2, "N"), else_branch=branch(2, "N"))
    unset = check("If", 11, 1, dtypes=["bool"], then_branch=branch(None), else_branch=branch(None))
    assert equal == ({}, [])
    assert [b.code for b in other[1] + unset[1]] == ["SG405", "SG405"]


def test_every_blocker_is_reported_with_where_to_stop() -> None:
    _, blockers = check("QuantizeLinear", 21, 9, 2, dtypes=["float16"] * 2, out=["uint8"], block_size=2)
    assert [(b.code, b.help) for b in blockers] == [
        ("SG404", "Stop at opset 10."),
        ("SG406", "Stop at opset 21, or change the node."),
        ("SG405", "Stop at opset 13, or declare the scale a scalar."),
        ("SG403", "Stop at opset 19, or cast the input."),
    ]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("tensor", ", or cast the input."), (None, ", or cast the input."), ("sequence", "."), ("optional", ".")],
)
def test_only_what_may_be_a_tensor_can_be_cast(kind: str | None, expected: str) -> None:
    _, blockers = check("Identity", 16, 12, dtypes=["bfloat16"], kinds=[kind], out_kinds=[kind])
    assert [b.help.partition("Stop at opset ")[2][2:] for b in blockers] == [expected]


def test_upward_blocker_stops_before_the_boundary() -> None:
    _, blockers = check("Squeeze", 11, 18, axes=[0])
    assert [b.help for b in blockers] == ["Stop at opset 12."]


@pytest.mark.parametrize("op", sorted(SPLIT_OPERATORS))
def test_split_family_has_no_route(op: str) -> None:
    with pytest.raises(ValueError, match="conversions of its own"):
        route_of(op, 20, 20)


FLOAT_OPERATORS = sorted(
    {schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == ""} - SPLIT_OPERATORS
)


@settings(derandomize=True, deadline=None, max_examples=examples(300))
@given(
    st.sampled_from(FLOAT_OPERATORS),
    st.integers(1, 28),
    st.integers(1, 28),
    st.lists(st.sampled_from([None, "float32", "int64", "bool", "string", "bfloat16"]), max_size=6),
    st.integers(0, 6),
    st.integers(0, 3),
)
def test_any_node_gives_edits_or_blockers_not_both(
    op: str, source: int, target: int, dtypes: list[str | None], inputs: int, outputs: int
) -> None:
    edits, blockers = check(op, source, target, inputs, outputs, dtypes=dtypes, out=dtypes, kinds=[None], out_kinds=[])
    assert not (edits and blockers)
    assert {b.code for b in blockers} <= {"SG403", "SG404", "SG405", "SG406"}
    if source == target:
        assert edits == {} and {b.code for b in blockers} <= {"SG404"}
