"""The traits of a node of any operator, in the words of the table of operators."""

from __future__ import annotations

import onnx
import pytest

from splitgraph.runtimes.check import examine


def traits(body: str, inputs: str = "float[N, 3, 8, 8] x", opset: int = 17, more: str = "") -> frozenset[str]:
    """The traits of the last node of a model."""
    domains = '"com.microsoft": 1, "ai.onnx.ml": 3'
    text = f'<ir_version: 8, opset_import: ["": {opset}, {domains}]> g ({inputs}) => (y) {more} {{ {body} }}'
    return examine(onnx.parser.parse_model(text)).nodes[-1].own


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (traits("y = Relu(x)", "float[2, 4] x"), {"T=float32", "rank 2"}),
        (traits("y = Relu(x)", "float16[N, 4] x"), {"T=float16", "rank 2", "dim 0 open"}),
        (traits("y = Relu(x)", "float[2, L] x"), {"T=float32", "rank 2", "dim 1 open"}),
        (traits("y = Relu(x)", "float x"), {"T=float32", "scalar"}),
        (traits("y = Relu(x)", "float[] x"), {"T=float32", "rank unknown"}),
        (traits("y = Relu(x)", "float[0, 4] x"), {"T=float32", "rank 2", "empty"}),
        # An attribute at its default says nothing.
        (traits("y = Softmax<axis = -1>(x)", "float[2, 4] x"), {"T=float32", "rank 2"}),
        (traits("y = Softmax<axis = 1>(x)", "float[2, 4] x"), {"T=float32", "rank 2", "axis=1"}),
        (traits("y = Softmax<axis = -2>(x)", "float[2, 4] x"), {"T=float32", "rank 2", "axis<0"}),
        (traits('y = DepthToSpace<blocksize = 2, mode = "CRD">(x)', "float[1, 4, 2, 2] x"),
         {"T=float32", "rank 4", "blocksize>1", "mode=CRD"}),
        (traits("y = MaxPool<kernel_shape = [2, 3], strides = [1, 1], pads = [0, 0, 0, 0]>(x)", "float[1, 4, 8, 8] x"),
         {"T=float32", "rank 4", "kernel_shape", "kernel_shape unequal", "without dilations"}),
        (traits("y, i = MaxPool<kernel_shape = [2, 2]>(x)", "float[1, 4, 8, 8] x"),
         {"T=float32", "rank 4", "kernel_shape", "with Indices", "I=int64", "without dilations", "without pads",
          "without strides"}),
        (traits("y = Add(x, c)", "float[2, 4] x", more="<float[4] c = {1, 2, 3, 4}>"),
         {"T=float32", "rank 2", "broadcast"}),
        (traits("y = Add(x, c)", "float[2, 4] x, float[4] c"), {"T=float32", "rank 2", "B computed", "broadcast"}),
        (traits("y = Cast<to = 7>(x)", "float[2] x"), {"T1=float32", "T2=int64", "rank 1", "to>1"}),
        (traits("y = Reshape(x, s)", "float[2, 4] x, int64[1] s"),
         {"T=float32", "rank 2", "shape computed"}),
        (traits("y = Reshape(x, s)", "float[2, 4] x", more="<int64[1] s = {8}>"), {"T=float32", "rank 2"}),
        # What inference computes before the run is as good as a constant.
        (traits("s = Shape(x) y = Reshape(x, s)", "float[2, 4] x"), {"T=float32", "rank 2"}),
        (traits("s = Shape(x) y = Reshape(x, s)", "float[N, 4] x"),
         {"T=float32", "rank 2", "dim 0 open", "shape from shapes"}),
        # A present input that is empty is not the same as one that is given.
        (traits("y = Resize(x, r, s)", "float[1, 1, 2, 2] x", more="<float[0] r = {}, float[4] s = {1, 1, 2, 2}>"),
         {"T1=float32", "rank 4", "roi empty", "without roi", "with scales", "without sizes"}),
        # All axes of size 1, and other axes.
        (traits("y = Squeeze(x)", "float[1, N] x"), {"T=float32", "rank 2", "dim 1 open", "without axes"}),
        (traits("y = Squeeze(x, a)", "float[1, N] x", more="<int64[1] a = {0}>"),
         {"T=float32", "rank 2", "dim 1 open", "with axes"}),
        # A list of sizes is no data, although it comes first.
        (traits("y = ConstantOfShape(s)", "int64[2] s"), {"T1=int64", "T2=float32", "rank 1", "input computed"}),
        (traits("s = Shape(x) y = ConstantOfShape(s)", "float[N, 4] x"),
         {"T1=int64", "T2=float32", "rank 1", "input from shapes"}),
        (traits("y = Reshape(x, s)", "float x", more="<int64[0] s = {}>"), {"T=float32", "scalar", "shape empty"}),
        (traits("y = com.microsoft.Gelu(x)", "float[2, 4] x"), {"T=float32", "rank 2"}),
    ],
)  # fmt: skip
def test_traits(found: frozenset[str], expected: set[str]) -> None:
    assert found == expected


def test_a_value_of_an_outer_graph_is_known_in_a_body() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (bool c, float[N, 4] x) => (y) <float[4] k = {1, 2, 3, 4}> {
            y = If(c) <then_branch = a () => (float[N, 4] p) { p = Add(x, k) },
                       else_branch = b () => (float[N, 4] q) { q = Neg(x) }> }""")
    found = {node.label: node.own for node in examine(model).nodes}
    assert found["Add-14"] == {"T=float32", "rank 2", "dim 0 open", "broadcast"}
    assert found["Neg-13"] == {"T=float32", "rank 2", "dim 0 open"}
