"""Counts that elements decide: one model takes each, the other one only that of ordinary numbers."""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph
from splitgraph.verification.inputs.other_counts import filled, patterns

from .model_pairs import Pair, find_difference, show_difference

F, I64 = np.float32, np.int64
FOUR, FREE = "float[1, 4] x => int64[A, B] y", "float[N] x => int64[A, B] y"
TARGETS = {"open": I64([2, -1]), "copied": I64([0, -1]), "four": I64([2, 4])}
ROWS = {"rows": I64([-1, 2]), "four_rows": I64([4, 2]), "c": F(-10)}
PLACES, PASSING = (
    "k = NonZero(x) y = Reshape(k, {})",
    "g = Greater(x, c) k = NonZero(g) t = Transpose(k) y = Reshape(t, {})",
)
HOW_MANY = "g = Greater(x, c) i = Cast<to=7>(g) n = ReduceSum<keepdims=0>(i)"
NMS = "y0 = NonMaxSuppression(b, s, most, io, score) y = Reshape(y0, {})"
BOXES = "float[1, 4, 4] b, float[1, 1, 4] s => int64[A, B] y"
SCORED = {"most": I64([1]), "io": F([0.5]), "score": F([0.5]), "one": I64([1, 3]), "any": I64([-1, 3])}
ZEROS = {"x": np.zeros((1, 4))}

DIFFERENT = {
    "four that are not 0": Pair(FOUR, PLACES.format("open"), PLACES.format("four"), ZEROS, TARGETS),
    "four, and a copied size": Pair(FOUR, PLACES.format("copied"), PLACES.format("four"), ZEROS, TARGETS),
    "four above a number": Pair(
        FOUR, PASSING.format("rows"), PASSING.format("four_rows"), {"x": [[-20, 1, 2, 3]]}, ROWS
    ),
    "one that is not 0": Pair(
        "float[1] x => int64[A, B] y",
        PLACES.format("open"),
        PLACES.format("one"),
        {"x": [0]},
        {"open": I64([1, -1]), "one": I64([1, 1])},
    ),
    "one box": Pair(
        BOXES, NMS.format("any"), NMS.format("one"), {"b": np.ones((1, 4, 4)), "s": np.full((1, 1, 4), -20)}, SCORED
    ),
    "two that are unique": Pair(
        "float[2] x => float[A, B] y",
        "k = Unique(x) y = Reshape(k, open)",
        "k = Unique(x) y = Reshape(k, two)",
        {"x": [1, 1]},
        {"open": I64([-1, 1]), "two": I64([2, 1])},
    ),
    "only one that is not 0": Pair(
        "float[8] x => int64[] y",
        "k = NonZero(x) t = Transpose(k) y = Squeeze(t, last)",
        "k = NonZero(x) t = Transpose(k) y = Squeeze(t)",
        {"x": [1, 0, 0, 0, 0, 0, 0, 0]},
        {"last": I64([1])},
    ),
    "only one above a number": Pair(
        "float[8] x => int64[] y",
        "g = Greater(x, c) k = NonZero(g) t = Transpose(k) y = Squeeze(t, last)",
        "g = Greater(x, c) k = NonZero(g) t = Transpose(k) y = Squeeze(t)",
        {"x": [30, -30, -30, -30, -30, -30, -30, -30]},
        {"last": I64([1]), "c": F(12)},
    ),
    "at most eleven": Pair(
        "float[12] x => int64[A] y",
        f"{HOW_MANY} y = Range(zero, n, one)",
        f"{HOW_MANY} m = Min(n, most) y = Range(zero, m, one)",
        {"x": [9] * 12},
        {"c": F(2), "zero": I64(0), "one": I64(1), "most": I64(11)},
    ),
    "one at least": Pair(
        "float[12] x => int64[A] y",
        f"{HOW_MANY} y = Range(zero, n, one)",
        f"{HOW_MANY} m = Max(n, one) y = Range(zero, m, one)",
        {"x": [-9] * 12},
        {"c": F(2), "zero": I64(0), "one": I64(1)},
    ),
}
EQUAL = {
    "none at least": Pair(
        "float[12] x => int64[A] y",
        f"{HOW_MANY} y = Range(zero, n, one)",
        f"{HOW_MANY} m = Abs(n) y = Range(zero, m, one)",
        {},
        {"c": F(2), "zero": I64(0), "one": I64(1)},
    ),
    "two spellings of a size": Pair(FOUR, PLACES.format("open"), PLACES.format("copied"), {}, TARGETS),
    "one way back": Pair(FOUR, "y = NonZero(x)", "k = NonZero(x) y = Reshape(k, copied)", {}, TARGETS),
    "twice turned": Pair(FREE, "y = NonZero(x)", "k = NonZero(x) t = Transpose(k) y = Transpose(t)"),
    "another order of comparison": Pair(
        FREE, "g = Greater(x, c) y = NonZero(g)", "g = Less(c, x) y = NonZero(g)", {}, {"c": F([0.25])}
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_count_that_is_frozen_is_found(name: str) -> None:
    find_difference(DIFFERENT[name])
    show_difference(DIFFERENT[name])


@pytest.mark.parametrize("name", EQUAL)
def test_other_counts_raise_no_alarm(name: str) -> None:
    found = splitgraph.verify(*EQUAL[name].models())
    assert found.verdict == "equal", found


FILLED = {
    "float32": (
        F([5, 6, 7]),
        [F([0, 0, 0]), F([0, 6, 0]), F([5, 6, 0]), F([1, 1, 1]), F([-1, -1, -1]), F([-1, 1, -1])],
    ),
    "uint8 has no numbers below 0": (np.uint8([5, 6]), [np.uint8([0, 0]), np.uint8([0, 6])]),
    "bool": (np.array([True, True]), [np.array([False, False]), np.array([False, True])]),
    "text stays": (np.array(["a"], dtype=object), [np.array(["a"], dtype=object)]),
}


@pytest.mark.parametrize("name", FILLED)
def test_filled(name: str) -> None:
    value, expected = FILLED[name]
    made = [filled(value, pattern) for pattern in patterns([0.0])]
    for found, wanted in zip(made, expected, strict=False):
        assert found.dtype == value.dtype
        np.testing.assert_array_equal(found, wanted)
