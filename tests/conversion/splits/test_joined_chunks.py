"""Slices with computed bounds, as the old exporter of PyTorch writes chunk, become one Split whose bounds are still
computed: a node that lost its last reader stays where the Split reads it.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import splitgraph

FLOAT = TensorProto.FLOAT


class Chunks:
    """The nodes of a chunk: Shape, Gather, Add and Div give the size, then a Mul and a Slice for each part."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.held: list[onnx.TensorProto] = []

    def constant(self, number: int) -> str:
        name = f"c{len(self.held)}"
        self.held.append(numpy_helper.from_array(np.array([number], np.int64), name))
        return name

    def node(self, op_type: str, inputs: list[str], output: str, **attributes: int) -> str:
        self.nodes.append(helper.make_node(op_type, inputs, [output], **attributes))
        return output

    def chunk(self, data: str, parts: int, tag: str = "") -> list[str]:
        axis = self.constant(1)
        dim = self.node("Gather", [self.node("Shape", [data], f"{tag}shape"), axis], f"{tag}dim")
        raised = self.node("Add", [dim, self.constant(parts - 1)], f"{tag}raised")
        size = self.node("Div", [raised, self.constant(parts)], f"{tag}size")
        start, made = self.constant(0), list[str]()
        for part in range(parts):
            end = self.node("Mul", [size, self.constant(part + 1)], f"{tag}e{part}")
            made.append(self.node("Slice", [data, start, end, axis], f"{tag}y{part}"))
            start = end
        return made

    def model(self, outputs: list[str], opset: int = 17, more: tuple[str, ...] = ()) -> onnx.ModelProto:
        values = [helper.make_tensor_value_info(name, FLOAT, [2, None]) for name in outputs]
        values += [helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in more]
        data = helper.make_tensor_value_info("x", FLOAT, [2, "N"])
        graph = helper.make_graph(self.nodes, "g", [data], values, self.held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def chunked(parts: int, opset: int = 17) -> onnx.ModelProto:
    made = Chunks()
    return made.model(made.chunk("x", parts), opset)


def in_layers() -> onnx.ModelProto:
    made, data = Chunks(), "x"
    for layer in range(3):
        parts = made.chunk(data, 4, f"l{layer}_")
        made.nodes.append(helper.make_node("Concat", parts[::-1], [f"x{layer}"], axis=1))
        data = f"x{layer}"
    return made.model([data])


def with_a_bound_that_is_read() -> onnx.ModelProto:
    made = Chunks()
    parts = made.chunk("x", 4)
    made.nodes.append(helper.make_node("Identity", ["e1"], ["bound"]))
    return made.model(parts, more=("bound",))


def with_bounds_as_outputs() -> onnx.ModelProto:
    made = Chunks()
    return made.model(made.chunk("x", 3), more=("e0", "e1"))


def with_sizes_first() -> onnx.ModelProto:
    """All bounds before all slices."""
    made = Chunks()
    parts = made.chunk("x", 5)
    made.nodes.sort(key=lambda node: node.op_type == "Slice")
    return made.model(parts)


def in_a_function() -> onnx.ModelProto:
    made = Chunks()
    parts = made.chunk("x", 4)
    held = [helper.make_node("Constant", [], [each.name], value=each) for each in made.held]
    imports = [helper.make_opsetid("", 17)]
    function = helper.make_function("own", "Chunk", ["x"], parts, [*held, *made.nodes], imports)
    model = Chunks().model(parts)
    model.graph.node.append(helper.make_node("Chunk", ["x"], parts, domain="own"))
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("own", 1))
    return model


MODELS = {
    "2 parts": chunked(2),
    "3 parts": chunked(3),
    "4 parts": chunked(4),
    "7 parts": chunked(7),
    "12 parts": chunked(12),
    "at opset 13": chunked(4, 13),
    "at opset 18": chunked(4, 18),
    "in layers": in_layers(),
    "a bound that a node reads": with_a_bound_that_is_read(),
    "bounds that are outputs": with_bounds_as_outputs(),
    "sizes first": with_sizes_first(),
    "in a function": in_a_function(),
}


def run(model: onnx.ModelProto, size: int) -> list[np.ndarray]:
    given = np.arange(2 * size, dtype=np.float32).reshape(2, size)
    found: list[np.ndarray] = ReferenceEvaluator(model).run(None, {"x": given})
    return found


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("explicit", [False, True])
def test_chunks_become_one_split(model: onnx.ModelProto, explicit: bool) -> None:
    result = splitgraph.convert(model, to="split", explicit_lengths=explicit).model
    onnx.checker.check_model(result)
    nodes = [node for body in (result.graph, *result.functions) for node in body.node]
    assert "Slice" not in {node.op_type for node in nodes}
    assert splitgraph.infer(result).ok
    for size in (84, 85, 5, 1, 0):
        for before, after in zip(run(model, size), run(result, size), strict=True):
            np.testing.assert_array_equal(before, after)


def test_only_what_nobody_reads_is_removed() -> None:
    """The last bound has no other reader than the last Slice; the first ones are read by the Split."""
    names = {name for node in splitgraph.convert(chunked(4), to="split").model.graph.node for name in node.output}
    assert {"e0", "e1", "e2"} <= names
    assert "e3" not in names


@pytest.mark.parametrize("to", ["slice", "variadic-split"])
def test_other_forms_keep_the_slices(to: str) -> None:
    model = chunked(4)
    assert splitgraph.convert(model, to=to).model == model
