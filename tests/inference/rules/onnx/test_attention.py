"""Attention and the operators beside it: refusals, then shapes."""

from __future__ import annotations

from node_models import assert_invalid, each, infer_nodes, shape_text

INVALID = [
    ("attention-ranks", "float[2,3,4,8] q, float[2,4,24] k", "y = Attention(q, k, k)", 23, "the ranks [3, 4]"),
    ("attention-heads", "float[2,4,24] q", "y = Attention(q, q, q)", 23, "'q_num_heads'"),
    (
        "attention-sizes",
        "float[2,3,4,8] q, float[2,3,6,7] k",
        "y = Attention(q, k, k)",
        23,
        "[2, 3, 6, 7]; it must be [2, N, S, 8]",
    ),
    (
        "attention-lengths",
        "float[2,3,4,8] q, float[2,3,6,8] k, float[2,3,5,8] v",
        "y = Attention(q, k, v)",
        23,
        "[2, 3, 5, 8]; it must be [2, 3, 6, E]",
    ),
    (
        "attention-split",
        "float[2,4,25] q",
        "y = Attention<q_num_heads=3, kv_num_heads=3>(q, q, q)",
        23,
        "25 is not divisible by 3",
    ),
    (
        "causal-conv-activation",
        "float[2,4,9] x, float[4,1,3] w",
        'y, s = CausalConvWithState<activation="relu">(x, w)',
        27,
        "it must be one of silu, swish, none",
    ),
]


@each(INVALID)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, expected: str) -> None:
    assert_invalid(infer_nodes(inputs, body, opset=opset), expected)


SHAPES = [
    (
        "attention",
        "float[B,H,S,D] q, float[B,H,L,D] k, float[B,H,L,E] v",
        "y = Attention(q, k, v)",
        23,
        "float32[B, H, S, E]",
    ),
    (
        "attention-flat",
        "float[B,S,24] q, float[B,L,12] k, float[B,L,20] v",
        "y = Attention<q_num_heads=4, kv_num_heads=2>(q, k, v)",
        23,
        "float32[B, S, 40]",
    ),
    (
        "attention-past",
        "float[B,H,S,D] q, float[B,H,P,D] p",
        "z, y, v = Attention(q, q, q, , p, p)",
        23,
        "float32[B, H, P + S, D]",
    ),
    (
        "attention-weights",
        "float[B,S,24] q, float[B,L,12] k",
        "z, a, b, y = Attention<q_num_heads=4, kv_num_heads=2>(q, k, k)",
        23,
        "float32[B, 4, S, L]",
    ),
    (
        "linear-attention",
        "float[B,T,16] q, float[B,T,8] k, float[B,T,12] v",
        'y, s = LinearAttention<q_num_heads=4, kv_num_heads=2, update_rule="linear">(q, k, v)',
        27,
        "float32[B, T, 24]",
    ),
    (
        "linear-attention-state",
        "float[B,T,16] q, float[B,T,8] k, float[B,T,12] v",
        's, y = LinearAttention<q_num_heads=4, kv_num_heads=2, update_rule="linear">(q, k, v)',
        27,
        "float32[B, 2, 4, 6]",
    ),
    (
        "linear-attention-open-values",
        "float[] q, float[] k, float[] v, float[2,4,4,6] p",
        "a = Relu(q) b = Relu(k) c = Relu(v) "
        'y, s = LinearAttention<q_num_heads=4, kv_num_heads=4, update_rule="linear">(a, b, c, p)',
        27,
        "float32[2, unk0, 24]",
    ),
    ("causal-conv", "float[B,C,T] x, float[C,1,4] w", "s, y = CausalConvWithState(x, w)", 27, "float32[B, C, 3]"),
    (
        "rotary",
        "float[B,H,S,8] x, float[9,4] c, int64[B,S] p",
        "y = RotaryEmbedding(x, c, c, p)",
        23,
        "float32[B, H, S, 8]",
    ),
]


@each(SHAPES)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset) == expected
