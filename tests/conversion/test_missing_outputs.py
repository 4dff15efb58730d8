"""A Split-18 with fewer outputs than num_outputs: a warning where OpenVINO and the reference evaluator run it alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser
from onnx.reference import ReferenceEvaluator

import splitgraph


def model_of(shape: Any, chunks: int, outputs: int, axis: int = 0) -> onnx.ModelProto:
    names = [f"y{index}" for index in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node("Split", ["x"], names, "node", axis=axis, num_outputs=chunks)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


# What stays an error: OpenVINO refuses it, or gives wrong parts.
ERRORS = {
    "an overrun, 5 into 4": model_of([5], 4, 3),
    "an overrun, 3 into 5": model_of([3], 5, 2),
    "an overrun, 9 into 4 on axis 1": model_of([2, 9], 6, 2, 1),
    "an empty last part": model_of([6], 4, 2),
    "uneven, on a negative axis": model_of([3, 7], 3, 2, -1),
    "an axis of a dynamic dimension out of range": model_of(["N"], 3, 2, 1),
    "more outputs than num_outputs, of a dynamic dimension": model_of(["N"], 2, 3),
    "an unknown rank": model_of(None, 3, 2),
    "an axis out of range": model_of([6], 3, 2, 1),
    "more outputs than num_outputs": model_of([6], 2, 3),
    "more outputs than one": model_of([6], 1, 2),
    "more parts than anybody writes": model_of([0], 200_000_000, 1),
}


@pytest.mark.parametrize("name", ERRORS)
def test_other_readings_stay_errors(name: str) -> None:
    errors = {found.code for found in splitgraph.infer(ERRORS[name]).diagnostics if found.severity == "error"}
    assert "SG209" in errors
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.convert(ERRORS[name], "slice")


# Each with the length of the parts that have an output.
MENDED = {
    "an even dimension": (model_of([6, 3], 3, 2), [2, 2]),
    "one output": (model_of([6, 3], 3, 1), [2]),
    "an even dimension, negative axis": (model_of([3, 6], 3, 2, -1), [2, 2]),
    "an uneven dimension": (model_of([7], 3, 2), [3, 3]),
    "an uneven dimension, axis 1": (model_of([2, 11], 4, 3, 1), [3, 3, 3]),
    "an empty dimension": (model_of([0, 2], 3, 2), [0, 0]),
}


@pytest.mark.parametrize("name", MENDED)
def test_every_rewrite_adds_the_missing_outputs(name: str) -> None:
    model, lengths = MENDED[name]
    analysis = splitgraph.infer(model)
    assert ("SG209", "warning") in {(found.code, found.severity) for found in analysis.diagnostics} and analysis.ok
    axis = analysis.splits[0].axis or 0
    assert [value.shape[axis] for _, value in analysis.splits[0].outputs if value.shape] == lengths
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    data = {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}
    # onnx's own evaluator takes the node as it is.
    wanted = ReferenceEvaluator(model).run(None, data)
    results = [splitgraph.convert(model, form).model for form in ("slice", "split", "variadic-split")]
    results.append(splitgraph.convert(model, "split", explicit_lengths=True).model)
    results += [splitgraph.upgrade(model, 18).model, splitgraph.upgrade(model, 21).model]
    results += [splitgraph.downgrade(model, opset).model for opset in (13, 11)]
    for result in results:
        assert not [found for found in splitgraph.infer(result).diagnostics if found.code == "SG209"]
        onnx.checker.check_model(splitgraph.infer(result).model, full_check=True)
        given = ReferenceEvaluator(result).run(None, data)
        assert all(np.array_equal(one, other) for one, other in zip(wanted, given, strict=True))


DYNAMIC = [
    (["N"], 3, 2, 0),
    (["N"], 3, 1, 0),
    (["2*N"], 4, 2, 0),
    ([2, "N"], 3, 2, -1),
    (["N", 3], 4, 3, 0),
    ([2, None], 3, 2, 1),
]


def test_a_dimension_that_is_provably_divisible() -> None:
    rewrite = splitgraph.downgrade(model_of(["3*N"], 3, 2), 13)
    assert [*rewrite.model.graph.node[0].output] == ["y0", "y1", "node_part2"]


@pytest.mark.parametrize(("shape", "chunks", "outputs", "axis"), DYNAMIC)
def test_a_dynamic_dimension_is_read_as_a_number_is(shape: Any, chunks: int, outputs: int, axis: int) -> None:
    model = model_of(shape, chunks, outputs, axis)
    (found,) = splitgraph.infer(model).diagnostics
    assert (found.code, found.severity) == ("SG209", "warning")
    assert f"where the dimension is divisible by {chunks}" in found.message
    results = [splitgraph.downgrade(model, 13).model, splitgraph.downgrade(model, 11).model]
    results += [splitgraph.upgrade(model, 21).model, splitgraph.convert(model, "slice").model]
    for size in (6, 7, 11):
        sizes = [dim if isinstance(dim, int) else 2 * size if dim == "2*N" else size for dim in shape]
        data = {"x": np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)}
        wanted = ReferenceEvaluator(model).run(None, data)
        for result in results:
            given = ReferenceEvaluator(result).run(None, data)
            assert all(np.array_equal(one, other) for one, other in zip(wanted, given, strict=True))


def test_in_every_graph_with_names_that_are_new() -> None:
    text = """<ir_version: 8, opset_import: ["": 18, "local": 1]> g (float[4] x, bool c)
        => (float[2] y, float[2] z, float[2] u)
        { y = If (c) <
            then_branch = t () => (float[2] a) { a = Split <num_outputs = 2> (x) },
            else_branch = e () => (float[2] d) { e0, d = Split <num_outputs = 2> (x) }>
        z = local.f (x)
        u = Split <num_outputs = 2> (x)
        Split_part1 = Split <num_outputs = 2> (x) }
        <opset_import: ["": 18], domain: "local"> f (x) => (a) { a = Split <num_outputs = 2> (x) }"""
    rewrite = splitgraph.upgrade(parser.parse_model(text), 20)
    assert len([found for found in rewrite.diagnostics if found.code == "SG401"]) == 4
    result = splitgraph.infer(rewrite.model)
    assert not result.diagnostics
    onnx.checker.check_model(result.model, full_check=True)


@pytest.mark.parametrize(("target", "code"), [("onnxruntime", "SG701"), ("openvino", "SG209")])
def test_check_tells_who_refuses_the_node(target: str, code: str) -> None:
    found = splitgraph.check(MENDED["an uneven dimension"][0], target)
    assert code in {each.code for each in found}
