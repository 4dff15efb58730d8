"""What an operator cannot give is not drawn for its readers; what it can give is."""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph

from ..model_pairs import Pair, find_difference, show_difference

F = np.float32
K = {"w": np.random.default_rng(0).standard_normal((4, 4)).astype(F), "n": np.int64(5), "t": np.bool_(True)}
K |= {
    "zero": F(0),
    "near": F(0.5),
    "little": F(1e-6),
    "one": F(1),
    "far": F(5),
    "less": F(-0.5),
    "two": F(2),
    "six": F(6),
    "least": F(-5),
    "huge": F(1e30),
}
FOUR = "float[N, 4] x => float[N, 4] y"
M = "m = MatMul(x, w) "


def pair(kept: str, before: str, after: str, signature: str = FOUR, **witness: np.ndarray) -> Pair:
    """Return two models that both begin with some nodes."""
    return Pair(signature, kept + before, kept + after, witness, K)


def in_loop(text: str) -> str:
    return (
        "y = Loop(n, t, x) <body = l (int64 i, bool on, float[N, 4] u) => (bool go, float[N, 4] r) "
        f"{{ go = Identity(on) h = MatMul(u, w) s = Tanh(h) {text} r = Neg(c) }}>"
    )


def from_tanh(text: str) -> str:
    """Return a Loop whose state begins with a Tanh."""
    return (
        "b = Tanh(x) y = Loop(n, t, b) <body = l (int64 i, bool on, float[N, 4] s) => (bool go, float[N, 4] r) "
        f"{{ go = Identity(on) {text} }}>"
    )


def in_branch(text: str) -> str:
    return (
        "b = Sin(x) d = ReduceMax<keepdims = 0>(b) e = Greater(d, zero) y = If(e) <then_branch = p () => "
        f"(float[N, 4] r) {{ {text} r = Neg(c) }}, else_branch = q () => (float[N, 4] v) {{ v = Identity(b) }}>"
    )


ROWS = np.random.default_rng(1).standard_normal((8, 3)).astype(F)
# The last rows of the second table are those that few positions reach.
TABLES = {"rows": ROWS, "e": np.int64(8), "f": np.int64(-8), "one": np.int64(1), "k": np.int64([1])}
TABLES |= {"zero": np.int64(0), "seven": np.int64(7), "off": np.uint8(0), "on": F(0.1), "half": F(0.5)}
PADDED = np.concatenate([ROWS, np.full((8, 3), 9, F)])


def reading(kept: str, signature: str, **witness: np.ndarray) -> Pair:
    """Return two models with positions, and a table that has more rows in the second one."""
    text = kept + " y = Gather(rows, i)"
    return Pair(signature, text, text, witness, TABLES, {"rows": PADDED})


WIDE, ONES = "float[N, 8] x => float[N, 3] y", "int64[N] x => float[N, 3] y"
CLIPPED = "c = Clip(s, least, far) y = Neg(c)", "y = Neg(s)"
ABOVE = "c = Clip(s, zero, far) y = Neg(c)", "y = Neg(s)"
FROM = "float[N, 4] x"
BETWEEN = {
    "an average": ("ReduceMean(a)", "float[1, 1]"),
    "a Mean": ("Mean(a, one, a)", "float[N, 4]"),
    "the largest": ("ReduceMax(a)", "float[1, 1]"),
    "a part": ("Trilu(a)", "float[N, 4]"),
}
EQUAL = {
    **{name: pair(M + f"s = {name}(m) ", *CLIPPED) for name in ("Tanh", "Sin", "Cos", "Erf", "Softsign")},
    **{name: pair(M + f"s = {name}(m) ", *ABOVE) for name in ("Sigmoid", "Softmax", "HardSigmoid")},
    "Exp": pair(M + "s = Exp(m) ", "c = Max(s, least) y = Neg(c)", "y = Neg(s)"),
    "LogSoftmax": pair(M + "s = LogSoftmax(m) ", "c = Min(s, far) y = Neg(c)", "y = Neg(s)"),
    "an input": pair("s = Tanh(x) ", *CLIPPED),
    "moved": pair(
        M + "a = Tanh(m) b = Transpose(a) q, v = Split<num_outputs = 2>(b) s = Squeeze(q) ",
        *CLIPPED,
        "float[2, 4] x => float[2, 2] y",
    )._replace(signature="float[N, 4] x => float[2, N] y"),
    "as a Min of a Max": pair(M + "s = Tanh(m) ", "a = Min(s, far) c = Max(a, least) y = Neg(c)", CLIPPED[0]),
    "around a branch": Pair(FOUR, in_branch("c = Min(b, far)"), in_branch("c = Identity(b)"), {}, K),
    "the state of a Loop": Pair(FOUR, from_tanh("c = Min(s, far) r = Cos(c)"), from_tanh("r = Cos(s)"), {}, K),
    "in a Loop": Pair(FOUR, in_loop("c = Clip(s, least, far)"), in_loop("c = Identity(s)"), {}, K),
    # Averages, and what else lies between numbers.
    **{
        name: pair(
            M + f"a = Sigmoid(m) s = {text} ", "c = Min(s, far) y = Neg(c)", "y = Neg(s)", f"{FROM} => {shape} y"
        )
        for name, (text, shape) in BETWEEN.items()
    },
    # What is computed with constants.
    "twice a Softmax": pair(M + "a = Softmax(m) s = Mul(a, two) ", "y = Clip(s, zero, six)", "y = Relu(s)"),
    "twice a Sigmoid": pair(M + "a = Sigmoid(m) s = Mul(two, a) ", "c = Min(s, far) y = Neg(c)", "y = Neg(s)"),
    "from -1, 1 to 0, 1": pair(
        M + "a = Tanh(m) b = Add(a, one) s = Div(b, two) ", "c = Clip(s, zero, one) y = Neg(c)", "y = Neg(s)"
    ),
    "less than 0": pair(M + "a = Sigmoid(m) s = Sub(a, one) ", "c = Min(s, zero) y = Exp(c)", "y = Exp(s)"),
    "a negative scale": pair(M + "a = Abs(m) s = Mul(a, less) ", "c = Min(s, zero) y = Exp(c)", "y = Exp(s)"),
    "a square": pair(M + "s = Mul(m, m) ", "c = Relu(s) y = Neg(c)", "y = Neg(s)"),
    "two values": pair(
        M + "a = Sigmoid(m) b = Tanh(m) s = Mul(a, b) ", "c = Clip(s, least, far) y = Neg(c)", "y = Neg(s)"
    ),
    "one of two values": pair(
        M + "a = Sigmoid(m) b = Softmax(m) g = Greater(m, zero) s = Where(g, a, b) ",
        "c = Clip(s, zero, far) y = Neg(c)",
        "y = Neg(s)",
    ),
    "a condition": pair(M + "g = Greater(m, zero) s = Cast<to = 1>(g) ", "y = Clip(s, zero, six)", "y = Relu(s)"),
    "a Clip of a Clip": pair(
        M + "d = Clip(m, zero, one) e = Floor(d) s = Add(e, two) ", "c = Min(s, six) y = Neg(c)", "y = Neg(s)"
    ),
    "whole numbers": Pair(
        "uint8[N] x => float[N] y",
        "d = DequantizeLinear(x, on, off) y = Relu(d)",
        "y = DequantizeLinear(x, on, off)",
        {},
        TABLES,
    ),
    # Positions in a table.
    "ArgMax": reading("i = ArgMax<axis = 1, keepdims = 0>(x)", WIDE),
    "TopK": reading("v, j = TopK<axis = 1>(x, k) i = Squeeze(j, k)", WIDE),
    "Mod": reading("i = Mod(x, e)", ONES),
    "Mod with a sum": reading("j = Mod(x, seven) i = Add(j, one)", ONES),
    "Clip of positions": reading("i = Clip(x, zero, seven)", ONES),
    "Min and Max": reading("j = Max(x, zero) i = Min(j, seven)", ONES),
    "Cast of a condition": reading("b = Greater(x, zero) i = Cast<to = 6>(b)", ONES),
    "counted from the end": reading("a = Mod(x, e) b = Sub(zero, a) i = Abs(b)", ONES),
}
ROW, STEEP = np.linalg.solve(K["w"].T.astype(np.float64), np.array([[3.0, -3, 0.6, 3], [9, 0, 0, 0]]).T).T.astype(F)[
    :, None
]
BESIDE = np.linalg.solve(K["w"].T.astype(np.float64), np.full(4, 2.0)).astype(F)
DIFFERENT = {
    "twice a Softmax, less": pair(
        M + "a = Softmax(m) s = Mul(a, two) ", "y = Clip(s, zero, one)", "y = Relu(s)", x=STEEP
    ),
    "twice a Sigmoid, less": pair(
        M + "a = Sigmoid(m) s = Mul(a, two) ", "c = Min(s, one) y = Neg(c)", "y = Neg(s)", x=ROW
    ),
    "an average, less": pair(
        M + "a = Sigmoid(m) s = ReduceMean(a) ",
        "c = Min(s, near) y = Neg(c)",
        "y = Neg(s)",
        "float[N, 4] x => float[1, 1] y",
        x=ROW,
    ),
    "a sum, less": pair(
        M + "a = Sigmoid(m) s = ReduceSum(a) ",
        "c = Min(s, one) y = Neg(c)",
        "y = Neg(s)",
        "float[N, 4] x => float[1, 1] y",
        x=ROW,
    ),
    "the end itself": pair(
        M + "a = Sigmoid(m) s = Mul(a, two) ",
        "g = Less(s, two) c = Cast<to = 1>(g) y = Neg(c)",
        "g = LessOrEqual(s, two) c = Cast<to = 1>(g) y = Neg(c)",
        x=10 * ROW,
    ),
    "beside a whole number": pair(
        M + "a = Abs(m) s = Mul(a, near) ",
        "c = Cast<to = 7>(s) y = Cast<to = 1>(c)",
        "b = Add(s, little) c = Cast<to = 7>(b) y = Cast<to = 1>(c)",
        x=np.linspace(1 - 4e-6, 1 + 2e-6, 400).astype(F)[:, None] * BESIDE,
    ),
    "a scalar": Pair(
        "float x => float y",
        "s = Sigmoid(x) c = Min(s, near) y = Neg(c)",
        "s = Sigmoid(x) y = Neg(s)",
        {"x": F(3)},
        K,
    ),
    "a scalar position": Pair(
        "int64 x => float[3] y",
        "j = Mod(x, e) i = Sub(seven, j) y = Gather(rows, i)",
        "j = Mod(x, e) i = Sub(seven, j) y = Gather(rows, i)",
        {"x": np.int64(4)},
        TABLES,
        {"rows": np.concatenate([ROWS[:3], PADDED[3:] + F(1)])},
    ),
    "a range far from 0": pair(
        M + "a = Sigmoid(m) s = Add(a, far) ", "b = Mul(s, six) y = Cos(b)", "b = Mul(s, six) y = Sin(b)", x=ROW
    ),
    "one of two values, less": pair(
        M + "a = Sigmoid(m) g = Greater(m, zero) s = Where(g, a, m) ",
        "c = Max(s, zero) y = Neg(c)",
        "y = Neg(s)",
        x=ROW,
    ),
    "a row that is read": reading(
        "i = ArgMax<axis = 1, keepdims = 0>(x)", "float[N, 9] x => float[N, 3] y", x=np.eye(9, dtype=F)[:8]
    )._replace(changed={"rows": np.concatenate([ROWS[:7], PADDED[7:] + F(1)])}),
    "positions from the end": reading("i = Mod<fmod = 1>(x, e)", ONES, x=np.int64([-1, 3])),
    "a negative divisor": reading("i = Mod(x, f)", ONES, x=np.int64([1, 3])),
    "positions that wrap": reading(
        "c = Cast<to = 2>(x) j = Add(c, c) a = Cast<to = 7>(j) i = Sub(zero, a)", ONES, x=np.int64([1])
    ),
    "a table that is read twice": Pair(
        ONES,
        "i = Mod(x, e) a = Gather(rows, i) b = ReduceMax<keepdims = 0>(rows) y = Add(a, b)",
        "i = Mod(x, e) a = Gather(rows, i) b = ReduceMax<keepdims = 0>(rows) y = Add(a, b)",
        {"x": np.int64([1])},
        TABLES,
        {"rows": PADDED},
    ),
    "a smaller limit": pair(M + "s = Tanh(m) ", "c = Clip(s, less, far) y = Neg(c)", "y = Neg(s)", x=ROW),
    "a limit within": pair(M + "s = Sigmoid(m) ", "c = Min(s, near) y = Neg(c)", "y = Neg(s)", x=ROW),
    "a state that grows": Pair(
        FOUR, from_tanh("c = Min(s, far) r = Add(c, c)"), from_tanh("r = Add(s, s)"), {"x": np.full((1, 4), 2, F)}, K
    ),
    "within a branch": Pair(
        FOUR, in_branch("c = Min(b, near)"), in_branch("c = Identity(b)"), {"x": np.ones((1, 4), F)}, K
    ),
    "what is added": pair(M + "a = Tanh(m) s = Add(a, a) ", "c = Min(s, one) y = Neg(c)", "y = Neg(s)", x=ROW),
    "a large number": pair(M + "s = Exp(m) ", "c = Min(s, huge) y = Neg(c)", "y = Neg(s)", x=ROW * F(25)),
    "NaN": pair(
        M + "s = Tanh(m) ", "c = IsNaN(s) y = Where(c, one, s)", "y = Identity(s)", x=np.full((1, 4), np.nan, F)
    ),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.sample(5)
def test_numbers_that_an_operator_cannot_give_show_nothing(name: str) -> None:
    models = EQUAL[name].models()
    for one, other in (models, models[::-1]):
        found = splitgraph.verify(one, other)
        assert found.verdict == "equal", found


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(8)
def test_numbers_that_an_operator_gives_show_a_difference(name: str) -> None:
    find_difference(DIFFERENT[name])
    show_difference(DIFFERENT[name])
