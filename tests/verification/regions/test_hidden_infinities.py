"""Models that differ in what is no number: 0 divided by 0, the mean of nothing, and what overflows in between, of which
the reference evaluator has no number on either side.
"""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph

from .model_pairs import Pair, find_difference, show_difference

F, F16, I64 = np.float32, np.float16, np.int64
ROWS, ROW_MEANS = "float[N, 3] x => float[N, 3] y", "float[N, 3] x => float[N, 1] y"
HALVES = "float16[N, 4] x => float16[N, 1] y"
MEANS = "float[2, N] x => float[2] y"
COUNT = "l = Shape<start = 1>(x) n = Cast<to = 1>(l)"
SUMS = {"a": I64([1]), "one": np.ones((3, 1), F), "inf": F(np.inf), "zero": F(0), "o": F([1])}
# A number in float32 that a model stores as float16.
HALF = "Cast<to = 10>"
STORED = "h = Cast<to = 10>({0}) {1} = Cast<to = 1>(h)"
FOUR = {"a": I64([1]), "four": F(4), "half": F16(4)}

DIFFERENT = {
    "0 times 1 / 0": Pair(
        ROW_MEANS,
        "p = ReduceSum(x, a) r = Reciprocal(p) y = Mul(r, p)",
        "q = MatMul(x, one) e = Equal(q, zero) r = Reciprocal(q) m = Mul(r, q) y = Where(e, inf, m)",
        {"x": [[0, 0, 0]]},
        SUMS,
    ),
    "0 / 0": Pair(
        ROWS,
        "p = ReduceSum(x, a) y = Div(x, p)",
        "q = MatMul(x, one) d = Div(x, q) e = Equal(q, zero) y = Where(e, inf, d)",
        {"x": [[0, 0, 0]]},
        SUMS,
    ),
    "the mean of nothing": Pair(
        MEANS,
        "y = ReduceMean<keepdims = 0>(x, a)",
        f"s = ReduceSum<keepdims = 0>(x, a) {COUNT} y = Div(s, n)",
        {"x": np.ones((2, 0))},
        SUMS,
    ),
    "the sum of nothing, divided by 0": Pair(
        MEANS,
        f"s = ReduceSum<keepdims = 0>(x, a) {COUNT} y = Div(s, n)",
        "y = ReduceMean<keepdims = 0>(x, a)",
        {"x": np.ones((2, 0))},
        SUMS,
    ),
    "a sum of float16": Pair(
        HALVES,
        "y = ReduceMean(x, a)",
        f"f = Cast<to = 1>(x) s = ReduceSum(f, a) {STORED.format('s', 'g')} m = Div(g, four) y = Cast<to = 10>(m)",
        {"x": [[60000] * 4]},
        FOUR,
    ),
    "squares of float16": Pair(
        HALVES,
        "y = ReduceL2(x, a)",
        f"f = Cast<to = 1>(x) q = Mul(f, f) {STORED.format('q', 'g')} s = ReduceSum(g, a) r = Sqrt(s) y = {HALF}(r)",
        {"x": [[1000, 0, 0, 0]]},
        FOUR,
    ),
    "an exponential of float16": Pair(
        HALVES,
        "y = ReduceLogSumExp(x, a)",
        f"f = Cast<to = 1>(x) e = Exp(f) {STORED.format('e', 'g')} s = ReduceSum(g, a) r = Log(s) y = {HALF}(r)",
        {"x": [[20, 0, 0, 0]]},
        FOUR,
    ),
}

EQUAL = {
    "divided by a sum": Pair(ROWS, "p = ReduceSum(x, a) y = Div(x, p)", "q = MatMul(x, one) y = Div(x, q)", {}, SUMS),
    "divided by a length": Pair(
        ROWS,
        "p = ReduceL2(x, a) y = Div(x, p)",
        "q = Mul(x, x) s = MatMul(q, one) p = Sqrt(s) y = Div(x, p)",
        {},
        SUMS,
    ),
    "without a mean": Pair(
        ROWS,
        "m = ReduceMean(x, a) y = Sub(x, m)",
        "s = ReduceSum(x, a) m = Div(s, three) n = Neg(m) y = Add(x, n)",
        {},
        SUMS | {"three": F(3)},
    ),
    "weights in another order": Pair(
        "float[N, 3] x => float[N, 2] y",
        "p = MatMul(x, v) y = MatMul(p, w)",
        "q = MatMul(v, w) y = MatMul(x, q)",
        {},
        {"v": F([[1, 2], [-3, 4], [5, -6]]), "w": F([[1, -1], [2, 1]])},
    ),
    "a mean of float16 in float32": Pair(
        HALVES, "y = ReduceMean(x, a)", "f = Cast<to = 1>(x) m = ReduceMean(f, a) y = Cast<to = 10>(m)", {}, FOUR
    ),
    "a sum of float16 that both store": Pair(
        HALVES,
        f"f = Cast<to = 1>(x) s = ReduceSum(f, a) {STORED.format('s', 'g')} m = Div(g, four) y = Cast<to = 10>(m)",
        f"f = Cast<to = 1>(x) s = ReduceSum(f, a) {STORED.format('s', 'g')} m = Mul(g, c) y = Cast<to = 10>(m)",
        {},
        FOUR | {"c": F(0.25)},
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(8)
def test_a_difference_in_what_is_no_number_is_found(name: str) -> None:
    find_difference(DIFFERENT[name])
    show_difference(DIFFERENT[name])


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.sample(8)
def test_what_is_no_number_on_both_sides_raises_no_alarm(name: str) -> None:
    found = splitgraph.verify(*EQUAL[name].models())
    assert found.verdict == "equal", found
