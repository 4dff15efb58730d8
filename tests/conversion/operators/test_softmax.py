"""Softmax, LogSoftmax and Hardmax over opset 13: the same numbers, whatever the axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import assert_same, build, converted, operators, random_array, refusal, run
from onnx import helper

OPERATORS = ["Softmax", "LogSoftmax", "Hardmax"]
SHAPE = (2, 3, 4, 5)


Shape = tuple[int | str, ...]


def model(op: str, opset: int, axis: int | None, shape: Shape = SHAPE) -> onnx.ModelProto:
    node = helper.make_node(op, ["x"], ["y"], **({} if axis is None else {"axis": axis}))
    return build(node, opset, {"x": ("float32", shape)}, {"y": ("float32", shape)})


def of_unknown_rank(op: str, opset: int, axis: int | None) -> onnx.ModelProto:
    """The operator on an input in a shape that is given at run time; its output, flat."""
    nodes = [
        helper.make_node("Reshape", ["flat", "shape"], ["x"]),
        helper.make_node(op, ["x"], ["y"], **({} if axis is None else {"axis": axis})),
        helper.make_node("Flatten", ["y"], ["z"], axis=0),
    ]
    inputs = {"flat": ("float32", ["n"]), "shape": ("int64", ["r"])}
    return build(nodes, opset, inputs, {"z": ("float32", [1, "n"])})


def folded(op: str, x: Any, axis: int) -> Any:
    """What the documents of opsets 1 and 11 say: a matrix, folded at the axis."""
    matrix = x.reshape(int(np.prod(x.shape[: axis % x.ndim])), -1)
    if op == "Hardmax":
        return (np.arange(matrix.shape[1]) == matrix.argmax(1)[:, None]).astype(x.dtype).reshape(x.shape)
    shifted = matrix - matrix.max(1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return (logarithms if op == "LogSoftmax" else np.exp(logarithms)).reshape(x.shape)


def test_axis_of_unknown_rank_is_refused_downward() -> None:
    # The others are written as their function bodies.
    assert "the rank of 'x' is unknown" in refusal(of_unknown_rank("Hardmax", 13, 1), 12)


@pytest.mark.parametrize("op", OPERATORS)
def test_last_axis_is_kept(op: str) -> None:
    assert operators(converted(model(op, 13, -1), 11)) == [op]
    assert operators(converted(model(op, 11, 3), 13)) == [op]
    assert operators(converted(of_unknown_rank(op, 11, -1), 13)) == ["Reshape", op, "Flatten"]


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize(("opset", "axis"), [(11, None), (8, 0), (8, 2), (11, -2), (11, -4), (12, 1)])
def test_folded_axis_upward(op: str, opset: int, axis: int | None) -> None:
    x = random_array(SHAPE)
    expected = folded(op, x, 1 if axis is None else axis)
    for shape in (SHAPE, ("a", "b", "c", "d")):
        assert_same([expected], run(converted(model(op, opset, axis, shape), 18), {"x": x}), 1e-6)
    feeds = {"flat": x.reshape(-1), "shape": np.array(SHAPE)}
    found = run(converted(of_unknown_rank(op, opset, axis), 18), feeds)
    assert_same([expected.reshape(1, -1)], found, 1e-6)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("target", [13, 18])
@pytest.mark.parametrize(("zero", "axis"), [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 1), (3, 0), (3, 2)])
def test_folded_axis_of_no_elements_upward(op: str, zero: int, axis: int, target: int) -> None:
    sizes = tuple(0 if place == zero else size for place, size in enumerate(SHAPE))
    for shape in (sizes, ("a", "b", "c", "d")):
        after = converted(model(op, 11, axis, shape), target)
        assert_same([np.zeros(sizes, np.float32)], run(after, {"x": np.zeros(sizes, np.float32)}))
        if shape != sizes:
            x = random_array(SHAPE)
            assert_same([folded(op, x, axis)], run(after, {"x": x}), 1e-6)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("axis", [0, 1, -3, 2])
@pytest.mark.parametrize("target", [12, 9])
def test_one_axis_downward(op: str, axis: int, target: int) -> None:
    x = random_array(SHAPE)
    before = model(op, 13, axis, ("a", "b", "c", "d"))
    after = converted(before, target)
    assert operators(after) == ["Transpose", op, "Transpose"]
    assert_same(run(before, {"x": x}), run(after, {"x": x}), 1e-6)
    assert_same(run(before, {"x": x}), run(converted(after, 18), {"x": x}), 1e-6)


def test_axis_of_a_function_goes_up_with_the_node() -> None:
    node = helper.make_node("Softmax", ["a"], ["b"])
    node.attribute.append(onnx.AttributeProto(name="axis", type=onnx.AttributeProto.INT, ref_attr_name="at"))
    function = helper.make_function("local", "F", ["a"], ["b"], [node], [helper.make_opsetid("", 11)], ["at"])
    call = helper.make_node("F", ["x"], ["y"], domain="local", at=1)
    before = build(call, 11, {"x": ("float32", SHAPE)}, {"y": ("float32", SHAPE)})
    before.functions.append(function)
    before.opset_import.add(domain="local", version=1)
    before.ir_version = 8
    x = random_array(SHAPE)
    assert_same([folded("Softmax", x, 1)], run(converted(before, 18), {"x": x}), 1e-6)
