"""What the dimensions of an operator's inputs demand of each other, and what they do not."""

from __future__ import annotations

import onnx
import pytest
from node_models import infer_nodes, shape_text

LSTM = "float[T,N,3] x, float[1,16,3] w, float[1,16,4] r"
GRU = "float[T,N,3] x, float[1,12,3] w, float[1,12,4] r"
RNN = "float[N,T,3] x, float[2,4,3] w, float[2,4,4] r"
BOTH = 'direction="bidirectional"'
QUERIES = "float[A,4,S,8] q, float[B,4,K,8] k, float[D,4,L,8] v"

# What must hold, and in which operator's inputs.
DEMANDED = [
    # A state of a fixed batch demands that batch: the example of a GRU for one speaker at a time.
    (f"{GRU}, float[1,1,4] h", 'y, s = GRU<hidden_size=4>(x, w, r, "", "", h)', ["N == 1"]),
    (f"{LSTM}, float[1,B,4] h", 'y, s, c = LSTM(x, w, r, "", "", h)', ["B == N"]),
    (f"{LSTM}, float[1,1,4] h, float[1,1,4] c", 'y, s, t = LSTM(x, w, r, "", "", h, c)', ["N == 1"]),
    (f"{LSTM}, float[1,N,H] c", 'y, s, t = LSTM(x, w, r, "", "", "", c)', ["H == 4"]),
    (f"{LSTM}, float[D,P] p", 'y, s, t = LSTM(x, w, r, "", "", "", "", p)', ["D == 1", "P == 12"]),
    (f"{LSTM}, float[D,B] b", "y, s, t = LSTM(x, w, r, b)", ["D == 1", "B == 32"]),
    (f"{GRU}, float[1,B] b", "y, s = GRU(x, w, r, b)", ["B == 24"]),
    (f"{GRU}, int32[5] l", 'y, s = GRU(x, w, r, "", l)', ["N == 5"]),
    (f"{RNN}, float[1,2,4] h", f'y, s = RNN<layout=1, {BOTH}>(x, w, r, "", "", h)', ["N == 1"]),
    (f"{RNN}, float[N,D,4] h", f'y, s = RNN<layout=1, {BOTH}>(x, w, r, "", "", h)', ["D == 2"]),
    ("float[T,N,3] x, float[1,R,3] w, float[1,Q,4] r", "y, s = RNN(x, w, r)", ["R == 4", "Q == 4"]),
    ("float[N,C] x, float[5] s, float[5] b", "y = LayerNormalization(x, s, b)", ["C == 5"]),
    ("float[N,C,L] x, float[4,1] s", "y = LayerNormalization<axis=1>(x, s)", ["C == 4"]),
    ("float[N,C] x, float[5] s", "y = RMSNormalization(x, s)", ["C == 5"]),
    ("float[N,C,L] x, float[5,1] s", "y = PRelu(x, s)", ["C == 5"]),
    ("float[N,C] x, float[5] s", "y = PRelu(x, s)", ["C == 5"]),
    ("float[N,4,L] x, float[5] s", "y = PRelu(x, s)", ["L == 5"]),
    ("float[N,C,L] x, float[A] s, float[B] b", "y = InstanceNormalization(x, s, b)", ["A == C", "B == C"]),
    ("float[N,C,L] x, float[A] s, float[B] b", "y = GroupNormalization<num_groups=2>(x, s, b)", ["A == C", "B == C"]),
    ("float[N,4,L] x, float[4,3,2] w, float[B] b", "y = ConvTranspose<group=2>(x, w, b)", ["B == 6"]),
    ("float[A,S,F] b, float[B,C,T] s", "y = NonMaxSuppression(b, s)", ["F == 4", "A == B", "S == T"]),
    ("float[N,4] x, int64[2,A] i, float[B,D] u", "y = ScatterElements(x, i, u)", ["B == 2", "A == D", "4 >= A"]),
    ("float[N,C] x, int64[A,B] i", "y = GatherElements(x, i)", ["C >= B"]),
    ("float[N,C] x, int64[A,B] i", "y = GatherElements<axis=-1>(x, i)", ["N >= A"]),
    ("float[N,4] x, int64[A,1] i, float[B,D] u", "y = ScatterND(x, i, u)", ["A == B", "D == 4"]),
    ("float[N,C,L] x, int64[N,A,L] i", "y = MaxUnpool<kernel_shape=[2]>(x, i)", ["A == C"]),
    ("float[T,N,3] x, int64[B] l", "y = ReverseSequence(x, l)", ["B == N"]),
    ("float[B,T,3] x, int64[5] l", "y = ReverseSequence<batch_axis=0, time_axis=1>(x, l)", ["B == 5"]),
    ("float[N,3,8,8] x, float[R,K] r", "y = MaxRoiPool<pooled_shape=[2,2]>(x, r)", ["K == 5"]),
    (QUERIES, "y = Attention(q, k, v)", ["A == B", "A == D", "K == L"]),
    (
        f"{QUERIES}, float[1,4,P,8] p, float[1,4,O,8] o",
        'y, a, b = Attention(q, k, v, "", p, o)',
        ["A == B", "A == D", "A == 1", "O == P"],
    ),
    ("float[A,4,S,8] x, float[M,4] c, float[L,4] s, int64[B,K] i", "y = RotaryEmbedding(x, c, s, i)", ["L == M"]),
]


@pytest.mark.parametrize(("inputs", "body", "wanted"), DEMANDED, ids=[body for _, body, _ in DEMANDED])
def test_what_inputs_demand_of_each_other_is_an_obligation(inputs: str, body: str, wanted: list[str]) -> None:
    found = infer_nodes(inputs, body, opset=23)
    assert found.ok, found.diagnostics
    told = {str(each) for each in found.obligations}
    assert set(wanted) <= told, told


FREE = [
    (LSTM, "y, s, t = LSTM(x, w, r)", []),
    ("float[N,C] x, float[1] s, float[A] b", "y = LayerNormalization(x, s, b)", []),
    # The slope may be one for each channel, or along the last axis.
    ("float[N,C,L] x, float[5] s", "y = PRelu(x, s)", []),
    ("float[N,C,L] x, float[A,1] s", "y = PRelu(x, s)", []),
    (f"{LSTM}, float[1,N,4] h", 'y, s, t = LSTM(x, w, r, "", "", h)', []),
    (f"{GRU}, float[1,24] b, int32[N] l", "y, s = GRU<linear_before_reset=1>(x, w, r, b, l)", []),
    ("float[N,4,L] x, float[4] s, float[4] b", "y = InstanceNormalization(x, s, b)", []),
    ("float[N,C,L] x, float[C,1] s", "y = PRelu(x, s)", []),
    ("float[N,4] x, float[4,M] w, float[1] c", "y = Gemm(x, w, c)", []),
    ("float[N,C,L] x, float[1] s, float[1] b", "y = LayerNormalization(x, s, b)", []),
    ("float[N,C] x, int64[A,C] i", "y = GatherElements(x, i)", []),
    ("float[A,S,8] x, float[B,1,8] z", "y = Add(x, z)", []),
    ("float[N,C] x, bool[K] c", "y = Compress<axis=0>(x, c)", []),
    ("float[N,4] x, int64[K,0] i, float[K,N,4] u", "y = ScatterND(x, i, u)", []),
]


@pytest.mark.parametrize(("inputs", "body", "wanted"), FREE, ids=[body for _, body, _ in FREE])
def test_what_may_broadcast_or_agrees_already_is_none(inputs: str, body: str, wanted: list[str]) -> None:
    found = infer_nodes(inputs, body, opset=22)
    assert (found.ok, [str(each) for each in found.obligations]) == (True, wanted), found.diagnostics


MASKED = "float[2,4,8] q, float[2,6,8] k, float[2,6,8] v, float[{}] m"
HEADED = "y = Attention<q_num_heads=2, kv_num_heads=2>(q, k, v, m)"
CONTRADICTED = [
    (MASKED.format("5,6"), HEADED, "attn_mask has dimension 5 on axis 0; it must be 1 or 4"),
    (MASKED.format("4,7"), HEADED, "attn_mask has dimension 7 on axis 1; it must be 1 or 6"),
    (MASKED.format("3,4,6"), HEADED, "attn_mask has dimension 3 on axis 0; it must be 1 or 2"),
    (MASKED.format("3,2,4,6"), HEADED, "attn_mask has dimension 3 on axis 0; it must be 1 or 2"),
    ("float[5,2,3] x, int64[5,7,3] i", "y = GatherElements<axis=0>(x, i)", "must be at most that of the data, 2"),
    ("float[1,3] x, int64[2,3] i", "y = GatherElements<axis=1>(x, i)", "must be at most that of the data, 1"),
    (
        "float[T,2,3] x, float[1,12,3] w, float[1,12,4] r, float[1,1,4] h",
        'y = GRU(x, w, r, "", "", h)',
        "initial_h (input 5) has the shape [1, 1, 4]; it must be [1, 2, 4]",
    ),
    (f"{LSTM}, float[1,31] b", "y = LSTM(x, w, r, b)", "B (input 3) has the shape [1, 31]; it must be [1, 32]"),
    (
        f"{LSTM}, float[2,N,4] h",
        'y = LSTM(x, w, r, "", "", h)',
        "initial_h (input 5) has the shape [2, N, 4]; it must be [1, N, 4]",
    ),
    (
        f"{LSTM}, float[1,13] p",
        'y = LSTM(x, w, r, "", "", "", "", p)',
        "P (input 7) has the shape [1, 13]; it must be [1, 12]",
    ),
    (
        "float[1,4,8] x, float[3] s, float[4] b",
        "y = InstanceNormalization(x, s, b)",
        "scale (input 1) has the shape [3]; it must be [4]",
    ),
    ("float[1,5,8] x, float[5] s, float[5] b", "y = GroupNormalization<num_groups=2>(x, s, b)", "not divisible by 2"),
    ("float[1,3,4] b, float[1,2,5] s", "y = NonMaxSuppression(b, s)", "[1, 2, 5]; it must be [1, C, 3]"),
    (
        "float[3,4] x, int64[2,2] i, float[2,3] u",
        "y = ScatterElements(x, i, u)",
        "has dimension 3 on axis 1; it must be 2",
    ),
]


@pytest.mark.parametrize(("inputs", "body", "said"), CONTRADICTED, ids=[said for _, _, said in CONTRADICTED])
def test_inputs_that_cannot_agree_are_a_finding(inputs: str, body: str, said: str) -> None:
    answer = shape_text(inputs, body, opset=23 if "Attention" in body else 21)
    assert answer.startswith("SG302 ")
    assert said in answer


def test_scales_are_those_of_groups_until_version_20() -> None:
    """onnx's document: `scale` of shape (num_groups) at 18, of shape (C) at 21."""
    inputs, body = "float[N,8,L] x, float[A] s, float[A] b", "y = GroupNormalization<num_groups=2>(x, s, b)"
    found = [infer_nodes(inputs, body, opset=opset).obligations for opset in (18, 21)]
    assert [[str(each) for each in obligations] for obligations in found] == [["A == 2"], ["A == 8"]]
    assert "num_groups" in onnx.defs.get_schema("GroupNormalization", 18).inputs[1].description
