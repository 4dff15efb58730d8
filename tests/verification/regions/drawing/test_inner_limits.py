"""Limits inside of a region: behind a root, a scale or a sum, in numbers of iterations, positions and texts."""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph

from ..model_pairs import Pair, find_difference, show_difference

F, I32, I64 = np.float32, np.int32, np.int64
LINE = "float[N] x => float[N] y"
FOUR = "float[4] x => float[4] y"
WHOLE = "int32[N] x => int32[N] y"
SAME = "y = Identity(x)"
BAND = "a = Greater(r, low) b = Less(r, high) c = And(a, b) y = Where(c, o, x)"
CALLED = '<domain: "local", opset_import: ["": 18]> f (x, low, high, o) => (y) {{ {} }}'

# Of each: what is computed from the data, the limits, and a number between them.
BANDS = {
    "a root": (LINE, "m = Abs(x) r = Sqrt(m)", (30, 31), {}, 930),
    "a scale": (LINE, "r = Mul(x, k)", (5, 5.3), {"k": F(0.37)}, 13.9),
    "an exponential": (LINE, "r = Exp(x)", (50, 60), {}, 4),
    "a sum": (FOUR, "r = ReduceSum(x, k)", (50, 60), {"k": I64([0])}, 13.75),
    "a product of matrices": (FOUR, "r = MatMul(x, k)", (50, 51), {"k": np.eye(4, dtype=F)}, 50.5),
}
IN_BANDS = {
    name: Pair(
        signature,
        SAME,
        f"{text} {BAND}",
        {"x": np.full(4, number)},
        {"low": F(limits[0]), "high": F(limits[1]), "o": F(0)} | constants,
    )
    for name, (signature, text, limits, constants, number) in BANDS.items()
}
EQUAL_AT = {
    name: Pair(WHOLE, SAME, f"{text} c = Equal(r, k) y = Where(c, o, x)", {"x": [number]}, constants)
    for name, (text, constants, number) in {
        "a product": ("r = Mul(x, s)", {"s": I32(7), "k": I32(1400), "o": I32(0)}, 200),
        "a sum": ("r = Add(x, s)", {"s": I32(1000), "k": I32(1777), "o": I32(0)}, 777),
        "a sum of fractions": (
            "f = Cast<to = 1>(x) r = Add(f, s)",
            {"s": F(1000), "k": F(1777), "o": I32(0)},
            777,
        ),
    }.items()
}
ROOT = IN_BANDS["a root"]
AFFINE = {"k": F(0.1), "f": F(5), "e": F(0.1), "o": F(0)}
WHOLE_NUMBERS = {"k": I64(12345), "m": I64(999), "s": I64(700), "o": I64(0)}
WHOLE64 = "int64[N] x => int64[N] y"
NARROW = "b = Sub(a, f) d = Abs(b) c = Less(d, e) y = Where(c, o, x)"
# Windows between the numbers that are drawn first, each with a number inside.
WINDOWS = {
    name: Pair(signature, SAME, text, {"x": number}, constants)
    for name, (signature, text, number, constants) in {
        "of a scale": (LINE, f"a = Mul(x, k) {NARROW}", [50], AFFINE),
        "of a scale, narrow": (LINE, f"a = Mul(x, k) {NARROW}", [50], AFFINE | {"e": F(1e-4)}),
        "of a square": (
            LINE,
            "a = Mul(x, k) b = Sub(a, f) d = Mul(b, b) c = Less(d, e) y = Where(c, o, x)",
            [50],
            AFFINE | {"e": F(1e-3)},
        ),
        "of an exponential": (LINE, f"a = Exp(x) {NARROW}", [np.log(20.0)], AFFINE | {"f": F(20), "e": F(0.01)}),
        "of a sine": (LINE, f"a = Sin(x) {NARROW}", [np.arcsin(0.3)], AFFINE | {"f": F(0.3), "e": F(5e-4)}),
        "of a mean": (FOUR, f"a = ReduceMean(x) {NARROW}", [50] * 4, AFFINE | {"f": F(50), "e": F(0.01)}),
        "of each channel": (
            FOUR,
            f"a = Mul(x, k) {NARROW}",
            [0, 0, 0, 80],
            AFFINE | {"f": F([1, 2, 3, 8]), "e": F([-1, -1, -1, 0.01])},
        ),
        "of two exclusive ors": (
            WHOLE64,
            "b = BitwiseXor(x, k) a = BitwiseXor(b, m) c = Equal(a, s) y = Where(c, o, x)",
            [12345 ^ 999 ^ 700],
            WHOLE_NUMBERS,
        ),
    }.items()
}
OTHERS = {
    "in a function of both": ROOT._replace(
        before="y = local.f(x, low, high, o)",
        after="y = local.f(x, low, high, o)",
        functions=(CALLED.format(SAME), CALLED.format(ROOT.after)),
    ),
    "in a function of one": ROOT._replace(
        after="y = local.f(x, low, high, o)", functions=("", CALLED.format(ROOT.after))
    ),
    "a number of iterations": Pair(
        "int64 m, float[3] x => float[3] y",
        "y = Loop(m, t, x)<body = b (int64 i, bool c, float[3] v) => (bool d, float[3] w) "
        "{ d = Identity(c) w = Add(v, o) }>",
        "y = Loop(m, t, x)<body = b (int64 i, bool c, float[3] v) => (bool d, float[3] w) "
        "{ l = Less(i, k) d = And(l, c) w = Add(v, o) }>",
        {"m": 200, "x": [1, 2, 3]},
        {"t": np.bool_(True), "o": F(1), "k": I64(100)},
    ),
    "a negative position in a table": Pair(
        "int64[3] i => float[3] y",
        "t = Constant<value_floats = [1.0, 2.0, 3.0]>() y = Gather(t, i)",
        "t = Constant<value_floats = [1.0, 2.0, 3.0]>() m = Max(i, z) y = Gather(t, m)",
        {"i": [-1, 0, 1]},
        {"z": I64(0)},
    ),
    "one position twice": Pair(
        "float[5] x, int64[3] i, float[3] u => float[5] y",
        'y = ScatterElements<axis = 0, reduction = "add">(x, i, u)',
        "g = GatherElements<axis = 0>(x, i) s = Add(g, u) y = ScatterElements<axis = 0>(x, i, s)",
        {"x": [1, 2, 3, 4, 5], "i": [1, 1, 2], "u": [1, 2, 3]},
    ),
    "one position of ScatterND twice": Pair(
        "float[5] x, int64[3, 1] i, float[3] u => float[5] y",
        'y = ScatterND<reduction = "add">(x, i, u)',
        "g = GatherND(x, i) s = Add(g, u) y = ScatterND(x, i, s)",
        {"x": [1, 2, 3, 4, 5], "i": [[1], [1], [2]], "u": [1, 2, 3]},
    ),
    "a negative position that is written": Pair(
        "float[5] x, int64[3] i, float[3] u => float[5] y",
        "y = ScatterElements<axis = 0>(x, i, u)",
        "m = Max(i, z) y = ScatterElements<axis = 0>(x, m, u)",
        {"x": [1, 2, 3, 4, 5], "i": [-1, 1, 2], "u": [1, 2, 3]},
        {"z": I64(0)},
    ),
    **{
        f"a text of {count} parts": Pair(
            "string[3] x => string[3, K] y, int64[3] n",
            'y, n = StringSplit<delimiter = ",", maxsplit = 5>(x)',
            f'y, n = StringSplit<delimiter = ","{more}>(x)',
            {"x": [",".join("a" * count), "b", "c"]},
            opset=20,
        )
        for count, more in ((8, ", maxsplit = 6"), (40, ""))
    },
}
DIFFERENT = (
    {f"between limits of {name}": pair for name, pair in IN_BANDS.items()}
    | {
        f"the first model alone has limits of {name}": p._replace(before=p.after, after=SAME)
        for name, p in IN_BANDS.items()
    }
    | {f"equal to {name}": pair for name, pair in EQUAL_AT.items()}
    | {f"a window {name}": pair for name, pair in WINDOWS.items()}
    | OTHERS
)
# The same limits in other words, and continuous results at limits.
EQUAL = {
    "HardSigmoid": Pair(
        LINE,
        "y = HardSigmoid<alpha = 0.2, beta = 0.5>(x)",
        "a = Mul(x, k) b = Add(a, h) y = Clip(b, o, one)",
        constants={"k": F(0.2), "h": F(0.5), "o": F(0), "one": F(1)},
    ),
    "a scaled limit": Pair(
        LINE,
        "a = Div(x, k) c = Greater(a, three) y = Cast<to = 1>(c)",
        "c = Greater(x, limit) y = Cast<to = 1>(c)",
        constants={"k": F(8), "three": F(3), "limit": F(24)},
    ),
    # Of a negative infinity, the root is NaN and the power infinite.
    "a root as a power": Pair(
        LINE,
        "a = Abs(x) r = Sqrt(a) c = Greater(r, k) y = Cast<to = 1>(c)",
        "a = Abs(x) r = Pow(a, h) c = Less(k, r) y = Cast<to = 1>(c)",
        constants={"k": F(30), "h": F(0.5)},
    ),
    "distinct positions": Pair(
        "float[5] x, int64[3] i, float[3] u => float[5] y",
        "y = ScatterElements<axis = 0>(x, i, u)",
        "j = Unsqueeze(i, one) y = ScatterND(x, j, u)",
        constants={"one": I64([1])},
    ),
}


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
@pytest.mark.sample(7)
def test_a_limit_is_met(pair: Pair) -> None:
    show_difference(pair)
    find_difference(pair)


@pytest.mark.parametrize("pair", EQUAL.values(), ids=EQUAL)
def test_equal_limits_raise_no_alarm(pair: Pair) -> None:
    found = splitgraph.verify(*pair.models())
    assert found.verdict == "equal", found


def test_what_no_other_engine_runs_is_not_called_equal_at_special_numbers() -> None:
    quick = "a = Mul(x, k) s = Sigmoid(a) y = Mul(a, s)"
    before = "y = com.microsoft.ScaledSiLU<alpha = 1.702>(x)"
    guarded = "n = IsNaN(x) w = Where(n, o, x) a = Mul(w, k) s = Sigmoid(a) y = Mul(a, s)"
    constants = {"k": F(1.702), "o": F(0)}
    assert splitgraph.verify(*Pair(LINE, before, quick, constants=constants).models()).verdict == "equal"
    found = splitgraph.verify(*Pair(LINE, before, guarded, constants=constants).models())
    assert found.verdict == "not-run"
    assert "whether the models differ or only the kernels of the engine is not known" in found.diagnostics[0].message
