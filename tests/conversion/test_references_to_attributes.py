"""Attributes that refer to one of the enclosing function are neither absent nor 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from conversion.operators.execute import build, refusal
from onnx import helper


def called(model: onnx.ModelProto, name: str, opset: int) -> onnx.ModelProto:
    """The model with its node in a function, to which the call gives the attribute `name`."""
    (node,) = model.graph.node
    (given,) = [attribute for attribute in node.attribute if attribute.name == name]
    call = helper.make_node("F", node.input, node.output, domain="local")
    call.attribute.append(given)
    inside = onnx.NodeProto()
    inside.CopyFrom(node)
    for attribute in inside.attribute:
        if attribute.name == name:
            attribute.CopyFrom(onnx.AttributeProto(name=name, type=given.type, ref_attr_name=name))
    imports = [helper.make_opsetid("", opset)]
    function = helper.make_function("local", "F", node.input, node.output, [inside], imports, attributes=[name])
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.graph.node[0].CopyFrom(call)
    made.functions.append(function)
    made.opset_import.append(helper.make_opsetid("local", 1))
    made.ir_version = max(made.ir_version, 8)
    return made


def pool(opset: int, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node("AveragePool", ["x"], ["y"], count_include_pad=1, **attributes)
    return build(node, opset, {"x": ("float32", (1, 2, 5, 5))}, {"y": ("float32", (1, 2, None, None))})


def recurrent() -> onnx.ModelProto:
    node = helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=2, linear_before_reset=1)
    held = {"w": np.ones((1, 6, 2), np.float32), "r": np.ones((1, 6, 2), np.float32)}
    return build(node, 7, {"x": ("float32", (3, 1, 2))}, {"y": ("float32", None)}, held)


def quantized() -> onnx.ModelProto:
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], axis=0, block_size=3)
    inputs = {"x": ("float32", (6,)), "s": ("float32", (2,)), "z": ("int8", (2,))}
    return build(node, 21, inputs, {"y": ("int8", (6,))})


def normalized() -> onnx.ModelProto:
    names = ["x", "scale", "bias", "mean", "var"]
    node = helper.make_node("BatchNormalization", names, ["y", "m", "v"], training_mode=1)
    inputs = {name: ("float32", (2, 3) if name == "x" else (3,)) for name in names}
    return build(node, 15, inputs, dict.fromkeys(("y", "m", "v"), ("float32", None)))


def remainder() -> onnx.ModelProto:
    node = helper.make_node("Mod", ["a", "b"], ["y"], fmod=1)
    return build(node, 28, dict.fromkeys("ab", ("float32", (3,))), {"y": ("float32", (3,))})


def cast() -> onnx.ModelProto:
    node = helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT8E4M3FNUZ, saturate=1)
    return build(node, 24, {"x": ("float32", (3,))}, {"y": ("float8e4m3fnuz", (3,))})


def dropped() -> onnx.ModelProto:
    node = helper.make_node("Dropout", ["x"], ["y"], is_test=1)
    return build(node, 6, {"x": ("float32", (3,))}, {"y": ("float32", (3,))})


def reshaped() -> onnx.ModelProto:
    node = helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=1)
    inputs = {"x": ("float32", (2, 0, 3)), "s": ("int64", (3,))}
    return build(node, 14, inputs, {"y": ("float32", (None, None, None))})


def extreme(op: str) -> onnx.ModelProto:
    node = helper.make_node(op, ["x"], ["y"], select_last_index=1)
    return build(node, 13, {"x": ("float32", (3, 2))}, {"y": ("int64", (1, 2))})


REFERRING = [
    ("is_test", dropped(), 6, 13),
    ("count_include_pad", pool(22, kernel_shape=[2, 2], dilations=[2, 2], pads=[1, 1, 1, 1]), 22, 18),
    ("count_include_pad", pool(10, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1), 10, 9),
    ("linear_before_reset", recurrent(), 7, 2),
    ("block_size", quantized(), 21, 20),
    ("training_mode", normalized(), 15, 13),
    ("fmod", remainder(), 28, 18),
    ("saturate", cast(), 24, 23),
    ("allowzero", reshaped(), 14, 13),
    ("select_last_index", extreme("ArgMax"), 13, 11),
    ("select_last_index", extreme("ArgMin"), 13, 11),
]


@pytest.mark.usefixtures("functions_stay")
@pytest.mark.parametrize(("name", "model", "opset", "target"), REFERRING)
def test_each_call_may_give_another_value(name: str, model: onnx.ModelProto, opset: int, target: int) -> None:
    assert f"{name} is an attribute of the enclosing function" in refusal(called(model, name, opset), target)


def test_a_sparse_value_of_a_call_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["" : 11, "local" : 1]> g (float[3] x) => (float[3] y) { y = local.F () }
        <domain: "local", opset_import: ["" : 11]> F <v> () => (y) {
            y = Constant <sparse_value: sparse_tensor = @v> ()
        }"""
    assert "its value is an attribute of the enclosing function" in refusal(onnx.parser.parse_model(text), 10)
