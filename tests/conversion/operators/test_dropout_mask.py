"""Dropout's mask on its way over opset 10, where it became boolean."""

from __future__ import annotations

import onnx
import pytest
from known_opsets import known_pairs
from onnx import TensorProto, helper

import splitgraph

FLOAT, BOOL = TensorProto.FLOAT, TensorProto.BOOL


def dropout(opset: int, outputs: dict[str, int]) -> onnx.ModelProto:
    """A Dropout with a mask; outputs: of the model, with their types."""
    node = helper.make_node("Dropout", ["x"], ["y", "mask"], "node", ratio=0.25)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [2, 3])],
        [helper.make_tensor_value_info(name, dtype, [2, 3]) for name, dtype in outputs.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize(("opset", "target"), known_pairs([(7, 10), (9, 11), (9, 18), (7, 28), (11, 18)]))
def test_a_mask_that_nobody_reads_goes(opset: int, target: int) -> None:
    converted = splitgraph.upgrade(dropout(opset, {"y": FLOAT}), target).model
    onnx.checker.check_model(converted, full_check=True)
    assert list(converted.graph.node[0].output)[:1] == ["y"]


def test_a_mask_that_is_read_is_cast() -> None:
    converted = splitgraph.upgrade(dropout(7, {"y": FLOAT, "mask": FLOAT}), 10).model
    onnx.checker.check_model(converted, full_check=True)
    assert [node.op_type for node in converted.graph.node] == ["Dropout", "Cast"]
    assert converted.graph.node[1].input[0] == converted.graph.node[0].output[1]


@pytest.mark.parametrize(("opset", "dtype"), [(7, FLOAT), (9, FLOAT), (10, BOOL)])
def test_a_mask_that_is_read_is_refused_at_12(opset: int, dtype: int) -> None:
    """The mask that a Dropout gives without training is specified only from there on; it was once lost on the way."""
    with pytest.raises(splitgraph.ConversionError, match="specified only from it on"):
        splitgraph.upgrade(dropout(opset, {"y": FLOAT, "mask": dtype}), 18)
