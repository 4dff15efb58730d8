"""Models that differ in something hard to see: amounts, sums beyond the ends of integers, numerals, computed limits.

This file continues the table of `test_hidden_differences`.
"""

from __future__ import annotations

import numpy as np
import pytest

from .model_pairs import Pair, find_difference, show_difference

F, I8, I32, I64 = np.float32, np.int8, np.int32, np.int64
LINE = "float[N] x => float[N] y"
WHOLE = "int32[N] x => int32[N] y"

WRITTEN = {
    "updates beyond a limit": Pair(
        "int32[6] x, int32[2] u => int32[6] y",
        "y = ScatterElements(x, i, u)",
        "c = Min(u, most) y = ScatterElements(x, i, c)",
        {"x": [0] * 6, "u": [70000, 1]},
        {"i": I64([0, 3]), "most": I32(65536)},
    ),
    "updates of rows": Pair(
        "int64[4, 2] x, int64[1, 2] u => int64[4, 2] y",
        "y = ScatterND(x, i, u)",
        "c = Max(u, least) y = ScatterND(x, i, c)",
        {"x": np.zeros((4, 2), I64), "u": [[-900, 1]]},
        {"i": I64([[1]]), "least": I64(-500)},
    ),
}

ALONG_AN_AXIS = {
    "the first of equals": Pair(
        "float[N, 4] x => int64[N, 1] y",
        "y = ArgMax<axis = 1>(x)",
        "y = ArgMax<axis = 1, select_last_index = 1>(x)",
        {"x": [[1, 1, 0, 0]]},
    ),
    "a sum of one more axis": Pair(
        "float[N, 3] x => float[1, 1] y",
        "y = ReduceSum(x)",
        "r = ReduceSum(x, a) y = ReduceMax(r)",
        {"x": [[1, 2, 3], [1, 2, 3]]},
        {"a": I64([1])},
    ),
}

SUMS = {
    "of two": Pair(
        "int32[N] x, int32[N] z => int32[N] y",
        "y = Add(x, z)",
        "a = Cast<to = 7>(x) b = Cast<to = 7>(z) s = Add(a, b) c = Min(s, most) y = Cast<to = 6>(c)",
        {"x": [2**31 - 1], "z": [2**31 - 1]},
        {"most": I64(2**31 - 1)},
    ),
    "of halves": Pair(
        "int32[N] x, int32[N] z => int32[N] y",
        "s = Add(x, z) y = Div(s, two)",
        "a = Cast<to = 7>(x) b = Cast<to = 7>(z) s = Add(a, b) h = Div(s, wide) y = Cast<to = 6>(h)",
        {"x": [2**30], "z": [2**30]},
        {"two": I32(2), "wide": I64(2)},
    ),
}

NUMERALS = {
    "a cap of numbers that were texts": Pair(
        "string[N] x => float[N] y",
        "y = Cast<to = 1>(x)",
        "c = Cast<to = 1>(x) y = Min(c, most)",
        {"x": ["1e10"]},
        {"most": F(1000)},
    ),
    "a threshold of numbers that were texts": Pair(
        "string[N] x => bool[N] y",
        "c = Cast<to = 1>(x) y = Greater(c, t)",
        "c = Cast<to = 1>(x) y = GreaterOrEqual(c, t)",
        {"x": ["37.5"]},
        {"t": F(37.5)},
    ),
}

COMPUTED = {
    "a limit that nodes compute": Pair(
        "float[N] x => bool[N] y",
        "t = Exp(e) y = Greater(x, t)",
        "t = Exp(e) y = GreaterOrEqual(x, t)",
        {"x": np.exp(F(3.25), dtype=F).reshape(1)},
        {"e": F(3.25)},
    ),
    "a threshold near nothing": Pair(
        "float[N] x => bool[N] y",
        "a = Abs(x) y = Greater(a, t)",
        "a = Abs(x) y = Greater(a, zero)",
        {"x": [1e-9]},
        {"t": F(1e-8), "zero": F(0)},
    ),
}

TEXTS = {
    "a name in title case": Pair(
        "string[N] x => int64[N] y",
        'y = ai.onnx.ml.LabelEncoder<keys_strings = ["london", "paris"], values_int64s = [1, 2], default_int64 = 0>(x)',
        'y = ai.onnx.ml.LabelEncoder<keys_strings = ["london", "paris", "Paris"], values_int64s = [1, 2, 2], '
        "default_int64 = 0>(x)",
        {"x": ["Paris"]},
    ),
}

TABLE = WRITTEN | ALONG_AN_AXIS | SUMS | NUMERALS | COMPUTED | TEXTS


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.sample(8)
def test_the_witness_shows_a_difference(name: str) -> None:
    show_difference(TABLE[name])


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.sample(8)
def test_a_hidden_difference_is_found(name: str) -> None:
    find_difference(TABLE[name])


@pytest.mark.parametrize("most", [17, 31, 2000])
def test_a_limit_of_the_length_of_a_sequence_is_found(most: int) -> None:
    signature, limit = "seq(float[N]) x => int64[] y", {"most": I64(most)}
    find_difference(Pair(signature, "y = SequenceLength(x)", "n = SequenceLength(x) y = Min(n, most)", {}, limit))
