"""Flatten of integers, strings and others below opset 9, where it takes floating-point numbers only."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
import pytest
from conversion.operators.execute import converted, operators, run
from onnx import TensorProto, helper

from splitgraph.conversion.opset import convert_opset

Shape = list[int | str] | None


def flatten(opset: int, shape: Shape, axis: int, dtype: int = TensorProto.INT64) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Flatten", ["x"], ["y"], axis=axis)],
        "g",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info("y", dtype, [None, None])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)


@pytest.mark.parametrize(("source", "target"), [(9, 8), (9, 7), (13, 6), (13, 8)])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ([2, 3, 4], 0),
        ([2, 3, 4], 3),
        (["N", 3, 4], 1),
        (["N", 3, 4], 2),
        (["N", 3, 4], 0),
        ([2, "N", "M"], 1),
        (["N", 0, 3], 1),
        ([], 0),
    ],
)
def test_reshaped_as_flatten_does(source: int, target: int, shape: list[int | str], axis: int) -> None:
    made = converted(flatten(source, shape, axis), target)
    assert "Flatten" not in operators(made)
    for sizes in ({"N": 2, "M": 3}, {"N": 0, "M": 3}, {"N": 2, "M": 0}):
        dims = [sizes[dim] if isinstance(dim, str) else dim for dim in shape]
        data = np.arange(prod(dims)).reshape(dims)
        (found,) = run(made, {"x": data})
        np.testing.assert_array_equal(found, data.reshape(prod(dims[:axis]), prod(dims[axis:])))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [["N", "M", "K"], None])
def test_nothing_known_of_the_dimensions(shape: Shape, axis: int) -> None:
    made = convert_opset(flatten(9, shape, axis), 8).model
    for dims in ([2, 3, 4], [0, 3, 4], [2, 0, 4], [2, 3, 0]):
        data = np.arange(prod(dims)).reshape(dims)
        (found,) = run(made, {"x": data})
        np.testing.assert_array_equal(found, data.reshape(prod(dims[:axis]), prod(dims[axis:])))


@pytest.mark.parametrize("dtype", ["STRING", "UINT64", "INT64", "COMPLEX64"])
def test_every_type_that_reshape_takes(dtype: str) -> None:
    assert operators(converted(flatten(11, ["N", 3], 1, TensorProto.DataType.Value(dtype)), 8)) == ["Reshape"]


@pytest.mark.parametrize("dtype", ["FLOAT", "DOUBLE", "FLOAT16"])
def test_floating_point_stays(dtype: str) -> None:
    assert operators(converted(flatten(11, ["N", 3], 1, TensorProto.DataType.Value(dtype)), 8)) == ["Flatten"]
