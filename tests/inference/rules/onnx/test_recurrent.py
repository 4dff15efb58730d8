"""LSTM, GRU and RNN: refusals, then shapes."""

from __future__ import annotations

from node_models import assert_invalid, each, infer_nodes, shape_text

INVALID = [
    (
        "lstm-rank",
        "float[2,3] x, float[1,8,3] w, float[1,8,2] r",
        "y = LSTM<hidden_size=2>(x, w, r)",
        14,
        "it must be [T, B, I]",
    ),
    ("gru-gates", "float[2,1,3] x, float[1,8,3] w, float[1,6,2] r", "y = GRU(x, w, r)", 14, "it must be [1, 6, 3]"),
]


@each(INVALID)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, expected: str) -> None:
    assert_invalid(infer_nodes(inputs, body, opset=opset), expected)


SHAPES = [
    (
        "lstm",
        "float[T,B,3] x, float[2,8,3] w, float[2,8,2] r",
        'y = LSTM<hidden_size=2, direction="bidirectional">(x, w, r)',
        14,
        "float32[T, 2, B, 2]",
    ),
    ("gru-last", "float[T,B,3] x, float[1,6,3] w, float[1,6,2] r", "z, y = GRU(x, w, r)", 14, "float32[1, B, 2]"),
    (
        "rnn-batch-first",
        "float[B,T,3] x, float[1,2,3] w, float[1,2,2] r",
        "y = RNN<layout=1>(x, w, r)",
        14,
        "float32[B, T, 1, 2]",
    ),
]


@each(SHAPES)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset) == expected
