"""Numbers between the constants of a region: what two limits bound shows neither at the limits nor beside them."""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph
from splitgraph.verification.regions.drawing.between import draw_between

from ..model_pairs import Pair, find_difference, show_difference

F, F16, I64 = np.float32, np.float16, np.int64
LINE, FOUR, WHOLE = "float[N] x => float[N] y", "float[N, 4] x => float[N, 4] y", "int64[N] x => int64[N] y"
TWO = "float[N] x, float[N] z => float[N] y"
HALF = "float16[N] x => float16[N] y"
LIMITS = {"low": F(50), "high": F(60)}
SAME = "y = Identity(x)"
# A number that is 0 outside of 50 to 60.
BUMP = "a = Sub(x, low) b = Relu(a) c = Sub(high, x) d = Relu(c) e = Mul(b, d) "
BY_MINIMUM = (
    "m = ReduceMin<keepdims = 1>(x) n = ReduceMax<keepdims = 1>(x) a = Sub(m, low) b = Relu(a) c = Sub(high, n) "
    "d = Relu(c) e = Mul(b, d) "
)
OF_TWO = BUMP + "f = Sub(under, z) g = Relu(f) h = Mul(e, g) "
OF_CLIPS = "a = Clip(x, low, high) b = Sub(a, low) c = Sub(high, a) e = Mul(b, c) "
WHOLE_BUMP = "a = Sub(x, low) b = Max(a, o) c = Sub(high, x) d = Max(c, o) e = Mul(b, d) "
WHOLE_LIMITS = {"low": I64(500), "high": I64(600), "o": I64(0)}
HALVES = {"low": F16(50), "high": F16(60)}

DIFFERENT = {
    "another function of a bump": Pair(LINE, BUMP + "y = Sin(e)", BUMP + "y = Identity(e)", {"x": [55]}, LIMITS),
    "near functions of a bump": Pair(LINE, BUMP + "y = Sin(e)", BUMP + "y = Atan(e)", {"x": [55]}, LIMITS),
    "one model adds a bump": Pair(LINE, BUMP + "y = Add(x, e)", SAME, {"x": [55]}, LIMITS),
    "a bump of Clip": Pair(LINE, SAME, OF_CLIPS + "y = Add(x, e)", {"x": [55]}, LIMITS),
    "a bump of all elements": Pair(
        FOUR, BY_MINIMUM + "s = Sin(e) y = Add(x, s)", BY_MINIMUM + "y = Add(x, e)", {"x": np.full((1, 4), 55)}, LIMITS
    ),
    "one model adds a bump of all elements": Pair(
        FOUR, SAME, BY_MINIMUM + "y = Add(x, e)", {"x": np.full((2, 4), 55)}, LIMITS
    ),
    "a bump of two inputs": Pair(
        TWO, OF_TWO + "y = Sin(h)", OF_TWO + "y = Identity(h)", {"x": [55], "z": [-8]}, LIMITS | {"under": F(-5)}
    ),
    "a bump of whole numbers": Pair(WHOLE, WHOLE_BUMP + "y = Add(x, e)", SAME, {"x": [550]}, WHOLE_LIMITS),
    "a bump of float16": Pair(HALF, BUMP + "y = Add(x, e)", SAME, {"x": [55]}, HALVES),
    "all elements behind a computed limit": Pair(
        FOUR,
        "e = Exp(k) g = Greater(x, e) h = Cast<to = 6>(g) j = ReduceMin<keepdims = 1>(h) r = Cast<to = 9>(j) "
        "y = Where(r, o, x)",
        SAME,
        {"x": np.full((1, 4), 30)},
        {"k": F(3.25), "o": F(1)},
    ),
}
EQUAL = {
    "a bump in other words": Pair(
        LINE,
        BUMP + "y = Add(x, e)",
        "a = Sub(x, low) b = Max(a, o) c = Sub(high, x) d = Max(c, o) e = Mul(d, b) y = Add(e, x)",
        constants=LIMITS | {"o": F(0)},
    ),
    "limits one behind the other": Pair(
        LINE, "y = Clip(x, low, high)", "a = Max(x, low) y = Min(a, high)", constants=LIMITS
    ),
    "whole limits": Pair(
        WHOLE, WHOLE_BUMP + "y = Add(x, e)", WHOLE_BUMP + "n = Neg(e) y = Sub(x, n)", constants=WHOLE_LIMITS
    ),
}


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
@pytest.mark.sample(8)
def test_what_limits_bound_is_met(pair: Pair) -> None:
    show_difference(pair)
    find_difference(pair)


@pytest.mark.parametrize("pair", EQUAL.values(), ids=EQUAL)
@pytest.mark.sample(8)
def test_equal_bounds_raise_no_alarm(pair: Pair) -> None:
    found = splitgraph.verify(*pair.models())
    assert found.verdict == "equal", found


def test_each_interval_has_a_number() -> None:
    drawn = list(draw_between({"x": np.ones(3, F)}, [50.0, 60.0], np.random.default_rng(0)))
    assert [values["x"].tolist() for values in drawn[:4]] == [[-1.0] * 3, [25.0] * 3, [55.0] * 3, [90.0] * 3]
    assert {number for values in drawn[4:] for number in values["x"].tolist()} == {-1.0, 25.0, 55.0, 90.0}


@pytest.mark.parametrize(
    ("value", "constants"),
    [
        pytest.param(np.ones(3, F), [], id="no constants"),
        pytest.param(np.ones(3, F), [1e9], id="an end of a type"),
        pytest.param(np.ones(3, np.bool_), [50.0], id="conditions"),
        pytest.param(np.ones(3, np.uint8), [50.0], id="bytes, which are all drawn"),
        pytest.param(np.array(["a"], object), [50.0], id="texts"),
    ],
)
def test_without_limits_nothing_is_drawn(value: np.ndarray, constants: list[float]) -> None:
    assert not list(draw_between({"x": value}, constants, np.random.default_rng(0)))


def test_whole_numbers_stay_in_their_type() -> None:
    drawn = draw_between({"x": np.ones(2, np.uint16)}, [60000.0], np.random.default_rng(0))
    assert {number for values in drawn for number in values["x"].tolist()} == {30000}
