"""Inputs of the whole model that are lengths, axes or offsets: one model takes each, the other one cuts them off."""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph
from splitgraph.verification.models.dependence import amount_inputs

from ..small_models import parsed
from .model_pairs import Pair, find_difference, show_difference

F, I64 = np.float32, np.int64
SQUARE = "float[6, 6] x, int64 k => float[6, 6] y"
PART = "float[N] x, int64[1] s, int64[1] e => float[M] y"
PADDED = "float[N] x, int64[2] p => float[M] y"
COUNTED = "int64 a, int64 b => int64[M] y"
SUMMED = "float[3, 4] x, int64 a => float[3, 4] y"
SHAPED = "float[2, 6] x, int64[2] s => float[A, B] y"
BRANCH = (
    "y = If(b)<then_branch = t () => (float[A, B] p) {{ p = Slice(x, z, {}) }}, "
    "else_branch = e () => (float[A, B] q) {{ q = Neg(x) }}>"
)
FUNCTION = '<domain: "local", opset_import: ["": 18]> f (x, k) => (y) { y = Trilu(x, k) }'

DIFFERENT = {
    "Trilu, at most": Pair(
        SQUARE, "y = Trilu(x, k)", "m = Min(k, c) y = Trilu(x, m)", {"x": np.ones((6, 6)), "k": 4}, {"c": I64(3)}
    ),
    "Trilu, at least": Pair(
        SQUARE, "y = Trilu(x, k)", "m = Max(k, c) y = Trilu(x, m)", {"x": np.ones((6, 6)), "k": -4}, {"c": I64(-2)}
    ),
    "Slice from the end": Pair(
        PART,
        "y = Slice(x, s, e)",
        "t = Max(s, c) y = Slice(x, t, e)",
        {"x": np.arange(4), "s": [-2], "e": [4]},
        {"c": I64([0])},
    ),
    "Slice of many": Pair(
        PART,
        "y = Slice(x, s, e)",
        "t = Min(e, c) y = Slice(x, s, t)",
        {"x": np.arange(30), "s": [0], "e": [30]},
        {"c": I64([20])},
    ),
    "Slice backwards": Pair(
        "float[N] x, int64[1] s => float[M] y",
        "y = Slice(x, z, e, z, s)",
        "t = Abs(s) y = Slice(x, z, e, z, t)",
        {"x": np.arange(4), "s": [-1]},
        {"z": I64([0]), "e": I64([100])},
    ),
    "Pad that cuts off": Pair(
        PADDED, "y = Pad(x, p)", "q = Max(p, c) y = Pad(x, q)", {"x": np.arange(4), "p": [-1, 0]}, {"c": I64(0)}
    ),
    "Pad, at most": Pair(
        PADDED, "y = Pad(x, p)", "q = Min(p, c) y = Pad(x, q)", {"x": np.arange(4), "p": [9, 0]}, {"c": I64(5)}
    ),
    "Range, at most": Pair(
        COUNTED,
        "y = Range(a, b, c)",
        "d = Min(b, e) y = Range(a, d, c)",
        {"a": 0, "b": 30},
        {"c": I64(1), "e": I64(20)},
    ),
    "Range from a negative number": Pair(
        COUNTED, "y = Range(a, b, c)", "d = Max(a, e) y = Range(d, b, c)", {"a": -3, "b": 3}, {"c": I64(1), "e": I64(0)}
    ),
    "CumSum, from the last axis": Pair(
        SUMMED, "y = CumSum(x, a)", "b = Max(a, c) y = CumSum(x, b)", {"x": np.ones((3, 4)), "a": -2}, {"c": I64(-1)}
    ),
    "Reshape to -1": Pair(
        SHAPED, "y = Reshape(x, s)", "t = Abs(s) y = Reshape(x, t)", {"x": np.ones((2, 6)), "s": [-1, 3]}
    ),
    "Reshape to 0": Pair(
        SHAPED, "y = Reshape(x, s)", "y = Reshape<allowzero = 1>(x, s)", {"x": np.ones((2, 6)), "s": [0, 6]}
    ),
    "Expand": Pair(
        "float[1, 3] x, int64[2] s => float[A, B] y",
        "y = Expand(x, s)",
        "t = Min(s, c) y = Expand(x, t)",
        {"x": np.ones((1, 3)), "s": [9, 3]},
        {"c": I64(7)},
    ),
    "Tile": Pair(
        "float[2] x, int64[1] s => float[A] y",
        "y = Tile(x, s)",
        "t = Min(s, c) y = Tile(x, t)",
        {"x": np.ones(2), "s": [9]},
        {"c": I64(7)},
    ),
    "ConstantOfShape": Pair(
        "int64[2] s => float[A, B] y",
        "y = ConstantOfShape(s)",
        "t = Min(s, c) y = ConstantOfShape(t)",
        {"s": [9, 2]},
        {"c": I64(7)},
    ),
    "scales of Resize": Pair(
        "float[1, 1, 4, 4] x, float[4] s => float[1, 1, A, B] y",
        "y = Resize(x, , s)",
        "t = Min(s, c) y = Resize(x, , t)",
        {"x": np.ones((1, 1, 4, 4)), "s": [1, 1, 3, 1]},
        {"c": F(2.5)},
    ),
    # A division by 0 ends the engine.
    "a divisor": Pair(
        "float[2] x, int64[1] s => float[A] y",
        "d = Div(c, s) y = Tile(x, d)",
        "d = Div(c, s) m = Min(d, e) y = Tile(x, m)",
        {"x": np.ones(2), "s": [1]},
        {"c": I64([40]), "e": I64([30])},
    ),
    "lengths of a sum": Pair(
        "float[6] x, int64[2] s => float[A] y, float[B] z",
        "y, z = Split(x, s)",
        "a = Gather(s, i) e = Equal(a, o) t = Where(e, h, s) y, z = Split(x, t)",
        {"x": np.arange(6), "s": [0, 6]},
        {"i": I64([0]), "o": I64([0]), "h": I64([3, 3])},
    ),
    "an amount in a branch": Pair(
        "float[6, 6] x, int64[1] k, bool b => float[M, 6] y",
        BRANCH.format("k"),
        f"m = Max(k, z) {BRANCH.format('m')}",
        {"x": np.ones((6, 6)), "k": [-2], "b": True},
        {"z": I64([0])},
    ),
    "an amount of a function": Pair(
        SQUARE,
        "y = local.f(x, k)",
        "m = Min(k, c) y = local.f(x, m)",
        {"x": np.ones((6, 6)), "k": 4},
        {"c": I64(3)},
        functions=(FUNCTION, FUNCTION),
    ),
    "an amount that is computed": Pair(
        SQUARE,
        "j = Add(k, c) y = Trilu(x, j)",
        "j = Add(k, c) m = Min(j, d) y = Trilu(x, m)",
        {"x": np.ones((6, 6)), "k": 4},
        {"c": I64(1), "d": I64(4)},
    ),
}

EQUAL = {
    "an amount that the declared output tells": Pair(
        "float[1, 3] x, int64[2] s => float[2, 3] y", "y = Expand(x, s)", "y = Tile(x, r)", {}, {"r": I64([2, 1])}
    ),
    "Trilu beyond both ends": Pair(
        SQUARE, "y = Trilu(x, k)", "m = Clip(k, c, d) y = Trilu(x, m)", {}, {"c": I64(-6), "d": I64(6)}
    ),
    "Slice beyond the length": Pair(PART, "y = Slice(x, s, e)", "n = Shape(x) t = Min(e, n) y = Slice(x, s, t)"),
    "Slice of what always has 4 elements": Pair(
        "float[N] x, int64[1] s, int64[1] e, float[4] b => float[4] y",
        "p = Slice(x, s, e) u = Expand(p, four) y = Add(u, b)",
        "n = Shape(x) t = Min(e, n) p = Slice(x, s, t) u = Expand(p, four) y = Add(u, b)",
        {},
        {"four": I64([4])},
    ),
    "Pad whose result has 6 elements": Pair(
        "float[4] x, int64[2] p => float[6] y",
        "q = Pad(x, p) y = Reshape(q, six)",
        "m = Min(p, c) q = Pad(x, m) y = Reshape(q, six)",
        {},
        {"six": I64([6]), "c": I64(6)},
    ),
    "Range from 0": Pair(
        COUNTED,
        "y = Range(a, b, c)",
        "d = Sub(b, a) r = Range(z, d, c) y = Add(r, a)",
        {},
        {"c": I64(1), "z": I64(0)},
    ),
    "CumSum, from both sides": Pair(
        SUMMED,
        "y = CumSum(x, a)",
        "n = Less(a, z) p = Add(a, c) b = Where(n, p, a) y = CumSum(x, b)",
        {},
        {"c": I64(2), "z": I64(0)},
    ),
    "Reshape through a line": Pair(
        "float[2, 6] x, int64[2] s => float[A, B] y",
        "y = Reshape<allowzero = 1>(x, s)",
        "l = Flatten<axis = 0>(x) y = Reshape<allowzero = 1>(l, s)",
    ),
    "Expand as a product": Pair(
        "float[1, 3] x, int64[2] s => float[A, B] y",
        "y = Expand(x, s)",
        "o = ConstantOfShape<value = float[1] {1.0}>(s) y = Mul(x, o)",
    ),
    "OneHot as Equal": Pair(
        "int64[N] x, int64 d => float[N, M] y",
        "p = Abs(x) y = OneHot(p, d, v)",
        "p = Abs(x) r = Range(z, d, o) u = Unsqueeze(p, l) e = Equal(u, r) y = Cast<to = 1>(e)",
        {},
        {"v": F([0, 1]), "z": I64(0), "o": I64(1), "l": I64([1])},
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(8)
def test_an_amount_that_is_cut_off_is_found(name: str) -> None:
    find_difference(DIFFERENT[name])
    show_difference(DIFFERENT[name])


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.sample(8)
def test_other_amounts_raise_no_alarm(name: str) -> None:
    found = splitgraph.verify(*EQUAL[name].models())
    assert found.verdict == "equal", found


LOOP = (
    "y = Loop(n, , x) <body = l (int64 i, bool c, float[N] s) => (bool d, float[N] r) { d = Identity(c) r = Neg(s) }>"
)
AMOUNTS = {
    "a shape, and no data": (SHAPED, "y = Reshape(x, s)", {"s"}),
    "an offset": (SQUARE, "y = Trilu(x, k)", {"k"}),
    "an axis": (SUMMED, "y = CumSum(x, a)", {"a"}),
    "a computed offset": (SQUARE, "j = Neg(k) y = Trilu(x, j)", {"k"}),
    "positions": ("float[4] x, int64[N] i => float[N] y", "y = Gather(x, i)", set()),
    "a length that is a position, too": (
        "float[4] x, int64[1] i => float[N] y",
        "p = Slice(x, z, i) q = Gather(x, i) y = Add(p, q)",
        set(),
    ),
    "a number of iterations": ("float[N] x, int64 n => float[N] y", LOOP, set()),
    "a size": ("float[N] x => float[N] y", "s = Shape(x) y = Reshape(x, s)", set()),
}


@pytest.mark.parametrize("name", AMOUNTS)
def test_which_inputs_are_amounts(name: str) -> None:
    signature, body, expected = AMOUNTS[name]
    assert amount_inputs(parsed(signature, body, z=I64([0]))) == expected
