"""Shapes that a model declares and its nodes do not give: a warning, and what is written is true."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

import splitgraph

WRONG = [
    ("(float[2, 4] x) => (float[3, 4] y)", "y = Relu (x)", [2, 4]),
    ("(float[2, 4] x) => (float[2] y)", "y = Neg (x)", [2, 4]),
    ("(float[2, 4] x) => (float[2, 4, 1] y)", "y = Abs (x)", [2, 4]),
    ("(float[2, 4] x, float[4, 5] w) => (float[5, 2] y)", "y = MatMul (x, w)", [2, 5]),
    ("(float[2, 4] x) => (float[6] y)", "s = Constant <value_ints = [-1]> ()  y = Reshape (x, s)", [8]),
    ("(float[1, 1, 8, 8] x) => (float[1, 1, 4, 4] y)", "y = MaxPool <kernel_shape = [3, 3]> (x)", [1, 1, 6, 6]),
    ("(float[N, 4] x) => (float[1, 4] y)", "y = Sigmoid (x)", ["N", 4]),
    ("(float[2, 4] x) => (int64[4] y)", "y = ArgMax <axis = 0> (x)", [1, 4]),
]
RIGHT = [
    ("(float[2, 4] x) => (float[2, 4] y)", "y = Relu (x)", [2, 4]),
    ("(float[2, 4] x) => (float[A, B] y)", "y = Relu (x)", [2, 4]),
    ("(float[N, 4] x) => (float[N, 4] y)", "y = Relu (x)", ["N", 4]),
    (
        "(float[N, 4] x) => (float[] y)",
        "s = Constant <value_ints = [0, 1]> ()  y = ReduceSum <keepdims = 0> (x, s)",
        [],
    ),
]


def model(signature: str, body: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> g {signature} {{ {body} }}')


def dims_of(value: onnx.ValueInfoProto) -> list[object]:
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize(("signature", "body", "written"), WRONG)
def test_wrong_shapes_are_warned_of_and_corrected(
    signature: str, body: str, written: list[object], tmp_path: Path
) -> None:
    made = model(signature, body)
    found = splitgraph.infer(made)
    assert [(each.code, each.severity) for each in found.diagnostics] == [("SG301", "warning")]
    assert found.ok
    assert dims_of(found.model.graph.output[0]) == written
    # What is written is right, so that nothing is left to warn of.
    assert not splitgraph.infer(found.model).diagnostics
    assert splitgraph.upgrade(made, 17).model.opset_import[0].version == 17


@pytest.mark.parametrize(("signature", "body", "written"), RIGHT)
def test_right_shapes_are_not(signature: str, body: str, written: list[object]) -> None:
    found = splitgraph.infer(model(signature, body))
    assert not found.diagnostics
    assert dims_of(found.model.graph.output[0]) == written


@pytest.mark.parametrize(
    ("signature", "body"),
    [
        ("(float[2, 4] x) => (int64[2, 4] y)", "y = Relu (x)"),
        ("(float[2, 4] x) => (seq(float[2, 4]) y)", "y = Relu (x)"),
        (
            "(float[6, 4] x) => (float[3, 4] y, float[3, 4] z)",
            "s = Constant <value_ints = [2, 4]> ()  y, z = Split (x, s)",
        ),
    ],
)
def test_what_stays_an_error(signature: str, body: str) -> None:
    """Runtimes load no model that declares another element type. Of a split, two things cannot both be meant."""
    found = splitgraph.infer(model(signature, body))
    assert {(each.code, each.severity) for each in found.diagnostics} == {("SG301", "error")}


def test_an_input_that_is_unlike_its_default_stays_an_error() -> None:
    made = model("(float[2] x) => (float[2] y)", "y = Add (x, w)")
    made.graph.input.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [3]))
    made.graph.initializer.append(onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [0.0, 0.0]))
    assert not splitgraph.infer(made).ok


# What only declarations say: of an operator that nobody knows, and of what one of two branches gives.
UNCERTAIN = {
    "an unknown operator": "z = local.Unknown (x)",
    "a choice of ranks": """z = If (c) <
            then_branch = g1 () => (float[7] a) { a = Constant <value = float[7] {1, 1, 1, 1, 1, 1, 1}> () },
            else_branch = g2 () => (float b) { b = Constant <value = float {1}> () }>""",
}


@pytest.mark.parametrize("name", UNCERTAIN)
@pytest.mark.parametrize("is_wrong", [False, True])
def test_a_model_that_declares_wrongly_once_is_not_believed_elsewhere(name: str, is_wrong: bool) -> None:
    signature = f"(float[2, 4] x, bool c) => (float[{3 if is_wrong else 2}, 4] y, float[5, 6] z)"
    text = f'<ir_version: 8, opset_import: ["": 13, "local": 1]> g {signature} {{ y = Relu (x) {UNCERTAIN[name]} }}'
    found = splitgraph.infer(parser.parse_model(text))
    codes = [each.code for each in found.diagnostics if each.severity == "warning" and each.code == "SG301"]
    assert codes == (["SG301"] if is_wrong else [])
    assert found.types["y"].shape == (2, 4)
    assert found.types["z"].shape == (None if is_wrong else (5, 6))
    # What nobody knows better stays as its author wrote it.
    assert dims_of(found.model.graph.output[1]) == [5, 6]
