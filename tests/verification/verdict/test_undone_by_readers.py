"""Parts whose values differ, and whose readers undo that: equal. Near misses, in which a reader hides most of a
difference, have a witness.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import splitgraph

from ..regions.model_pairs import Pair, find_difference, show_difference

F, I64 = np.float32, np.int64


def R(*shape: int, seed: int = 0) -> np.ndarray:
    """Return numbers of a shape, the same at each call."""
    return np.asarray(np.random.default_rng(seed).standard_normal(shape), F)


def put(array: np.ndarray, place: Any, value: Any) -> np.ndarray:
    """Return an array with another element."""
    made = array.copy()
    made[place] = value
    return made


A, B, W, T = R(4, 4), R(4, 4, seed=1), R(5, 7), R(6, 4)
K = {
    "A": A,
    "B": B,
    "W": W,
    "c": R(4),
    "d": R(4, seed=2),
    "shift": R(7, seed=3),
    "g": np.ones(4, F),
    "axis": np.array([1], I64),
}
K |= {
    "one": F(1),
    "most": F(100),
    "step": F(0.05),
    "zero": np.uint8(128),
    "limit": F(3),
    "T": T,
    "zeros": np.zeros(4, F),
}
K |= {
    "V": np.arange(-8, 8, dtype=np.int8).reshape(4, 4),
    "size": F(0.1),
    "sizes": np.array([0.2] * 4, F),
    "three": F(3),
    "seven": F(7),
}
FOUR, CLASS, QK = (
    "float[N, 4] x => float[N, 4] y",
    "float[N, 5] x => int64[N] y",
    "float[N, S, 4] x => float[N, S, S] y",
)
PRODUCT = "q = MatMul(x, A) k = MatMul(x, B) r = Transpose<perm = [0, 2, 1]>(k) "
SCORES = PRODUCT + "y = MatMul(q, r)"
BEST = PRODUCT + "m = MatMul(q, r) y = ArgMax<axis = 2, keepdims = 0>(m)"
LARGEST = "m = MatMul(x, W) y = ArgMax<axis = 1, keepdims = 0>(m)"
GATED = "a = MatMul(x, A) r = Relu(a) b = MatMul(x, B) y = Mul(r, b)"
SUM = "a = Gemm(x, A, c) b = Gemm(x, B, d) y = Add(a, b)"
NORMED = "m = MatMul(x, A) y = LayerNormalization<epsilon = 0.0>(m, g)"
LIFTED = "m = MatMul(x, A) k = Add(m, most) y = Sigmoid(k)"
EMBEDDED = "e = Gather(T, i) y = LayerNormalization<epsilon = 0.00001>(e, g)"
DEQUANTIZED = "a = DequantizeLinear(x, size) b = DequantizeLinear<axis = 1>(V, sizes) y = MatMul(a, b)"
COSINE = "a = MatMul(x, A) n = ReduceL2(a, axis) u = Div(a, n) p = Mul(u, z) y = ReduceSum<keepdims = 0>(p, axis)"
VECTORS = "float[N, 4] x, float[N, 4] z => float[N] y"


def same(signature: str, body: str, **changed: np.ndarray) -> Pair:
    """Return a pair of one text with other constants."""
    return Pair(signature, body, body, {}, K, changed)


def shown(signature: str, body: str, x: np.ndarray, **changed: np.ndarray) -> Pair:
    """Return a pair of one text with other constants, and the input that shows the difference."""
    return Pair(signature, body, body, {"x": x}, K, changed)


SIGNS = np.array([-1, 1, 1, -1], F)
CENTRED = (T - T.mean(1, keepdims=True)).astype(F)
EQUAL = {
    # Two branches that a common reader joins.
    "factors of queries and keys": same(QK, SCORES, A=A * 2, B=B / 2),
    "signs of queries and keys": same(QK, SCORES, A=A * SIGNS, B=B * SIGNS),
    "columns of queries and keys": same(QK, SCORES, A=A[:, ::-1].copy(), B=B[:, ::-1].copy()),
    "factors behind a Relu": same(FOUR, GATED, A=A * 2, B=B / 2),
    "biases that move": same(FOUR, SUM, c=K["c"] + 1, d=K["d"] - 1),
    "scales that are exchanged": same(
        "int8[N, 4] x => float[N, 4] y", DEQUANTIZED, size=F(0.2), sizes=np.array([0.1] * 4, F)
    ),
    "branches that exchange their names": Pair(
        FOUR,
        "a = MatMul(x, A) b = MatMul(x, B) s = Sigmoid(a) y = Mul(s, b)",
        "b = MatMul(x, A) a = MatMul(x, B) s = Sigmoid(b) y = Mul(s, a)",
        {},
        K,
    ),
    "numbers that change places": Pair(
        FOUR,
        "a = Add(x, three) b = Add(x, seven) y = Add(a, b)",
        "a = Add(x, seven) b = Add(x, three) y = Add(a, b)",
        {},
        K,
    ),
    # The outputs differ by rounding, too.
    "a product that is put together otherwise": Pair(
        "float[N, S, 4] x, float[N, S, 4] z => float[N, S, S] y",
        "q = MatMul(x, A) k = MatMul(z, B) t = Transpose<perm = [0, 2, 1]>(k) y = MatMul(q, t)",
        "q = MatMul(x, C) t = Transpose<perm = [0, 2, 1]>(z) y = MatMul(q, t)",
        {},
        K | {"C": A @ B.T},
    ),
    # One part that its reader undoes.
    "the largest of doubled numbers": same(CLASS, LARGEST, W=W * 2),
    "a normalization of doubled numbers": same(FOUR, NORMED, A=A * 2),
    "a unit vector of doubled numbers": same(FOUR, "m = MatMul(x, A) y = LpNormalization<axis = 1>(m)", A=A * 2),
    "a shift before a Softmax": same(
        "float[N, 5] x => float[N, 7] y", "m = Gemm(x, W, shift) y = Softmax(m)", shift=K["shift"] + 1
    ),
    "rows that are centred": same("int64[N] i => float[N, 4] y", EMBEDDED, T=CENTRED),
    "a cosine of doubled numbers": same(VECTORS, COSINE, A=A * 2),
}
MANY, LONG, X = R(4000, 4), R(40000, 5), R(4, 4)
DIFFERENT = {
    "factors that do not cancel": shown(QK, SCORES, R(1, 3, 4), A=A * 2, B=B * F(0.501)),
    "other columns": shown(QK, SCORES, R(1, 3, 4), A=A[:, [1, 0, 2, 3]], B=B[:, [1, 0, 3, 2]]),
    "one weight beside factors": shown(QK, SCORES, R(1, 3, 4), A=A * 2, B=put(B / 2, (1, 2), B[1, 2] / 2 * F(1.01))),
    "one weight before the largest": shown(
        "float[N, S, 4] x => int64[N, S] y",
        BEST,
        R(4000, 3, 4),
        A=A * 2,
        B=put(B / 2, (1, 2), B[1, 2] / 2 * F(1.01)),
    ),
    "signs behind a Relu": shown(FOUR, GATED, X, A=-A, B=-B),
    "biases that move otherwise": shown(FOUR, SUM, X, c=K["c"] + 1, d=K["d"] - F(1.001)),
    "scales of which one is another": shown(
        "int8[N, 4] x => float[N, 4] y",
        DEQUANTIZED,
        np.ones((2, 4)),
        size=F(0.2),
        sizes=np.array([0.1, 0.1, 0.1, 0.101], F),
    ),
    "branches that exchange their readers": Pair(
        FOUR,
        "a = MatMul(x, A) b = MatMul(x, B) s = Sigmoid(a) y = Mul(s, b)",
        "a = MatMul(x, B) b = MatMul(x, A) s = Sigmoid(a) y = Mul(s, b)",
        {"x": X},
        K,
    ),
    "one weight of many classes": shown(CLASS, LARGEST, LONG, W=put(W * 2, (2, 3), W[2, 3] * F(2.02))),
    "one weight before a sign": shown(
        FOUR, "m = MatMul(x, A) y = Sign(m)", MANY, A=put(A * 2, (1, 2), A[1, 2] * F(2.02))
    ),
    "one weight before a limit": shown(
        "float[N, 4] x => bool[N, 4] y",
        "m = MatMul(x, A) y = Greater(m, limit)",
        MANY,
        A=put(A, (1, 2), A[1, 2] * F(1.01)),
    ),
    "one weight before a quantization": shown(
        "float[N, 4] x => uint8[N, 4] y",
        "m = MatMul(x, A) y = QuantizeLinear(m, step, zero)",
        MANY,
        A=put(A, (1, 2), A[1, 2] * F(1.001)),
    ),
    "doubled numbers and an epsilon": shown(FOUR, NORMED.replace("0.0", "0.00001"), X / 100, A=A * 2),
    "a shift of one class": shown(
        "float[N, 5] x => float[N, 7] y",
        "m = Gemm(x, W, shift) y = Softmax(m)",
        R(4, 5),
        shift=put(K["shift"] + 1, 2, K["shift"][2] + F(1.01)),
    ),
    "one row that is not centred": Pair(
        "int64[N] i => float[N, 4] y", EMBEDDED, EMBEDDED, {"i": [3]}, K, {"T": put(CENTRED, (3, 2), F(0.7))}
    ),
    "a sigmoid in saturation": shown(FOUR, LIFTED, MANY * 40, A=put(A, (1, 2), A[1, 2] * F(1.01))),
    "a sigmoid in saturation without a bias": Pair(
        FOUR,
        "m = Gemm(x, A, c) k = Add(m, most) y = Sigmoid(k)",
        "m = Gemm(x, A) k = Add(m, most) y = Sigmoid(k)",
        {"x": MANY * 40},
        K,
    ),
    "a tangent in saturation": shown(
        FOUR, "m = MatMul(x, A) y = Tanh(m)", MANY / 1000, A=put(A * 1000, (1, 2), A[1, 2] * F(1100))
    )._replace(constants={**K, "A": A * 1000}),
    "a value that is read twice": shown(
        "float[N, 5] x => int64[N] y, float[N, 7] v", LARGEST + " v = Tanh(m)", R(4, 5), W=W * 2
    ),
    "a product that is put together otherwise and wrong": Pair(
        "float[N, S, 4] x, float[N, S, 4] z => float[N, S, S] y",
        "q = MatMul(x, A) k = MatMul(z, B) t = Transpose<perm = [0, 2, 1]>(k) y = MatMul(q, t)",
        "q = MatMul(x, C) t = Transpose<perm = [0, 2, 1]>(z) y = MatMul(q, t)",
        {"x": R(1, 3, 4), "z": R(1, 3, 4, seed=1)},
        K | {"C": (A @ B.T) * F(1.0003)},
    ),
    "divisors of two sizes at once": Pair(
        "float[N, M] x => bool y",
        "s = Shape(x) r = Mod(s, u) t = ReduceMax<keepdims = 0>(r) b = Cast<to = 9>(t) y = Not(b)",
        "s = Shape(x) r = Mod(s, u) t = ReduceMax<keepdims = 0>(r) b = Cast<to = 9>(t) y = Not(b)",
        {"x": np.zeros((14, 16))},
        {"u": np.array([14, 16], I64)},
        {"u": np.array([28, 16], I64)},
    ),
    "a value that is an output": shown("float[N, 5] x => int64[N] y, float[N, 7] m", LARGEST, R(4, 5), W=W * 2),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.sample(10)
def test_what_readers_undo_is_no_difference(name: str, is_turned: bool) -> None:
    models = EQUAL[name].models()
    found = splitgraph.verify(*(reversed(models) if is_turned else models))
    assert found.verdict == "equal", found.first_difference


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(10)
def test_what_readers_only_hide_is_a_difference(name: str) -> None:
    find_difference(DIFFERENT[name])
    show_difference(DIFFERENT[name])
