"""Faults of exporters: repaired where a node has one reading only, and the user is asked where readings differ.

What the reference evaluator and OpenVINO make of each was found by running them; onnxruntime refuses all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import splitgraph
from splitgraph.model.schemas.table import minimum_ir_version
from splitgraph.verification.reference.evaluator import load, run

C2F = Path(__file__).parents[2] / "models" / "c2f.opset17.dynamo.onnx"


def model_of(
    opset: int, op: str, outputs: int = 1, second: list[int] | None = None, shape: Any = (4, 6), **attributes: Any
) -> onnx.ModelProto:
    inputs = ["x"] if second is None else ["x", "second"]
    names = [f"y{index}" for index in range(outputs)]
    dtype = TensorProto.INT64 if op == "Shape" else TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node(op, inputs, names, "node", **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, dtype, None) for name in names],
        [] if second is None else [numpy_helper.from_array(np.array(second, np.int64), "second")],
    )
    version = min(8, minimum_ir_version(opset))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version)


# Each with the shapes of its outputs.
REPAIRED = {
    "num_outputs of a Split-2": (model_of(2, "Split", 3, axis=1, num_outputs=3), [(4, 2)] * 3),
    "num_outputs of a Split-11": (model_of(11, "Split", 3, axis=1, num_outputs=3), [(4, 2)] * 3),
    "num_outputs of a Split-13": (model_of(17, "Split", 3, axis=1, num_outputs=3), [(4, 2)] * 3),
    "and lengths, of a Split-13": (model_of(13, "Split", 2, [2, 4], axis=1, num_outputs=2), [(4, 2), (4, 4)]),
    "and lengths, of a Split-11": (model_of(11, "Split", 2, axis=1, split=[2, 4], num_outputs=2), [(4, 2), (4, 4)]),
    "equal lengths as attribute of a Split-13": (model_of(13, "Split", 2, axis=1, split=[3, 3]), [(4, 3)] * 2),
    "equal lengths as attribute of a Split-18": (model_of(18, "Split", 2, axis=1, split=[3, 3]), [(4, 3)] * 2),
    "lengths twice": (model_of(13, "Split", 2, [2, 4], axis=1, split=[2, 4]), [(4, 2), (4, 4)]),
    "both that agree": (model_of(18, "Split", 2, [3, 3], axis=1, num_outputs=2), [(4, 3)] * 2),
    "both that agree, uneven": (model_of(18, "Split", 4, [2, 2, 2, 1], (7,), num_outputs=4), [(2,), (2,), (2,), (1,)]),
    "neither": (model_of(18, "Split", 2, axis=1), [(4, 3)] * 2),
    "axes of all ones": (model_of(13, "Squeeze", shape=(1, 6, 1), axes=[0, -1]), [(6,)]),
    "axes twice": (model_of(13, "Unsqueeze", 1, [0], axes=[0]), [(1, 4, 6)]),
    "axes twice, reduced": (model_of(18, "ReduceMax", 1, [1], axes=[1]), [(4, 1)]),
    "all axes, of a ReduceSum-13": (model_of(13, "ReduceSum", axes=[0, 1]), [(1, 1)]),
    "all axes, of a ReduceMean-18": (model_of(18, "ReduceMean", axes=[-1, 0], keepdims=0), [()]),
    "noop_with_empty_axes below 18": (model_of(13, "ReduceL2", axes=[1], noop_with_empty_axes=1), [(4, 1)]),
    "the default of a later version": (model_of(13, "Reshape", 1, [2, 12], allowzero=0), [(2, 12)]),
    "of a Cast": (model_of(13, "Cast", to=1, saturate=1), [(4, 6)]),
    "of a Shape": (model_of(13, "Shape", start=0), [(2,)]),
    "consumed_inputs after opset 6": (model_of(13, "Relu", consumed_inputs=[0]), [(4, 6)]),
    "ratio of a Dropout that does not train": (model_of(13, "Dropout", ratio=0.3), [(4, 6)]),
    "is_test of a Dropout-7": (model_of(7, "Dropout", ratio=0.3, is_test=1), [(4, 6)]),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_one_reading_is_repaired(name: str) -> None:
    model, shapes = REPAIRED[name]
    analysis = splitgraph.infer(model)
    found = {(each.code, each.severity) for each in analysis.diagnostics}
    assert found and found <= {("SG207", "error"), ("SG208", "warning"), ("SG416", "warning")}
    assert [analysis.types[output.name].shape for output in model.graph.output] == shapes
    opset = model.opset_import[0].version
    rewrite = splitgraph.upgrade(model, opset)
    assert {(found.code, found.severity) for found in rewrite.diagnostics} == {("SG401", "info")}
    assert rewrite.changes[0].location == "main/node"
    again = splitgraph.infer(rewrite.model)
    assert not again.diagnostics
    onnx.checker.check_model(again.model, full_check=True)
    newer = splitgraph.upgrade(model, 21).model
    data = np.arange(np.prod([dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]))
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    given = run(load(newer), {"x": data.reshape(shape).astype(np.float32)})
    assert [value.shape for value in given] == shapes


ASKED = {
    "num_outputs of another number": (model_of(17, "Split", 3, axis=1, num_outputs=2), "SG212"),
    "num_outputs of an uneven dimension": (model_of(17, "Split", 4, axis=1, num_outputs=4), "SG206"),
    "uneven lengths as attribute": (model_of(13, "Split", 2, axis=1, split=[2, 4]), "SG212"),
    "lengths of an unknown dimension": (model_of(13, "Split", 2, shape=("N", 6), split=[3, 3]), "SG212"),
    "other lengths": (model_of(13, "Split", 2, [4, 2], axis=1, split=[2, 4]), "SG212"),
    "both that differ": (model_of(18, "Split", 2, [2, 4], axis=1, num_outputs=2), "SG208"),
    "both, of an unknown dimension": (model_of(18, "Split", 2, [2, 4], ("N",), num_outputs=2), "SG208"),
    "an empty chunk": (model_of(18, "Split", 4, shape=(5,)), "SG207"),
    "axes of a ReduceMax-18": (model_of(18, "ReduceMax", axes=[1]), "SG212"),
    "axes of a ReduceSum-13": (model_of(13, "ReduceSum", axes=[0]), "SG212"),
    "some ones": (model_of(13, "Squeeze", shape=(1, 1, 6), axes=[0]), "SG212"),
    "other axes": (model_of(18, "ReduceMax", 1, [0], axes=[1]), "SG212"),
    "bounds of a Clip-11": (model_of(11, "Clip", min=0.5, max=1.0), "SG212"),
    "a value that is no default": (model_of(13, "Reshape", 1, [2, 12], allowzero=1), "SG212"),
    "a default of another meaning": (
        model_of(10, "Resize", 1, [1, 2], coordinate_transformation_mode="half_pixel"),
        "SG212",
    ),
    "nobody's attribute": (model_of(13, "Relu", alpha=0.1), "SG212"),
    "a broadcast along an axis": (model_of(7, "Add", 1, [1], broadcast=1, axis=0), "SG212"),
}


@pytest.mark.parametrize("name", ASKED)
def test_where_readings_differ_the_user_is_asked(name: str) -> None:
    model, code = ASKED[name]
    errors = {found.code for found in splitgraph.infer(model).diagnostics if found.severity == "error"}
    assert code in errors
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.upgrade(model, 21)


def test_valid_nodes_are_left_alone() -> None:
    for model in (
        model_of(18, "Split", 3, axis=1, num_outputs=3),
        model_of(18, "Split", 2, [3, 3], axis=1),
        model_of(13, "Split", 3, axis=1),
        model_of(11, "Split", 2, axis=1, split=[3, 3]),
        model_of(14, "Reshape", 1, [2, 12], allowzero=0),
        model_of(6, "Dropout", is_test=1),
    ):
        assert not splitgraph.infer(model).diagnostics
        assert not splitgraph.upgrade(model, model.opset_import[0].version).changes


def test_in_every_graph() -> None:
    """In a branch, and in the body of a function of which a call gives the types."""
    text = """<ir_version: 8, opset_import: ["": 17, "local": 1]> g (float[4] x, bool c) => (float[2] y, float[2] z) {
        y = If (c) <
            then_branch = t () => (float[2] a) { a, b = Split <num_outputs = 2> (x) },
            else_branch = e () => (float[2] d) { e0, d = Split (x) }>
        z = local.f (x) }
        <opset_import: ["": 17], domain: "local"> f (x) => (a) { a, b = Split <num_outputs = 2> (x) }"""
    model = onnx.parser.parse_model(text)
    assert splitgraph.infer(model).ok
    rewrite = splitgraph.downgrade(model, 13)
    assert len([found for found in rewrite.diagnostics if found.code == "SG401"]) == 2
    onnx.checker.check_model(rewrite.model, full_check=True)


@pytest.mark.parametrize("verb", ["upgrade", "downgrade", "split", "variadic-split"])
def test_what_the_exporter_wrote_is_converted(verb: str) -> None:
    rewrite = (
        getattr(splitgraph, verb)(C2F, 18 if verb == "upgrade" else 13)
        if verb.endswith("grade")
        else splitgraph.convert(C2F, verb)  # type: ignore[arg-type]  # one of the two
    )
    assert "SG401" in {found.code for found in rewrite.diagnostics}
    onnx.checker.check_model(rewrite.model, full_check=True)


def test_a_repaired_model_is_verified() -> None:
    found = splitgraph.verify(C2F, splitgraph.upgrade(C2F, 18).model, samples=1)
    assert found.verdict == "equal"
