"""Reductions and normalization: refusals, then shapes."""

from __future__ import annotations

from node_models import assert_invalid, each, infer_nodes, shape_text

INVALID = [
    ("reduce-axis", "float[2,3] x", "y = ReduceMax<axes=[2]>(x)", 13, "it must be in [-2, 1]"),
    ("arg-max-axis", "float[2,3] x", "y = ArgMax<axis=-3>(x)", 13, "out of range"),
]


@each(INVALID)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, expected: str) -> None:
    assert_invalid(infer_nodes(inputs, body, opset=opset), expected)


SHAPES = [
    ("reduce", "float[A,B,C] x", "y = ReduceMean<axes=[-1], keepdims=0>(x)", 13, "float32[A, B]"),
    ("reduce-all", "float[A,B] x", "y = ReduceMean(x)", 13, "float32[1, 1]"),
    ("reduce-noop", "float[A,B] x", "y = ReduceSum<noop_with_empty_axes=1>(x)", 13, "float32[A, B]"),
    ("reduce-unknown-axes", "float[1,B] x, int64[1] a", "y = ReduceSum(x, a)", 13, "float32[1, ?]"),
    ("reduce-unknown-dropped", "float[1,B] x, int64[1] a", "y = ReduceSum<keepdims=0>(x, a)", 13, "float32[...]"),
    ("reduce-to-scalar", "float[] x", "y = ReduceSum<keepdims=0>(x)", 13, "float32[]"),
    ("arg-max", "float[A,B] x", "y = ArgMax<axis=1, keepdims=0>(x)", 13, "int64[A]"),
    ("layer-norm", "float[A,B,4] x, float[4] s", "z, y, d = LayerNormalization(x, s)", 17, "float32[A, B, 1]"),
    ("rms-norm", "float16[A,B,4] x, float[4] s", "y = RMSNormalization(x, s)", 23, "float32[A, B, 4]"),
    ("layer-norm-optimized", "float[A,B,4] x, float[4] s", "z, y = LayerNormalization(x, s)", 11, "float32[A, B, 1]"),
]


@each(SHAPES)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset) == expected
