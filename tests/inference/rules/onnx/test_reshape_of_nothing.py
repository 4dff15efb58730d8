"""A Reshape with -1 beside a dimension of 0: OpenVINO alone runs it. onnxruntime and the evaluator are asked here."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import splitgraph


def model_of(shape: list[int | str], target: list[int], opset: int) -> ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "t"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(target, np.int64), "t")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


# (shape, target, what infer says of the result; None where the engines run it)
REFUSED = [
    ([0, 10], [0, 1, -1], "as [0, 1, 10]"),
    ([0, 10], [0, -1], "as [0, 10]"),
    ([2, 0], [-1, 0], "as [2, 0]"),
    ([2, 0], [2, 0, -1], "as [2, 0, 1]"),
    ([0, 4], [0, -1, 2], "as [0, 2, 2]"),
    ([0, 0], [0, 0, -1], "as [0, 0, 1]"),
    ([2, 0, 4], [0, 0, -1], "as [2, 0, 4]"),
]
RUN = [([0, 3], [-1, 0]), ([3, 0], [-1, 5]), ([3, 0], [0, 0]), ([0, 10], [0, 5, 2]), ([2, 10], [0, 1, -1])]


def runs(model: ModelProto) -> list[bool]:
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    told = []
    for engine in (
        lambda: onnxruntime.InferenceSession(model.SerializeToString(), options),
        lambda: ReferenceEvaluator(model),
    ):
        try:
            engine().run(None, {"x": np.zeros(shape, np.float32)})
        except Exception:  # the engines' errors have no common base of their own
            told.append(False)
        else:
            told.append(True)
    return told


@pytest.mark.parametrize("opset", [5, 13, 14, 21])
@pytest.mark.parametrize(("shape", "target", "reading"), REFUSED)
def test_what_only_openvino_runs_is_a_warning(
    shape: list[int | str], target: list[int], reading: str, opset: int
) -> None:
    model = model_of(shape, target, opset)
    (found,) = splitgraph.infer(model).diagnostics
    assert (found.code, found.severity) == ("SG302", "warning")
    assert "onnxruntime and the reference evaluator refuse it" in found.message
    assert f"runs {reading} in OpenVINO" in found.message
    assert runs(model) == [False, False]


@pytest.mark.parametrize("opset", [5, 14])
@pytest.mark.parametrize(("shape", "target"), RUN)
def test_what_every_engine_runs_is_right(shape: list[int | str], target: list[int], opset: int) -> None:
    model = model_of(shape, target, opset)
    assert splitgraph.infer(model).diagnostics == ()
    assert runs(model) == [True, True]


def test_a_named_dimension_is_0_only_at_the_sizes_of_a_caller() -> None:
    model = model_of(["N", 10], [0, 1, -1], 14)
    assert splitgraph.infer(model).diagnostics == ()
    assert [each.severity for each in splitgraph.infer(model, bind={"N": 0}).diagnostics] == ["warning"]
    assert splitgraph.infer(model, bind={"N": 2}).diagnostics == ()
