"""Models that differ in what they decide by tiny numbers, and models that only round these to 0."""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph

from .model_pairs import Pair, find_difference, show_difference

F, F64 = np.float32, np.float64
LINE, DOUBLE = "float[N] x => float[N] y", "double[N] x => double[N] y"
NARROWED = "f = Cast<to = 1>(x) {} y = Cast<to = 11>(g)"

DIFFERENT = {
    "a sign in float32": Pair(DOUBLE, "y = Sign(x)", NARROWED.format("g = Sign(f)"), {"x": [1e-60]}),
    "a logarithm in float32": Pair(DOUBLE, "y = Log(x)", NARROWED.format("g = Log(f)"), {"x": [1e-60]}),
    "an inverse in float32": Pair(DOUBLE, "y = Reciprocal(x)", NARROWED.format("g = Reciprocal(f)"), {"x": [1e-60]}),
    "a condition in float32": Pair(
        "double[N] x => bool[N] y", "y = Cast<to = 9>(x)", "f = Cast<to = 1>(x) y = Cast<to = 9>(f)", {"x": [1e-60]}
    ),
    "a comparison in float32": Pair(
        "double[N] x, double[N] w => bool[N] y",
        "y = Greater(x, w)",
        "a = Cast<to = 1>(x) b = Cast<to = 1>(w) y = Greater(a, b)",
        {"x": [2e-60], "w": [1e-60]},
    ),
    "a square that is compared": Pair(
        "float[N] x => bool[N] y",
        "q = Mul(x, x) y = Greater(q, zero)",
        "q = Mul(x, x) y = Greater(q, limit)",
        {"x": [1e-18]},
        {"zero": F(0), "limit": F(1e-30)},
    ),
    "a limit of float64": Pair(
        DOUBLE,
        "y = Sqrt(x)",
        "g = Greater(x, limit) s = Sqrt(x) y = Where(g, s, zero)",
        {"x": [1e-25]},
        {"zero": F64(0), "limit": F64(1e-20)},
    ),
    "a number added before a logarithm": Pair(
        DOUBLE, "y = Log(x)", "s = Add(x, c) y = Log(s)", {"x": [1e-60]}, {"c": F64(1e-50)}
    ),
    "a quotient": Pair(
        "float[N] x, float[N] w => float[N] y",
        "y = Div(x, w)",
        "a = Add(w, c) y = Div(x, a)",
        {"x": [1e-18], "w": [1e-18]},
        {"c": F(1e-20)},
        {"c": F(1e-15)},
    ),
}

EQUAL = {
    "rounded to 0 beside 1": Pair(LINE, "o = Mul(x, x) y = Add(o, c)", "o = Mul(x, x) y = Add(c, o)", {}, {"c": F(1)}),
    "a square root of a square": Pair(LINE, "y = Abs(x)", "s = Mul(x, x) y = Sqrt(s)"),
    "the inverse of a square root of a square": Pair(
        LINE, "a = Abs(x) y = Reciprocal(a)", "s = Mul(x, x) r = Sqrt(s) y = Reciprocal(r)"
    ),
    "a sign by two comparisons": Pair(
        DOUBLE,
        "n = IsNaN(x) m = Where(n, zero, x) y = Sign(m)",
        "g = Greater(x, zero) l = Less(x, zero) p = Cast<to = 11>(g) n = Cast<to = 11>(l) y = Sub(p, n)",
        {},
        {"zero": F64(0)},
    ),
    "lost beside 1": Pair(
        "float[N] x => float[N] y",
        "s = Add(x, c) y = Sub(s, c)",
        "n = Neg(c) s = Sub(x, n) y = Add(s, n)",
        {},
        {"c": F(1)},
    ),
    "an expected length": Pair(
        "float[N, 3] x => float[N, 3] y",
        "p = ReduceL2(x, a) y = Div(x, p)",
        "q = Mul(x, x) s = ReduceSum(q, a) r = Sqrt(s) y = Div(x, r)",
        {},
        {"a": np.int64([1])},
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(8)
def test_what_tiny_numbers_decide_is_found(name: str) -> None:
    find_difference(DIFFERENT[name])
    show_difference(DIFFERENT[name])


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.sample(8)
def test_tiny_numbers_raise_no_alarm(name: str) -> None:
    found = splitgraph.verify(*EQUAL[name].models())
    assert found.verdict == "equal", found
