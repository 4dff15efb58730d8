"""Regions whose inputs do not tell their types, and regions of sizes that nobody asked for."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from verifying import verify_models

import splitgraph

from ...small_models import constant, graph_of, model_of, node, value

pytestmark = pytest.mark.usefixtures("in_process")


def optional(op_type: str, opset: int) -> onnx.ModelProto:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [4]))
    dtype = TensorProto.BOOL if op_type == "OptionalHasElement" else TensorProto.FLOAT
    result = value("y", None, dtype)
    return model_of([node(op_type, ["x"], ["y"])], [helper.make_value_info("x", kind)], [result], opset=opset)


@pytest.mark.parametrize("op_type", ["OptionalHasElement", "OptionalGetElement"])
def test_an_optional_is_none_of_its_element(op_type: str) -> None:
    """Below opset 18, these operators take no tensor."""
    found = splitgraph.downgrade(optional(op_type, 18), 17, verify=True).verification
    assert found is not None
    assert found.verdict == "equal"


def test_another_operator_of_an_optional_is_different() -> None:
    first, second = optional("OptionalGetElement", 18), optional("OptionalGetElement", 17)
    second.graph.node[0].output[0] = "a"
    second.graph.node.append(node("Neg", ["a"], ["y"]))
    assert verify_models(first, second).verdict == "different"


def scan(length: str | int, *, has_lengths: bool = False) -> onnx.ModelProto:
    body = graph_of(
        [node("Add", ["s", "x"], ["t"]), node("Identity", ["t"], ["o"])],
        [value("s", [2]), value("x", [2])],
        [value("t", [2]), value("o", [2])],
    )
    inputs = [value("i", ["B", 2]), value("v", ["B", length, 2])]
    inputs += [value("l", ["B"], TensorProto.INT64)] if has_lengths else []
    nodes = [node("Scan", ["l" if has_lengths else "", "i", "v"], ["y", "z"], body=body, num_scan_inputs=1)]
    outputs = [value("y", ["B", 2]), value("z", ["B", length, 2])]
    return model_of(nodes, inputs, outputs, opset=8, ir_version=3)


@pytest.mark.parametrize("has_lengths", [False, True])
@pytest.mark.parametrize("length", ["T", 4])
def test_a_size_of_0_that_the_result_does_not_run_on(length: str | int, has_lengths: bool) -> None:
    found = splitgraph.upgrade(scan(length, has_lengths=has_lengths), 9, verify=True).verification
    assert found is not None
    assert found.verdict == "equal"


def test_a_size_of_0_that_was_asked_for() -> None:
    first = model_of([node("Abs", ["x"], ["y"])], [value("x", ["N"])], ["y"])
    nodes = [node("Abs", ["x"], ["a"]), node("Gather", ["x", "zero"], ["g"]), node("Sub", ["g", "g"], ["d"])]
    nodes.append(node("Add", ["a", "d"], ["y"]))
    second = model_of(nodes, [value("x", ["N"])], ["y"], [constant("zero", 0)])
    assert verify_models(first, second, inputs={"x": np.ones(3, np.float32)}).verdict == "equal"
    found = verify_models(first, second, inputs={"x": np.zeros(0, np.float32)})
    assert found.verdict == "different"
