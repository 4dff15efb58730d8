"""Models that differ in something hard to see: sums and positions that grow with a length, and positions in sequences.

This file continues the table of `test_hidden_differences`.
"""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph

from .model_pairs import Pair, find_difference, show_difference

F, I32, I64 = np.float32, np.int32, np.int64
VECTORS = "float[2] a, float[2] b, float[2] c, int64 k => float[2] y"
ABC = {"a": [1, 2], "b": [3, 4], "c": [5, 6]}
PICK = "s = SequenceConstruct({}) y = SequenceAt(s, k)"
LINE = "float[N] x, int64 k => float[M] y"
NARROW = "q = Cast<to = {}>(p) y = Cast<to = 7>(q)"
PLACE, WHOLE = "float[N] x => int64[1] y", "bool[N] x => int32[1] y"
COUNT = "c = Cast<to = 6>(x) "

POSITIONS = {
    "two elements are exchanged": Pair(VECTORS, PICK.format("a, b, c"), PICK.format("a, c, b"), ABC | {"k": 1}),
    "the last element is negative": Pair(
        VECTORS, PICK.format("a, b, c"), "n = Neg(c) " + PICK.format("a, b, n"), ABC | {"k": 2}
    ),
    "always the first element": Pair(
        LINE,
        "s = SplitToSequence<axis = 0>(x) y = SequenceAt(s, k)",
        "s = SplitToSequence<axis = 0>(x) y = SequenceAt(s, z)",
        {"x": [1, 2, 3], "k": 1},
        {"z": I64(0)},
    ),
    "always the first element goes": Pair(
        LINE,
        "s = SplitToSequence<axis = 0>(x) e = SequenceErase(s, k) y = ConcatFromSequence<axis = 0>(e)",
        "s = SplitToSequence<axis = 0>(x) e = SequenceErase(s, z) y = ConcatFromSequence<axis = 0>(e)",
        {"x": [1, 2, 3], "k": 1},
        {"z": I64(0)},
    ),
}

LENGTHS = {
    "a count of more than three": Pair(
        WHOLE,
        COUNT + "y = ReduceSum(c)",
        COUNT + "r = ReduceSum(c) y = Min(r, most)",
        {"x": [True] * 5},
        {"most": I32(3)},
    ),
    "the place of a peak in 8 bits": Pair(
        PLACE, "y = ArgMax<axis = 0>(x)", "p = ArgMax<axis = 0>(x) " + NARROW.format(3), {"x": np.arange(200)}
    ),
    "the place of a peak beyond 500": Pair(
        PLACE,
        "y = ArgMax<axis = 0>(x)",
        "p = ArgMax<axis = 0>(x) y = Min(p, most)",
        {"x": np.arange(600)},
        {"most": I64(500)},
    ),
    "places of True in 8 bits": Pair(
        "bool[N] x => int64[1, M] y", "y = NonZero(x)", "p = NonZero(x) " + NARROW.format(3), {"x": [True] * 140}
    ),
}
# A length that has a name is drawn in all inputs at once, also where they are computed.
TWO = "float[N] x, float[N] w => float[M] y"
NAMED = {
    "a sum of products": Pair(
        "float[N] x, float[N] w => float y",
        "y = MatMul(x, w)",
        "m = MatMul(x, w) y = Min(m, most)",
        {"x": np.ones(900), "w": np.ones(900)},
        {"most": F(800)},
    ),
    "a sum of products in 16 bits": Pair(
        "float[N] x, float[N] w => float y",
        "y = MatMul(x, w)",
        'm = Einsum<equation = "i,i->">(x, w) h = Cast<to = 10>(m) y = Cast<to = 1>(h)',
        {"x": np.ones(2049), "w": np.ones(2049)},
    ),
    "a sum of what is computed": Pair(
        "float[N] x => float[1] y",
        "e = Exp(x) o = Equal(e, e) c = Cast<to = 6>(o) r = ReduceSum(c) y = Cast<to = 1>(r)",
        "e = Exp(x) o = Equal(e, e) c = Cast<to = 6>(o) r = ReduceSum(c) s = Min(r, most) y = Cast<to = 1>(s)",
        {"x": np.ones(700)},
        {"most": I32(600)},
    ),
    "how often a word is there": Pair(
        "string[N] x, string[1] k => int32[1] y",
        "e = Equal(x, k) " + COUNT.replace("(x)", "(e)") + "y = ReduceSum(c)",
        "e = Equal(x, k) " + COUNT.replace("(x)", "(e)") + "r = ReduceSum(c) y = Min(r, most)",
        {"x": ["b"] * 50, "k": ["b"]},
        {"most": I32(40)},
    ),
    "the place of the least one": Pair(
        PLACE,
        "y = ArgMin<axis = 0>(x)",
        "p = ArgMin<axis = 0>(x) " + NARROW.format(3),
        {"x": -np.arange(200)},
    ),
}
NEGATIVE = {
    "GatherND": Pair(
        "float[5] x, int64[1, 1] i => float[1] y",
        "y = GatherND(x, i)",
        "j = Max(i, zero) y = GatherND(x, j)",
        {"x": np.arange(5), "i": [[-2]]},
        {"zero": I64(0)},
    ),
    "GatherND beside a batch": Pair(
        "float[2, 5] x, int64[2, 1] i => float[2] y",
        "y = GatherND<batch_dims = 1>(x, i)",
        "j = Max(i, zero) y = GatherND<batch_dims = 1>(x, j)",
        {"x": np.arange(10).reshape(2, 5), "i": [[-2], [-1]]},
        {"zero": I64(0)},
    ),
    "ScatterND": Pair(
        "float[5] x, int64[2, 1] i, float[2] u => float[5] y",
        "y = ScatterND(x, i, u)",
        "j = Max(i, zero) y = ScatterND(x, j, u)",
        {"x": np.arange(5), "i": [[-2], [1]], "u": [8, 9]},
        {"zero": I64(0)},
    ),
}
LOOP = (
    "y = Loop(n, always, start)<body = b (int64 i, bool c, float v) => (bool d, float w) "
    "{{ d = Identity(c) {} f = Cast<to = 1>(k) w = Max(v, f) }}>"
)
ITERATIONS = {
    "numbers of iterations in 8 bits": Pair(
        "int64 n, float start => float y",
        LOOP.format("k = Identity(i)"),
        LOOP.format("s = Cast<to = 3>(i) k = Cast<to = 7>(s)"),
        {"n": 200, "start": 0},
        {"always": np.bool_(True)},
    ),
    "iterations after 2,000": Pair(
        "int64 n, float start => float y",
        LOOP.format("k = Identity(i)"),
        LOOP.format("k = Min(i, most)"),
        {"n": 2010, "start": 0},
        {"most": I64(2000), "always": np.bool_(True)},
    ),
}
IN_BRANCH = (
    "y = If(b)<then_branch = t () => (float[N, 3] p) {{ {} p = Gather(x, {}) }}, "
    "else_branch = e () => (float[N, 3] q) {{ n = Neg(x) q = Gather(n, k) }}>"
)
INSIDE = {
    "in a branch": Pair(
        "float[5, 3] x, int64[N] k, bool b => float[N, 3] y",
        IN_BRANCH.format("", "k"),
        IN_BRANCH.format("a = Abs(k)", "a"),
        {"x": np.arange(15).reshape(5, 3), "k": [-1], "b": True},
    ),
    "in the other branch": Pair(
        "float[5, 3] x, int64[N] k, bool b => float[N, 3] y",
        IN_BRANCH.format("", "k"),
        IN_BRANCH.format("", "k").replace("q = Gather(n, k)", "a = Abs(k) q = Gather(n, a)"),
        {"x": np.arange(15).reshape(5, 3), "k": [-1], "b": False},
    ),
    "of the last image": Pair(
        "float[4, 1, 5, 5] x, int64[2] k => float[2, 1, 1, 1] y",
        "y = RoiAlign(x, r, k)",
        "m = Min(k, most) y = RoiAlign(x, r, m)",
        {"x": np.arange(100).reshape(4, 1, 5, 5), "k": [3, 3]},
        {"r": F([[0, 0, 4, 4]] * 2), "most": I64(2)},
    ),
    "of the last element that is written": Pair(
        "float[1, 1, 8, 2] x, float[1, 1, 2, 2] u, int64[1] k => float[1, 1, 8, 2] y",
        "y = TensorScatter(x, u, k)",
        "m = Min(k, most) y = TensorScatter(x, u, m)",
        {"x": np.zeros((1, 1, 8, 2)), "u": np.ones((1, 1, 2, 2)), "k": [6]},
        {"most": I64(5)},
        opset=24,
    ),
}
ATTENDED = "com.microsoft.MultiHeadAttention<num_heads = 2>(q, q, q, , {})"
CACHED = "y, a, b = com.microsoft.GroupQueryAttention<num_heads = 2, kv_num_heads = 1>(q, k, k, c, c, {}, t)"
MASKS = {
    "a mask of a number above 1": Pair(
        "float[1, 4, 8] q, int32[1, 4] m => float[1, 4, 8] y",
        f"y = {ATTENDED.format('m')}",
        f"h = Equal(m, one) k = Cast<to = 6>(h) y = {ATTENDED.format('k')}",
        {"q": np.arange(32).reshape(1, 4, 8) / 8, "m": [[1, 2, 0, 1]]},
        {"one": I32(1)},
    ),
    "a mask of lengths": Pair(
        "float[1, 4, 8] q, int32[1] m => float[1, 4, 8] y",
        f"y = {ATTENDED.format('m')}",
        f"k = Min(m, most) y = {ATTENDED.format('k')}",
        {"q": np.arange(32).reshape(1, 4, 8) / 8, "m": [4]},
        {"most": I32(3)},
    ),
    "what a cache holds": Pair(
        "float[1, 1, 16] q, float[1, 1, 8] k, float[1, 1, P, 8] c, int32[1] n, int32 t => float[1, 1, 16] y",
        CACHED.format("n"),
        "a1 = Neg(c) " + CACHED.replace("c, c", "a1, c").format("n"),
        {
            "q": np.ones((1, 1, 16)),
            "k": np.ones((1, 1, 8)),
            "c": np.arange(40).reshape(1, 1, 5, 8) / 40,
            "n": [5],
            "t": 6,
        },
    ),
    "a scale of a first prompt": Pair(
        "float[1, S, 16] q, float[1, S, 8] k, int32[1] n, int32 t => float[1, S, 16] y",
        "y, a, b = com.microsoft.GroupQueryAttention<num_heads = 2, kv_num_heads = 1>(q, k, k, , , n, t)",
        "y, a, b = com.microsoft.GroupQueryAttention<num_heads = 2, kv_num_heads = 1, scale = 0.5>(q, k, k, , , n, t)",
        {
            "q": np.arange(48).reshape(1, 3, 16) / 9,
            "k": np.arange(24).reshape(1, 3, 8) / 9,
            "n": [2],
            "t": 3,
        },
    ),
    "a length of a cache": Pair(
        "float[1, 1, 16] q, float[1, 1, 8] k, float[1, 1, 8, 8] c, int32[1] n => float[1, 1, 16] y",
        CACHED.format("n"),
        "m = Min(n, most) " + CACHED.format("m"),
        {
            "q": np.ones((1, 1, 16)),
            "k": np.ones((1, 1, 8)),
            "c": np.arange(64).reshape(1, 1, 8, 8) / 64,
            "n": [7],
        },
        {"most": I32(6), "t": I32(8)},
    ),
}
FUNCTION = '<domain: "local", opset_import: ["": 18]> f ({0}) => (y) {{ {1} }}'
CALLS = {
    "positions": Pair(
        "float[5, 3] x, int64[N] k => float[N, 3] y",
        "y = local.f(x, k)",
        "y = local.f(x, k)",
        {"x": np.arange(15).reshape(5, 3), "k": [-1]},
        functions=(FUNCTION.format("x, k", "y = Gather(x, k)"), FUNCTION.format("x, k", "n = Abs(k) y = Gather(x, n)")),
    ),
    "places of peaks": Pair(
        PLACE,
        "y = local.f(x)",
        "y = local.f(x)",
        {"x": np.arange(200)},
        functions=(
            FUNCTION.format("x", "y = ArgMax<axis = 0>(x)"),
            FUNCTION.format("x", "p = ArgMax<axis = 0>(x) " + NARROW.format(3)),
        ),
    ),
}
TABLE = (
    POSITIONS
    | LENGTHS
    | NAMED
    | NEGATIVE
    | ITERATIONS
    | INSIDE
    | MASKS
    | {f"{name}, in a function": CALLS[name] for name in CALLS}
)


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.sample(8)
def test_the_difference_is_found(name: str) -> None:
    find_difference(TABLE[name])


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.sample(8)
def test_the_witness_shows_the_difference(name: str) -> None:
    show_difference(TABLE[name])


# A sum of what is within a range: how large it is, runs of a few lengths do not tell.
SUMS = {
    "beyond 20": ("y = ReduceSum(s)", "r = ReduceSum(s) y = Clip(r, none, most)"),
    "of nothing below 0": ("y = ReduceSum(s)", "t = Relu(s) y = ReduceSum(t)"),
    "that is not below 0": ("y = ReduceSum(s)", "r = ReduceSum(s) y = Relu(r)"),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_along_a_length_is_not_called_what_was_not_seen(name: str) -> None:
    before, after = SUMS[name]
    limits = {"none": F(0), "most": F(20)}
    pair = Pair("float[N] x => float[1] y", f"s = Sigmoid(x) {before}", f"s = Sigmoid(x) {after}", {}, limits)
    found = splitgraph.verify(*pair.models())
    assert found.verdict in ("not-run", "different" if name == "beyond 20" else "equal"), found
