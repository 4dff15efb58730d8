"""Nodes of one kind go to another opset alike; what differs in more than shapes is another kind, and what its shapes
decide is none.
"""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

import splitgraph


def parsed(opset: int, signature: str, body: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {signature} {{ {body} }}')


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


SOFTMAX = {"flat": "y = Softmax<axis = 1>(x)", "deep": "w = Softmax<axis = 1>(z)"}


@pytest.mark.parametrize("order", [("flat", "deep"), ("deep", "flat")], ids=" then ".join)
def test_shapes_decide_of_each_node_by_itself(order: tuple[str, str]) -> None:
    """Below 13, Softmax takes all dimensions from axis on: the last one alone of the one, two of the other."""
    signature = "(float[N, 4] x, float[N, 4, 5] z) => (float[N, 4] y, float[N, 4, 5] w)"
    before = parsed(12, signature, " ".join(SOFTMAX[each] for each in order))
    after = splitgraph.upgrade(before, 13).model
    made = operators(after)
    assert made.count("Softmax") == 2
    assert "Flatten" in made
    (plain,) = [node for node in after.graph.node if node.output[0] == "y"]
    assert plain.op_type == "Softmax"


@pytest.mark.parametrize("order", [("x", "z"), ("z", "x")], ids=" then ".join)
def test_windows_decide_of_each_pool_by_itself(order: tuple[str, str]) -> None:
    """ceil_mode goes where it makes no window, and stays where it makes one."""
    pools = {
        name: f'{name}_out = MaxPool<auto_pad = "VALID", ceil_mode = 1, kernel_shape = [2], strides = [2]>({name})'
        for name in order
    }
    signature = "(float[1, 1, 4] x, float[1, 1, 5] z) => (float[1, 1, P] x_out, float[1, 1, Q] z_out)"
    after = splitgraph.downgrade(parsed(22, signature, " ".join(pools.values())), 21).model
    ceiled = {node.output[0]: "ceil_mode" in {held.name for held in node.attribute} for node in after.graph.node}
    assert not ceiled["x_out"]
    assert ceiled["z_out"]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")], ids=" then ".join)
def test_element_types_make_kinds(order: tuple[str, str]) -> None:
    """Relu takes int32 from 14 on."""
    nodes = {"a": "a = Relu(x)", "b": "b = Relu(k)"}
    signature = "(float[N] x, int32[N] k) => (float[N] a, int32[N] b)"
    after = splitgraph.downgrade(parsed(14, signature, " ".join(nodes[each] for each in order)), 13).model
    given = {node.output[0]: node.op_type for node in after.graph.node}
    assert given["a"] == "Relu"
    assert len(after.graph.node) > 2


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")], ids=" then ".join)
def test_sequences_are_another_kind_than_tensors(order: tuple[str, str]) -> None:
    """Identity takes sequences from 14 on."""
    nodes = {"a": "a = Identity(x)", "b": "b = Identity(s)"}
    signature = "(float[N] x, seq(float[N]) s) => (float[N] a, seq(float[N]) b)"
    after = splitgraph.downgrade(parsed(14, signature, " ".join(nodes[each] for each in order)), 13).model
    assert [list(node.input) for node in after.graph.node if node.op_type == "Identity"] == [["x"]]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")], ids=" then ".join)
def test_attributes_make_kinds(order: tuple[str, str]) -> None:
    """Below 12, a Constant holds a tensor and no number."""
    nodes = {"a": "a = Constant<value = int64 {1}>()", "b": "b = Constant<value_int = 2>()"}
    before = parsed(12, "() => (int64 a, int64 b)", " ".join(nodes[each] for each in order))
    after = splitgraph.downgrade(before, 11).model
    assert {node.output[0]: node.attribute[0].name for node in after.graph.node} == {"a": "value", "b": "value"}
    assert {node.output[0]: node.attribute[0].t.data_type for node in after.graph.node} == {"a": 7, "b": 7}


def test_constants_are_one_kind_whatever_they_hold() -> None:
    constants = " ".join(f"c{index} = Constant<value = float {{{index}.0}}>()" for index in range(20))
    outputs = ", ".join(f"float c{index}" for index in range(20))
    before = parsed(11, f"() => ({outputs})", constants)
    rewrite = splitgraph.upgrade(before, 18)
    assert not rewrite.changes
    assert [node.attribute[0] for node in rewrite.model.graph.node] == [node.attribute[0] for node in before.graph.node]
