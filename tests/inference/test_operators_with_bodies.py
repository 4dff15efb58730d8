"""Bodies are looked for in the operators that have them, and in everything that is not of ai.onnx."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

import splitgraph
from splitgraph.graph.scopes import OPERATORS_WITH_BODIES, scopes

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
