"""What an operator cannot give is not drawn for its readers; what it can give is."""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph

from .model_pairs import Pair, find_difference, show_difference

F = np.float32
K = {"w": np.random.default_rng(0).standard_normal((4, 4)).astype(F), "n": np.int64(5), "t": np.bool_(True)}
K |= {"zero": F(0), "near": F(0.5), "one": F(1), "far": F(5), "less": F(-0.5), "least": F(-5), "huge": F(1e30)}
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


CLIPPED = "c = Clip(s, least, far) y = Neg(c)", "y = Neg(s)"
ABOVE = "c = Clip(s, zero, far) y = Neg(c)", "y = Neg(s)"
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
}
ROW = np.linalg.solve(K["w"].T.astype(np.float64), [3.0, -3, 0.6, 3]).astype(F)[None]
DIFFERENT = {
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
def test_numbers_that_an_operator_gives_show_a_difference(name: str) -> None:
    find_difference(DIFFERENT[name])
    show_difference(DIFFERENT[name])
