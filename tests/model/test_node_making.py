"""Nodes and attributes are made without onnx's helpers, exactly as those make them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from splitgraph.model.attributes import make_attribute, make_node

TENSOR = numpy_helper.from_array(np.ones(3, np.float32), "held")
GRAPH = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [], [])
ATTRIBUTES = [
    *(1, True, -(2**63), 2.5, -0.0, "text", b"\xff\x00", "", TENSOR, GRAPH, onnx.TypeProto()),
    *([1, 2], (1.5, 2), [1, 2.5], ["a", b"b"], [TENSOR, TENSOR], [GRAPH], range(3)),
    *(np.int64(3), np.float32(0.3), [np.int32(3)], np.array([1, 2]), np.array([0.5])),
]


@pytest.mark.parametrize("value", ATTRIBUTES, ids=lambda value: type(value).__name__)
def test_an_attribute_is_the_one_that_onnx_makes(value: Any) -> None:
    made = make_attribute("key", value)
    assert made.SerializeToString() == helper.make_attribute("key", value).SerializeToString()


@pytest.mark.parametrize("value", [None, [1, "a"], object()], ids=lambda value: type(value).__name__)
def test_what_is_no_attribute_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="an attribute cannot hold"):
        make_attribute("key", value)


@pytest.mark.parametrize("value", [[], (), {}, np.array([])], ids=lambda value: type(value).__name__)
def test_an_empty_list_has_no_type(value: Any) -> None:
    with pytest.raises(ValueError, match="'key' would be an empty list"):
        make_attribute("key", value)


def test_a_node_is_the_one_that_onnx_makes() -> None:
    given = {"z": 1, "a": [1, 2], "missing": None}
    made = make_node("Split", ["x", ""], ["a", "b"], name="n", domain="d", **given)
    assert made == helper.make_node("Split", ["x", ""], ["a", "b"], name="n", domain="d", **given)
    graph = onnx.GraphProto()
    assert make_node("Relu", ["x"], ["y"], graph=graph) is graph.node[0]
