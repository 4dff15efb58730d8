"""LayerNormalization below opset 17, RMSNormalization below 23: what they compute, and how well; and
LayerNormalization as onnxruntime's optimizer writes it there.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import TensorProto, helper

import splitgraph
from splitgraph.conversion.opset import convert_opset

WIDTH = 8


def normalization(
    dtype: int, axis: int, outputs: list[str], dims: list[object], opset: int = 17, **attributes: object
) -> onnx.ModelProto:
    scale = [WIDTH] if axis == -1 else [3, WIDTH]
    values = [
        helper.make_tensor_value_info(name, dtype, shape)
        for name, shape in zip("xsb", (dims, scale, scale), strict=True)
    ]
    results = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT if position else dtype, None)
        for position, name in enumerate(outputs)
    ]
    node = helper.make_node("LayerNormalization", ["x", "s", "b"], outputs, axis=axis, **attributes)
    graph = helper.make_graph([node], "g", values, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


CASES = [
    (TensorProto.FLOAT, -1, ["y"]),
    (TensorProto.FLOAT, 1, ["y", "mean", "inverse"]),
    (TensorProto.FLOAT16, -2, ["y", "mean"]),
    (TensorProto.DOUBLE, -1, ["y"]),
]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("opset", [16, 11, 9])
@pytest.mark.parametrize(("dtype", "axis", "outputs"), CASES)
def test_equal(dtype: int, axis: int, outputs: list[str], opset: int) -> None:
    model = normalization(dtype, axis, outputs, ["N", 3, WIDTH], epsilon=1e-3)
    converted = convert_opset(model, opset).model
    onnx.checker.check_model(splitgraph.infer(converted).model, full_check=True)
    assert splitgraph.verify(model, converted).verdict == "equal"


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("before", "after"), [(14, 18), (14, 11)])
@pytest.mark.parametrize(("dtype", "axis", "outputs"), CASES)
def test_what_onnxruntime_optimized_stays_as_it_is(
    dtype: int, axis: int, outputs: list[str], before: int, after: int
) -> None:
    model = normalization(dtype, axis, outputs, ["N", 3, WIDTH], before, epsilon=1e-3)
    converted = convert_opset(model, after).model
    assert list(converted.graph.node) == list(model.graph.node)
    assert splitgraph.verify(model, converted).verdict == "equal"


def test_operands_of_two_types_are_onnxruntimes_alone() -> None:
    model = normalization(TensorProto.FLOAT16, -1, ["y"], ["N", 3, WIDTH], 14)
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.FLOAT
    with pytest.raises(splitgraph.ConversionError, match="both must have the same type"):
        convert_opset(model, 18)


def test_unknown_rank_is_written_as_the_specification_has_it() -> None:
    model = normalization(TensorProto.FLOAT, 1, ["y"], ["N", 3, WIDTH])
    model.graph.input[0].type.tensor_type.ClearField("shape")
    converted = convert_opset(model, 13).model
    assert "Flatten" in {node.op_type for node in converted.graph.node}


@pytest.mark.parametrize("stash", [TensorProto.BFLOAT16, TensorProto.DOUBLE])
def test_any_precision_of_the_statistics_gives_a_valid_model(stash: int) -> None:
    model = normalization(TensorProto.FLOAT, -1, ["y"], ["N", 3, WIDTH], stash_type=stash)
    converted = convert_opset(model, 16).model
    onnx.checker.check_model(splitgraph.infer(converted).model, full_check=True)
    assert "LayerNormalization" not in {node.op_type for node in converted.graph.node}


def test_a_large_mean_costs_no_accuracy() -> None:
    """The mean of the squares less the square of the mean would have no digit right."""
    model = convert_opset(normalization(TensorProto.FLOAT, -1, ["y"], ["N", 3, WIDTH]), 13).model
    x = np.random.default_rng(0).normal(10_000, 1, (2, 3, WIDTH)).astype(np.float32)
    given = {"x": x, "s": np.ones(WIDTH, np.float32), "b": np.zeros(WIDTH, np.float32)}
    (found,) = onnx.reference.ReferenceEvaluator(model).run(None, given)
    exact = x.astype(np.float64)
    exact = (exact - exact.mean(-1, keepdims=True)) / np.sqrt(exact.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found, exact, atol=2e-3)


@pytest.mark.parametrize("opset", [8, 7])
@pytest.mark.parametrize("batch", [2, "N"])
def test_what_computed_axes_goes_where_they_become_an_attribute(batch: int | str, opset: int) -> None:
    """The body computes them with NonZero, which does not exist below 9 and is not needed there."""
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, WIDTH])]
    values.append(helper.make_tensor_value_info("s", TensorProto.FLOAT, [WIDTH]))
    node = helper.make_node("RMSNormalization", ["x", "s"], ["y"], axis=-1)
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 3, WIDTH])]
    graph = helper.make_graph([node], "g", values, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    converted = convert_opset(model, opset).model
    onnx.checker.check_model(converted, full_check=True)
    assert splitgraph.verify(model, converted).verdict == "equal"


@pytest.mark.parametrize(("dtype", "scale"), [("FLOAT16", "FLOAT"), ("FLOAT", "DOUBLE"), ("BFLOAT16", "FLOAT")])
def test_a_scale_of_another_type_has_no_result(dtype: str, scale: str) -> None:
    """The document gives the type of the scale, onnx's inference that of the data, and Mul takes no two types."""
    kinds = [TensorProto.DataType.Value(name) for name in (dtype, scale)]
    values = [helper.make_tensor_value_info("x", kinds[0], ["N", WIDTH])]
    values.append(helper.make_tensor_value_info("s", kinds[1], [WIDTH]))
    node = helper.make_node("RMSNormalization", ["x", "s"], ["y"])
    graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    with pytest.raises(splitgraph.SplitgraphError, match="scale of another type"):
        convert_opset(model, 22)
