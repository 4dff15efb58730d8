"""Bodies are looked for in the operators that have them, and in everything that is not of ai.onnx."""

from __future__ import annotations

import onnx
import pytest
from node_models import shape_text
from onnx import TensorProto, helper

import splitgraph
from splitgraph.model.scopes import OPERATORS_WITH_BODIES, scopes

GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def test_every_operator_with_a_body_is_named() -> None:
    found = {
        schema.name
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == "" and any(attribute.type.value in GRAPHS for attribute in schema.attributes.values())
    }
    assert found == OPERATORS_WITH_BODIES


def test_bodies_of_other_domains_are_found() -> None:
    body = helper.make_graph([helper.make_node("Relu", ["x"], ["inner"], name="r")], "body", [], [])
    node = helper.make_node("Custom", ["x"], ["y"], name="c", domain="custom.domain", body=body)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"]) for name in "xy"]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("custom.domain", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    assert [scope.location for scope in scopes(model)] == ["main", "main/c/body"]
    assert "main/c/body" in splitgraph.infer(model).graphs


LOOP = "body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) { d = Identity(c) t = Identity(s) }"
SCAN = "body = b (float[2] s, float[2] i) => (float[2] t, float[2] o) { t = Add(s, i) o = Identity(i) }"


@pytest.mark.parametrize(
    ("inputs", "node", "said"),
    [
        ("float[2] x, int64[2] n", f"y = Loop<{LOOP}>(n, , x)", "the trip count of Loop is int64[2]"),
        ("float[2] x, bool[2] go", f"y = Loop<{LOOP}>(, go, x)", "the condition of Loop is bool[2]"),
        (
            "float[3,2] x, float[2] z",
            f"s, y = Scan<num_scan_inputs=1, scan_input_axes=[2], {SCAN}>(z, x)",
            "scan axis 2 is out of range for a tensor of rank 2",
        ),
    ],
)
def test_an_invalid_node_is_a_finding(inputs: str, node: str, said: str) -> None:
    answer = shape_text(inputs, node, opset=13)
    assert answer.startswith("SG302 ")
    assert said in answer
