"""Blockers of nodes that conversion wrote name the node of the model, and the opset where it can stop."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import splitgraph


def model(node: onnx.NodeProto, copies: int = 1) -> onnx.ModelProto:
    """The node, several times over, on a vector of numbers."""
    nodes = []
    for index in range(copies):
        made = onnx.NodeProto()
        made.CopyFrom(node)
        made.output[:] = [f"{name}{index}" for name in node.output]
        nodes.append(made)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]
    outputs = [helper.make_tensor_value_info(made.output[0], TensorProto.FLOAT, None) for made in nodes]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


SHAPES = {"x": ["N", 1, "S"], "y": ["M", "T", 1], "z": None}
UNIQUE = helper.make_node("Unique", ["x"], ["y"])


# Nodes of an element type that is written in another one on the way; they are said to stop where that ends.
TYPES = [
    (helper.make_node("Max", ["x", "y"], ["z"], "n"), TensorProto.INT8, 17, 5, "Max cannot go below opset 6", 6),
    (
        helper.make_node("Cast", ["x"], ["z"], "n", to=7),
        TensorProto.FLOAT8E5M2,
        21,
        18,
        "float8e5m2 below opset 19",
        19,
    ),
]


@pytest.mark.parametrize(("node", "dtype", "source", "target", "words", "stop"), TYPES, ids=["further on", "there"])
def test_types_that_end_where_the_node_can_stop(
    node: onnx.NodeProto, dtype: int, source: int, target: int, words: str, stop: int
) -> None:
    inputs = [helper.make_tensor_value_info(name, dtype, shape) for name, shape in (("x", ["N", 3]), ("y", [3]))]
    given = helper.make_tensor_value_info("z", TensorProto.INT64 if node.op_type == "Cast" else dtype, ["N", 3])
    graph = helper.make_graph([node], "g", inputs, [given])
    typed = helper.make_model(graph, opset_imports=[helper.make_opsetid("", source)], ir_version=10)
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.downgrade(typed, target)
    (found,) = raised.value.diagnostics
    assert words in found.message
    assert found.help.startswith(f"Stop at opset {stop}")
    assert splitgraph.downgrade(typed, stop).to_opset[""] == stop


@pytest.mark.parametrize("target", [8, 5, 1])
def test_one_blocker_for_a_node(target: int) -> None:
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.downgrade(model(UNIQUE, 2), target)
    assert [found.location for found in raised.value.diagnostics] == ["main/Unique#0", "main/Unique#1"]
    for found in raised.value.diagnostics:
        assert found.message.startswith(
            "Unique cannot go below opset 9, because the nodes that would replace it cannot: "
        )
        assert "NonZero exists from opset 9 on" in found.message
        assert (" more" in found.message) == (target == 1)
        assert found.help == "Stop at opset 9."


def test_there_it_can_stop() -> None:
    assert splitgraph.downgrade(model(UNIQUE), 9).to_opset[""] == 9


def test_what_is_written_with_the_same_operator() -> None:
    """Add is broadcast below opset 7 by shapes that are added, too; the author's Add is of floats."""
    node = helper.make_node("Add", ["x", "y"], ["z"], "add")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in SHAPES.items()]
    graph = helper.make_graph([node], "g", values[:2], values[2:])
    broadcast = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.downgrade(broadcast, 5)
    (found,) = raised.value.diagnostics
    assert found.message.startswith("Add cannot go below opset 6, because the nodes that would replace it cannot: ")
    assert "Add does not take int64 below opset 6" in found.message
    assert (found.location, found.help) == ("main/add", "Stop at opset 6.")
    assert splitgraph.downgrade(broadcast, 6).to_opset[""] == 6
