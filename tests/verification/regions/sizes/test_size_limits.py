"""Limits of sizes: whatever function of a size is compared, the models run at both sides of the limit."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from splitgraph import verify
from splitgraph.verification.budget import Budget
from splitgraph.verification.regions.sizes import size_limits

from ..model_pairs import Pair, find_difference, show_difference

F, I64 = np.float32, np.int64
LINE = "float[N] x => float[N] y"
CUT = "float[N] x => float[M] y"
SAME = "y = Identity(x)"
ZERO = {"o": F(0)}
ENDS = {"e": I64([2**62]), "axis": I64([0])}


def _limit(text: str) -> str:
    """Return nodes that give zeros where a condition `c` of the size `n` holds."""
    return f"n = Shape(x) {text} y = Where(c, o, x)"


def _of_root(operator: str) -> str:
    return _limit(f"f = Cast<to = 1>(n) r = Sqrt(f) c = {operator}(r, k)")


# Of each: what is computed from the size and compared, its constants, and a size at which that shows.
ONE_MODEL = {
    "a negative number is added": ("d = Add(n, a) c = Greater(d, k)", {"a": I64([-100]), "k": I64([0])}, 150),
    "a limit that is computed": ("l = Mul(k, k) c = Greater(n, l)", {"k": I64([20])}, 401),
    "half of the size": ("d = Div(n, a) c = Greater(d, k)", {"a": I64([2]), "k": I64([200])}, 450),
    "the rest of the size": ("d = Sub(n, a) c = Greater(d, k)", {"a": I64([300]), "k": I64([200])}, 501),
    "a root": ("f = Cast<to = 1>(n) r = Sqrt(f) c = Greater(r, k)", {"k": F([20])}, 401),
    "a logarithm": ("f = Cast<to = 1>(n) r = Log(f) c = Greater(r, k)", {"k": F([7.5])}, 2000),
    "a negative size": ("d = Neg(n) c = Less(d, k)", {"k": I64([-300])}, 301),
    "a remainder": ("d = Mod(n, a) c = Equal(d, k)", {"a": I64([7]), "k": I64([5])}, 19),
    "a fraction": ("f = Cast<to = 1>(n) c = Greater(f, k)", {"k": F([100.5])}, 101),
    "a scale": ("f = Cast<to = 1>(n) s = Mul(f, a) c = Greater(s, k)", {"a": F([0.01]), "k": F([5])}, 600),
    "a largest size": ("f = Cast<to = 1>(n) r = Sqrt(f) m = Max(r, k) c = Greater(m, k)", {"k": F([20])}, 401),
    "a condition of two": (
        "f = Cast<to = 1>(n) r = Sqrt(f) a = Greater(r, k) b = Less(r, l) c = And(a, b)",
        {"k": F([20]), "l": F([20.1])},
        402,
    ),
    "a mask of places": (
        "z = Squeeze(n) i = Range(b, z, s) f = Cast<to = 1>(i) r = Sqrt(f) c = Greater(r, k)",
        {"b": I64(0), "s": I64(1), "k": F(20)},
        402,
    ),
}
SIZE_ONLY = {
    name: Pair(LINE, SAME, _limit(text), {"x": np.ones(size)}, ZERO | constants)
    for name, (text, constants, size) in ONE_MODEL.items()
}
BOTH = {
    ">=": Pair(LINE, _of_root("Greater"), _of_root("GreaterOrEqual"), {"x": np.ones(400)}, ZERO | {"k": F([20])}),
    "another limit": Pair(
        LINE,
        _of_root("Greater"),
        _limit("f = Cast<to = 1>(n) r = Sqrt(f) c = Greater(r, l)"),
        {"x": np.ones(420)},
        ZERO | {"k": F([20]), "l": F([20.9])},
    ),
    "another function": Pair(
        LINE,
        _of_root("Greater"),
        _limit("c = Greater(n, l)"),
        {"x": np.ones(430)},
        ZERO | {"k": F([20]), "l": I64([441])},
    ),
    "the end of a Slice": Pair(CUT, SAME, "y = Slice(x, s, e, axis)", {"x": np.ones(120)}, ENDS | {"s": I64([-100])}),
    "a Slice of more": Pair(
        CUT,
        "y = Slice(x, s, e, axis)",
        "y = Slice(x, t, e, axis)",
        {"x": np.ones(2500)},
        ENDS | {"s": I64([-2000]), "t": I64([-3000])},
    ),
    "a diagonal": Pair(
        "float[N, K] x => float[N, K] y", SAME, "y = Trilu<upper = 1>(x, k)", {"x": np.ones((130, 2))}, {"k": I64(-100)}
    ),
    "one size in fifty": Pair(
        "float[1, 1, H] x => float[1, 1, A] y",
        "y = MaxPool<kernel_shape = [2], strides = [50]>(x)",
        "y = MaxPool<kernel_shape = [2], strides = [50], ceil_mode = 1>(x)",
        {"x": np.ones((1, 1, 101))},
    ),
    "a product of two sizes": Pair(
        "float[N, K] x => float[N, K] y",
        SAME,
        "n = Shape(x) p = ReduceProd<keepdims = 0>(n) f = Cast<to = 1>(p) r = Sqrt(f) c = Greater(r, k) "
        "y = Where(c, o, x)",
        {"x": np.ones((50, 50))},
        ZERO | {"k": F(40)},
    ),
}
BRANCH = (
    "h = ReduceMax<keepdims = 0>(x) q = Greater(h, o) y = If(q)<then_branch = t () => (float[N] r) {{ v = Relu(x) "
    "n = Shape(v) f = Cast<to = 1>(n) s = Sqrt(f) c = {}(s, k) r = Where(c, o, v) }}, "
    "else_branch = e () => (float[N] i) {{ i = Identity(x) }}>"
)
LOOP = (
    "y = Loop(two, true, x)<body = b (int64 i, bool go, float[N] v) => (bool on, float[N] w) {{ on = Identity(go) "
    "n = Shape(v) f = Cast<to = 1>(n) s = Sqrt(f) c = {}(s, k) w = Where(c, o, v) }}>"
)
INSIDE = {
    name: Pair(
        LINE,
        text.format("Greater"),
        text.format("GreaterOrEqual"),
        {"x": np.ones(400)},
        {"k": F([20]), "two": I64(2), "true": np.bool_(True)} | ZERO,
    )
    for name, text in {"in a branch": BRANCH, "in a loop": LOOP}.items()
}


def _of_two(text: str) -> str:
    """Return nodes that give zeros where a condition `c` of two sizes `b` and `n` holds."""
    return f"b = Shape<start = 0, end = 1>(x) n = Shape<start = 1, end = 2>(x) {text} y = Where(c, o, x)"


def _both(first: str, second: str) -> str:
    return _of_two(f"p = {first} q = {second} c = And(p, q)")


TABLE = "float[N, K] x => float[N, K] y"
PRODUCT = _of_two("m = Mul(b, n) c = {}(m, k)")
ROOTS = (
    "f = Cast<to = 1>(b) r = Sqrt(f) g = Cast<to = 1>(n) l = Log(g) p = Greater(r, k) q = Greater(l, h) c = And(p, q)"
)
# Conditions of two sizes, or of a product of them.
OF_TWO = {
    name: Pair(
        TABLE, before, after, {"x": np.ones(sizes)}, ZERO | {key: I64([number]) for key, number in limits.items()}
    )
    for name, before, after, sizes, limits in (
        ("both are large", SAME, _both("Greater(b, k)", "Greater(n, h)"), (6, 91), {"k": 5, "h": 90}),
        (
            "another limit of one",
            _both("Greater(b, k)", "Greater(n, h)"),
            _both("Greater(b, k)", "Greater(n, j)"),
            (6, 91),
            {"k": 5, "h": 90, "j": 91},
        ),
        ("both are one size", SAME, _both("Equal(b, k)", "Equal(n, h)"), (7, 33), {"k": 7, "h": 33}),
        ("one is small, one is large", SAME, _both("Less(b, k)", "Greater(n, h)"), (1, 91), {"k": 2, "h": 90}),
        ("one size in some large ones", SAME, _both("Equal(b, k)", "Greater(n, h)"), (17, 300), {"k": 17, "h": 200}),
        (">= for a product", PRODUCT.format("Greater"), PRODUCT.format("GreaterOrEqual"), (1, 101), {"k": 101}),
        ("a product of one number", SAME, PRODUCT.format("Equal"), (11, 13), {"k": 143}),
    )
} | {
    "functions of two sizes": Pair(
        TABLE, SAME, _of_two(ROOTS), {"x": np.ones((40, 80))}, ZERO | {"k": F([6]), "h": F([4.3])}
    )
}
PAIRS = SIZE_ONLY | BOTH | INSIDE | OF_TWO


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.sample(8)
def test_a_limit_is_reached(pair: Pair) -> None:
    show_difference(pair)
    find_difference(pair)


NEAR_MISSES = {
    "both have the limit": Pair(
        LINE,
        _of_root("Greater"),
        _limit("f = Cast<to = 1>(n) r = Sqrt(f) g = LessOrEqual(r, k) c = Not(g)"),
        constants=ZERO | {"k": F([20])},
    ),
    "two limits together do nothing": Pair(
        LINE,
        SAME,
        "n = Shape(x) a = Min(n, h) b = Max(n, h) s = Add(a, b) e = Sub(s, h) y = Slice(x, z, e)",
        constants={"h": I64([300]), "z": I64([0])},
    ),
    "a tenth, computed twice": Pair(
        CUT,
        "n = Shape(x) f = Cast<to = 1>(n) s = Mul(f, t) r = Floor(s) e = Cast<to = 7>(r) y = Slice(x, z, e)",
        "n = Shape(x) e = Div(n, ten) y = Slice(x, z, e)",
        constants={"t": F([0.1]), "ten": I64([10]), "z": I64([0])},
    ),
    "a Slice of dimensions that are fixed": Pair(
        "float[6] x => float[6] y", SAME, "y = Slice(x, s, e, axis)", constants=ENDS | {"s": I64([-100])}
    ),
    "a negative factor": Pair(
        "int64[A] x => int64[A] y", "y = Mul(x, s)", "n = Neg(x) y = Mul(n, t)", constants={"s": I64(-90), "t": I64(90)}
    ),
    "a negative factor of what is fixed": Pair(
        "int64[4] x => int64[4] y", "y = Mul(x, s)", "n = Neg(x) y = Mul(n, t)", constants={"s": I64(-90), "t": I64(90)}
    ),
    "a Slice from the start": Pair(CUT, SAME, "y = Slice(x, s, e, axis)", constants=ENDS | {"s": I64([-(2**40)])}),
}


@pytest.mark.parametrize("pair", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_equal_sizes_stay_equal(pair: Pair) -> None:
    found = verify(*pair.models())
    assert found.verdict == "equal", found


def test_a_limit_that_no_input_reaches_is_named() -> None:
    pair = Pair(LINE, SAME, _limit("c = Greater(n, k)"), constants=ZERO | {"k": I64([3_000_000])})
    found = verify(*pair.models())
    assert found.verdict == "not-run"
    assert "decides otherwise at a size of 2999999, which no run had" in found.diagnostics[0].message


CUT_SHORT = {
    "a comparison": (BOTH[">="], "main/Greater#3"),
    "a node of one model": (SIZE_ONLY["a root"], "main/Identity#0"),
    "in a branch": (INSIDE["in a branch"], "main/If#2"),
    "a length that is computed": (NEAR_MISSES["a tenth, computed twice"], "main/Cast#1"),
}


@pytest.mark.parametrize(("pair", "part"), CUT_SHORT.values(), ids=CUT_SHORT)
def test_a_search_that_the_time_ends_says_so(pair: Pair, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_limits, "time", SimpleNamespace(monotonic=count(1).__next__))
    monkeypatch.setattr(Budget, "searching_ends", lambda self: 40)
    found = verify(*pair.models())
    (note,) = [each for each in found.diagnostics if each.code == "SG513"]
    assert f"1 of 1 changed parts were compared at all sizes at which they may decide otherwise: {part}" in note.message
    assert [(region.is_open, region.reason) for region in found.regions] == [(True, "no time for sizes from 41 on")]


def test_a_search_that_ends_says_nothing() -> None:
    found = verify(*NEAR_MISSES["both have the limit"].models())
    assert ([region.is_open for region in found.regions], found.diagnostics) == ([False], ())


CUBE = "float[N, S, T] x => float[N, S, T] y"
EACH = "s = Shape(x) g = Greater(s, k) h = Cast<to = 6>(g) j = ReduceMin<keepdims = 0>(h) c = Cast<to = 9>(j) "
TOGETHER = {
    "three sizes at once": Pair(
        CUBE, SAME, EACH + "y = Where(c, o, x)", {"x": np.ones((8, 10, 12))}, ZERO | {"k": I64([7, 9, 11])}
    ),
    "three equal sizes": Pair(
        CUBE,
        SAME,
        "s = Shape(x) a = ReduceMin<keepdims = 0>(s) b = ReduceMax<keepdims = 0>(s) c = Equal(a, b) y = Where(c, o, x)",
        {"x": np.ones((5, 5, 5))},
        ZERO,
    ),
    "each large, in one model": Pair(
        CUBE, EACH + "y = Where(c, o, x)", SAME, {"x": np.ones((40, 40, 40))}, ZERO | {"k": I64([39, 20, 10])}
    ),
}


@pytest.mark.parametrize("pair", TOGETHER.values(), ids=TOGETHER)
def test_limits_of_several_sizes_are_met_at_once(pair: Pair) -> None:
    show_difference(pair)
    find_difference(pair)


def test_equal_limits_of_several_sizes_raise_no_alarm() -> None:
    pair = Pair(
        CUBE, EACH + "y = Where(c, o, x)", EACH + "d = Not(c) y = Where(d, x, o)", {}, ZERO | {"k": I64([7, 9, 11])}
    )
    found = verify(*pair.models())
    assert found.verdict == "equal", found
