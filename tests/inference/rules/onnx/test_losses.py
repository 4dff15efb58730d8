"""Losses: refusals, then shapes."""

from __future__ import annotations

from node_models import assert_invalid, each, infer_nodes, shape_text

INVALID = [
    ("labels", "float[4,5,6] x, int64[4] t", "y = NegativeLogLikelihoodLoss(x, t)", 13, "[4]; it must be [4, 6]"),
    ("labels-batch", "float[4,5] x, int64[3] t", "y = NegativeLogLikelihoodLoss(x, t)", 13, "[3]; it must be [4]"),
]


@each(INVALID)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, expected: str) -> None:
    assert_invalid(infer_nodes(inputs, body, opset=opset), expected)


SHAPES = [
    ("loss", "float[N,C,H] x, int64[N,H] t", "y = SoftmaxCrossEntropyLoss(x, t)", 13, "float32[]"),
    (
        "loss-each",
        "float[N,C,H] x, int64[N,H] t",
        'y = NegativeLogLikelihoodLoss<reduction="none">(x, t)',
        13,
        "float32[N, H]",
    ),
    ("loss-logs", "float[N,C,H] x, int64[N,H] t", "z, y = SoftmaxCrossEntropyLoss(x, t)", 13, "float32[N, C, H]"),
]


@each(SHAPES)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset) == expected
