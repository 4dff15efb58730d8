"""Losses: refusals, then shapes."""

from __future__ import annotations

import pytest
from node_models import NEWEST_OPSET, infer_nodes, shape_text

INVALID = [
    ("labels", "float[4,5,6] x, int64[4] t", "y = NegativeLogLikelihoodLoss(x, t)", 13, "they must have rank"),
    ("labels-batch", "float[4,5] x, int64[3] t", "y = NegativeLogLikelihoodLoss(x, t)", 13, "equal, not 4 and 3"),
]
INVALID_HERE = [case for case in INVALID if case[3] <= NEWEST_OPSET]


@pytest.mark.parametrize(
    ("inputs", "body", "opset", "said"), [c[1:] for c in INVALID_HERE], ids=[c[0] for c in INVALID_HERE]
)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, said: str) -> None:
    analysis = infer_nodes(inputs, body, opset=opset)
    (found,) = analysis.diagnostics
    assert found.code == "SG302"
    assert said in found.message
    assert analysis.types["y"].shape is None


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
SHAPES_HERE = [case for case in SHAPES if case[3] <= NEWEST_OPSET]


@pytest.mark.parametrize(
    ("inputs", "body", "opset", "expected"), [c[1:] for c in SHAPES_HERE], ids=[c[0] for c in SHAPES_HERE]
)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset) == expected
