"""Splits of one dimension read the same lengths, computed once, where the model's inputs give it its size."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from conversion.operators.execute import Array, assert_same, run
from onnx import parser

import splitgraph


def model(text: str, opset: int = 18) -> onnx.ModelProto:
    made: onnx.ModelProto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')
    return made


def lengths_read(graph: onnx.GraphProto) -> list[str]:
    return [node.input[1] if len(node.input) > 1 else "" for node in graph.node if node.op_type == "Split"]


def converted(before: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    after: onnx.ModelProto = splitgraph.downgrade(before, opset).model
    onnx.checker.check_model(after, full_check=True)
    return after


def assert_equal(before: onnx.ModelProto, after: onnx.ModelProto, **feeds: Array) -> None:
    assert_same(run(before, feeds), run(after, feeds))


CHAIN = """
chain (float[N, 4] x) => (float[A, 4] y0, float[B, 4] y1) {
    a, b = Split <axis = 0, num_outputs = 2> (x)
    c = Concat <axis = 0> (b, a)
    d, e = Split <axis = 0, num_outputs = 2> (c)
    f = Concat <axis = 0> (e, d)
    y0, y1 = Split <axis = 0, num_outputs = 2> (f)
}"""


def test_one_dimension_is_computed_once() -> None:
    before = model(CHAIN)
    after = converted(before, 17)
    assert len(set(lengths_read(after.graph))) == 1
    assert Counter(node.op_type for node in after.graph.node)["Shape"] == 1
    # onnxruntime's Split-18 refuses dimensions below the number of parts.
    for size in (2, 5, 6):
        assert_equal(before, after, x=np.arange(size * 4, dtype=np.float32).reshape(size, 4))


def test_it_goes_up_again_as_it_is() -> None:
    after = splitgraph.upgrade(converted(model(CHAIN), 13), 18)
    assert len(set(lengths_read(after.model.graph))) == 1
    assert [change.after for change in after.changes] == ["Split-18"] * 3
    assert_equal(model(CHAIN), after.model, x=np.ones((7, 4), np.float32))


NOT_SHARED = {
    "another dimension": """
g (float[N, 4] x, float[M, 4] z) => (float[A, 4] a, float[B, 4] b, float[C, 4] c, float[D, 4] d) {
    a, b = Split <axis = 0, num_outputs = 2> (x)
    c, d = Split <axis = 0, num_outputs = 2> (z)
}""",
    "a dimension of an input whose default has another size": """
g (float[N, 4] x, float[N, 4] w) => (float[A, 4] a, float[B, 4] b, float[C, 4] c, float[D, 4] d)
<float[2, 4] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
    a, b = Split <axis = 0, num_outputs = 2> (w)
    c, d = Split <axis = 0, num_outputs = 2> (x)
}""",
    "another number of parts": """
g (float[N, 4] x, float[N, 4] z) => (float[A, 4] a, float[B, 4] b, float[C, 4] c, float[D, 4] d, float[E, 4] e) {
    a, b = Split <axis = 0, num_outputs = 2> (x)
    c, d, e = Split <axis = 0, num_outputs = 3> (z)
}""",
    "names that the author gave to what only a run knows": """
g (float[N] x, float[M] z) => (int64[1, A] a, int64[1, B] b, int64[1, C] c, int64[1, D] d)
<int64[1, found] i, int64[1, found] j> {
    i = NonZero(x)
    j = NonZero(z)
    a, b = Split <axis = 1, num_outputs = 2> (i)
    c, d = Split <axis = 1, num_outputs = 2> (j)
}""",
    "a size that only a run knows": """
g (float[N] x) => (int64[1, A] a, int64[1, B] b, int64[1, C] c, int64[1, D] d) {
    i = NonZero(x)
    a, b = Split <axis = 1, num_outputs = 2> (i)
    j = Neg(i)
    c, d = Split <axis = 1, num_outputs = 2> (j)
}""",
}


@pytest.mark.parametrize("text", NOT_SHARED.values(), ids=NOT_SHARED)
def test_lengths_of_their_own(text: str) -> None:
    before = model(text)
    after = converted(before, 17)
    read = lengths_read(after.graph)
    assert len(set(read)) == len(read) == 2
    for each in (before, after):
        # onnxruntime, too, takes names for sizes: it gives both values the same memory, and fails.
        del each.graph.value_info[:]
    x = np.array([1, 0, 2, 3, 0, 5], np.float32)
    held = {tensor.name for tensor in before.graph.initializer}
    feeds = {value.name: x for value in before.graph.input if value.name not in held}
    if "M" in text:
        feeds["z"] = np.array([1, 1, 1], np.float32)
    if len(before.graph.input[0].type.tensor_type.shape.dim) == 2:
        feeds = {name: np.outer(value, np.ones(4, np.float32)) for name, value in feeds.items()}
    assert_equal(before, after, **feeds)


def test_slices_have_bounds_of_their_own() -> None:
    """Nothing checks the bounds of a Slice against the dimension, as Split does with its lengths."""
    after = converted(model(CHAIN), 12)
    assert Counter(node.op_type for node in after.graph.node)["Shape"] == 3


BRANCHES = """
g (float[N, 4] x, bool c) => (float[A, 4] a, float[B, 4] b, float[C, 4] y) {
    a, b = Split <axis = 0, num_outputs = 2> (x)
    y = If (c) <
        then_branch = yes () => (float[D, 4] u) { u, v = Split <axis = 0, num_outputs = 2> (x) },
        else_branch = no () => (float[E, 4] w) { t, w = Split <axis = 0, num_outputs = 2> (x) }
    >
}"""


def test_each_graph_has_its_own() -> None:
    before = model(BRANCHES)
    after = converted(before, 17)
    bodies = [attribute.g for node in after.graph.node if node.op_type == "If" for attribute in node.attribute]
    assert [len(set(lengths_read(graph))) for graph in (after.graph, *bodies)] == [1, 1, 1]
    assert [sum(node.op_type == "Shape" for node in graph.node) for graph in (after.graph, *bodies)] == [1, 1, 1]
    for condition in (True, False):
        assert_equal(before, after, x=np.ones((5, 4), np.float32), c=np.array(condition))


def test_each_call_of_a_function_has_its_own() -> None:
    before = parser.parse_model("""
<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
g (float[N, 4] x, float[M, 4] z) => (float[A, 4] a, float[B, 4] b) {
    a = own.halves(x)
    b = own.halves(z)
}
<domain: "own", opset_import: ["" : 18]>
halves (x) => (y) {
    a, b = Split <axis = 0, num_outputs = 2> (x)
    c = Concat <axis = 0> (b, a)
    d, e = Split <axis = 0, num_outputs = 2> (c)
    y = Concat <axis = 0> (e, d)
}""")
    after = splitgraph.downgrade(before, 17).model
    read = [node.input[1] for node in after.functions[0].node if node.op_type == "Split"]
    assert len(set(read)) == 2
    assert_equal(before, after, x=np.ones((5, 4), np.float32), z=np.ones((2, 4), np.float32))
