"""Random numbers and EyeLike: refusals, then shapes."""

from __future__ import annotations

from node_models import assert_invalid, each, infer_nodes, shape_text

INVALID = [
    ("multinomial", "float[4] x", "y = Multinomial(x)", 18, "rank 1; it must have rank 2"),
    ("eye", "float[4] x", "y = EyeLike(x)", 18, "rank 1; it must have rank 2"),
    ("random-type", "float[4] x", "y = RandomNormal<shape=[2], dtype=99>()", 18, "99, which is not an element type"),
    ("random-shape", "float[4] x", "y = RandomNormal<shape=[-2]>()", 18, "negative dimension"),
]


@each(INVALID)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, expected: str) -> None:
    assert_invalid(infer_nodes(inputs, body, opset=opset), expected)


SHAPES = [
    ("bernoulli", "float[N,4] x", "y = Bernoulli<dtype=6>(x)", 15, "int32[N, 4]"),
    ("random", "float[N,4] x", "y = RandomUniform<shape=[2,3], dtype=11>()", 1, "float64[2, 3]"),
    ("random-like", "int64[N,4] x", "y = RandomNormalLike<dtype=1>(x)", 1, "float32[N, 4]"),
    ("multinomial", "float[N,4] x", "y = Multinomial<sample_size=7>(x)", 7, "int32[N, 7]"),
    ("eye", "float[N,4] x", "y = EyeLike<dtype=7>(x)", 9, "int64[N, 4]"),
]


@each(SHAPES)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset) == expected
