"""Outputs that a split leaves out, and others that are not optional: a warning, and a name in every rewrite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from onnx import ModelProto, NodeProto, TensorProto, checker, helper

import splitgraph
from splitgraph.conversion.rewrite import Rewrite

FLOAT = TensorProto.FLOAT

LEFT_OUT = [
    (2, ["a", ""], {}),
    (11, ["", "b"], {}),
    (13, ["a", "", "c"], {}),
    (18, ["a", ""], {"num_outputs": 2}),
    (18, ["", "", "c"], {"num_outputs": 3}),
    (18, ["", ""], {"num_outputs": 2}),
]


def model_of(opset: int, outputs: list[str], attributes: dict[str, Any]) -> ModelProto:
    node = helper.make_node("Split", ["x"], outputs, name="s", **attributes)
    given = [name for name in outputs if name] or ["x"]
    nodes = [node, *(helper.make_node("Identity", [name], [f"{name}_out"]) for name in given)]
    return around(nodes, [f"{name}_out" for name in given], opset)


def around(nodes: list[NodeProto], outputs: list[str], opset: int) -> ModelProto:
    inputs = [helper.make_tensor_value_info("x", FLOAT, [6, 4])]
    declared = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, declared), opset_imports=imports, ir_version=8)


REWRITES: list[Callable[[ModelProto], Rewrite]] = [
    lambda model: splitgraph.upgrade(model, 23),
    lambda model: (
        splitgraph.downgrade(model, 1) if model.opset_import[0].version == 2 else splitgraph.downgrade(model, 2)
    ),
    lambda model: splitgraph.convert(model, "split", explicit_lengths=True),
    lambda model: splitgraph.convert(model, "split"),
]


@pytest.mark.parametrize(("opset", "outputs", "attributes"), LEFT_OUT)
def test_the_warning_says_which(opset: int, outputs: list[str], attributes: dict[str, Any]) -> None:
    (found,) = splitgraph.infer(model_of(opset, outputs, attributes)).diagnostics
    assert (found.code, found.severity, found.location) == ("SG220", "warning", "main/s")
    assert f"output {outputs.index('')} " in found.message


@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize(("opset", "outputs", "attributes"), LEFT_OUT)
def test_every_rewrite_names_them(
    opset: int, outputs: list[str], attributes: dict[str, Any], rewrite: Callable[[ModelProto], Rewrite]
) -> None:
    model = model_of(opset, outputs, attributes)
    result = rewrite(model)
    splits = [node for node in result.model.graph.node if node.op_type == "Split"]
    names = [name for node in splits for name in node.output]
    assert all(names)
    assert [name for name in outputs if name] == [name for name in names if name in outputs]
    assert len(set(names)) == len(outputs)
    assert not [found for found in splitgraph.infer(result.model).diagnostics if found.code == "SG220"]
    (change,) = result.changes
    assert change.location == "main/s"
    assert "onnxruntime" in change.why
    assert "" in model.graph.node[0].output


def test_new_names_collide_with_none() -> None:
    nodes = [
        helper.make_node("Split", ["x"], ["a", ""], name="s"),
        helper.make_node("Identity", ["a"], ["s_part1"]),
    ]
    result = splitgraph.upgrade(around(nodes, ["s_part1"], 13), 18).model
    assert list(result.graph.node[0].output) == ["a", "s_part1_1"]


def test_in_bodies_and_functions() -> None:
    branch = helper.make_graph(
        [helper.make_node("Split", ["x"], ["p", ""], name="inner")],
        "b",
        [],
        [helper.make_tensor_value_info("p", FLOAT, None)],
    )
    condition = helper.make_tensor("t", TensorProto.BOOL, [], [True])
    nodes = [
        helper.make_node("Constant", [], ["t"], value=condition),
        helper.make_node("If", ["t"], ["y"], then_branch=branch, else_branch=branch),
        helper.make_node("F", ["y"], ["z"], domain="local"),
    ]
    model = around(nodes, ["z"], 13)
    body = [helper.make_node("Split", ["a"], ["", "r"], name="called", axis=1)]
    model.functions.append(helper.make_function("local", "F", ["a"], ["r"], body, [helper.make_opsetid("", 13)]))
    result = splitgraph.upgrade(model, 18).model
    inner = [attribute.g.node[0] for attribute in result.graph.node[1].attribute]
    assert all(all(node.output) for node in (*inner, result.functions[0].node[0]))
    assert splitgraph.infer(result).ok


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Dropout", ["x"], ["y", ""]),
        helper.make_node("Unique", ["x"], ["y", "", "n"]),
        helper.make_node("Split", ["x"], ["y", "unread"]),
    ],
    ids=lambda node: node.op_type,
)
def test_other_operators_may_leave_outputs_out(node: NodeProto) -> None:
    count = helper.make_node("Constant", [], ["k"], value_ints=[1])
    model = around([count, node], [], 13)
    assert not splitgraph.infer(model).diagnostics
    assert splitgraph.upgrade(model, 17).model.graph.node[1].output == node.output


def test_at_the_same_opset_nothing_is_touched() -> None:
    model = model_of(13, ["a", ""], {})
    assert splitgraph.upgrade(model, 13).model == model


@pytest.mark.parametrize(("outputs", "named"), [(["v", ""], [1]), (["", "i"], [0]), (["", ""], [0, 1])])
def test_an_output_that_is_not_optional_gets_a_name(outputs: list[str], named: list[int]) -> None:
    nodes = [
        helper.make_node("Constant", [], ["k"], value_ints=[1]),
        helper.make_node("TopK", ["x", "k"], outputs, name="t"),
        helper.make_node("Dropout", ["x"], ["y", ""]),
    ]
    model = around(nodes, ["y"], 13)
    model.graph.output[0].type.CopyFrom(model.graph.input[0].type)
    result = splitgraph.upgrade(model, 17)
    (topk,) = (node for node in result.model.graph.node if node.op_type == "TopK")
    assert [place for place, name in enumerate(topk.output) if name != outputs[place]] == named
    assert [(change.location, change.before) for change in result.changes] == [("main/t", "TopK-11")]
    checker.check_model(result.model)
    assert not splitgraph.infer(result.model).diagnostics
