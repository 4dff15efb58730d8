"""Constants of any size that are compared with data: each element is drawn, where it meets the data.

Each pair that differs has a witness: an element of the constant, or its neighbour.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import splitgraph
from splitgraph.verification.regions.drawing.limits import draw_limits

from ...small_models import parsed
from ..model_pairs import Pair, find_difference, show_difference

F, F16, F64, I64, U8 = np.float32, np.float16, np.float64, np.int64, np.uint8
LIMITS = np.random.default_rng(0).uniform(-50, 50, 100).astype(F)
IDS = np.random.default_rng(1).permutation(1000)[:100].astype(I64)
SCALES = np.random.default_rng(2).uniform(0.01, 0.2, 70).astype(F)
WORDS = np.array([f"w{number}" for number in range(100)], dtype=object)
TRUTH, LINE = "float[N, 100] x => bool[N, 100] y", "float[N, 100] x => float[N, 100] y"
INTEGERS = "int64[N, 100] x => int64[N, 100] y"
IN_LIST = "u = Unsqueeze(x, last) e = Equal(u, c) f = Cast<to = 1>(e) y = ReduceMax<keepdims = 0>(f, last)"
BUCKETS = "u = Unsqueeze(x, last) e = {}(u, c) f = Cast<to = 7>(e) y = ReduceSum<keepdims = 0>(f, last)"
LAST = {"last": I64([-1])}


def changed(array: np.ndarray, place: int, value: Any) -> np.ndarray:
    """Return an array with another element."""
    other = array.copy()
    other.reshape(-1)[place] = value
    return other


def line(value: float) -> list[list[float]]:
    return [[value] * 100]


DIFFERENT = {
    "limits that are all alike": Pair(
        TRUTH, "y = Greater(x, c)", "y = GreaterOrEqual(x, c)", {"x": line(6.5)}, {"c": np.full(100, 6.5, F)}
    ),
    "limits": Pair(TRUTH, "y = Less(x, c)", "y = LessOrEqual(x, c)", {"x": [LIMITS]}, {"c": LIMITS}),
    "float16 limits": Pair(
        "float16[N, 100] x => bool[N, 100] y",
        "y = Less(x, c)",
        "y = LessOrEqual(x, c)",
        {"x": [LIMITS.astype(F16)]},
        {"c": LIMITS.astype(F16)},
    ),
    "neighbours in float64": Pair(
        "double[N, 100] x => bool[N, 100] y",
        "y = Greater(x, c)",
        "y = Greater(x, c)",
        {"x": line(np.nextafter(0.1, 1))},
        {"c": np.full(100, 0.1)},
        {"c": changed(np.full(100, 0.1), 9, np.nextafter(0.1, 1))},
    ),
    "one of a list of ids": Pair(
        "int64[N] x => float[N] y", IN_LIST, IN_LIST, {"x": [2000]}, LAST | {"c": IDS}, {"c": changed(IDS, 57, 2000)}
    ),
    "one of 5,000 ids for a single number": Pair(
        "int64[1] x => float[1] y",
        IN_LIST,
        IN_LIST,
        {"x": [-3]},
        LAST | {"c": np.arange(5000) * 7},
        {"c": changed(np.arange(5000) * 7, 4321, -3)},
    ),
    "one of the largest numbers": Pair(
        LINE,
        "y = Min(x, c)",
        "y = Min(x, c)",
        {"x": line(32)},
        {"c": np.full(100, 31, F)},
        {"c": changed(np.full(100, 31, F), 63, 30)},
    ),
    "large integers": Pair(
        INTEGERS,
        "y = Max(x, c)",
        "y = Max(x, c)",
        {"x": line(0)},
        {"c": np.full(100, 2**60)},
        {"c": changed(np.full(100, 2**60), 63, 2**60 + 1)},
    ),
    "one large integer": Pair(
        "int64[N] x => bool[N] y", "y = Less(x, c)", "y = LessOrEqual(x, c)", {"x": [2**60 + 1]}, {"c": I64(2**60 + 1)}
    ),
    "texts": Pair(
        "string[N, 100] x => bool[N, 100] y",
        "y = Equal(x, c)",
        "y = Equal(x, c)",
        {},
        {"c": WORDS},
        {"c": changed(WORDS, 70, "other")},
        opset=19,
    ),
    "the scales of channels": Pair(
        "float[N, 70] x => int8[N, 70] y",
        "y = QuantizeLinear<axis = -1>(x, s, z)",
        "q = QuantizeLinear<axis = -1>(x, s, z) y = Max(q, low)",
        {"x": [SCALES * F(-128)]},
        {"s": SCALES, "z": np.zeros(70, np.int8), "low": np.int8(-127)},
    ),
    "in two dimensions": Pair(
        "float[N, 40, 50] x => float[N, 40, 50] y",
        "y = Min(x, c)",
        "y = Min(x, c)",
        {"x": np.full((1, 40, 50), 32)},
        {"c": np.full((40, 50), 31, F)},
        {"c": changed(np.full((40, 50), 31, F), 1234, 30)},
    ),
    "more limits than data": Pair(
        "float[50] x => bool[40, 50] y",
        "y = Greater(x, c)",
        "y = Greater(x, c)",
        {"x": [6.0] * 50},
        {"c": np.full((40, 50), 5, F)},
        {"c": changed(np.full((40, 50), 5, F), 1234, 7)},
    ),
    "behind Cast": Pair(
        TRUTH,
        "d = Cast<to = 1>(c) y = Greater(x, d)",
        "d = Cast<to = 1>(c) y = GreaterOrEqual(x, d)",
        {"x": [IDS]},
        {"c": IDS},
    ),
    "behind Reshape": Pair(
        "float[N, 10, 10] x => bool[N, 10, 10] y",
        "d = Reshape(c, shape) y = Greater(x, d)",
        "d = Reshape(c, shape) y = Greater(x, d)",
        {"x": np.full((1, 10, 10), LIMITS[31] + 0.25)},
        {"c": LIMITS, "shape": I64([10, 10])},
        {"c": changed(LIMITS, 31, LIMITS[31] + F(0.5))},
    ),
    "behind Transpose": Pair(
        "float[N, 50, 40] x => float[N, 50, 40] y",
        "d = Transpose(c) y = Min(x, d)",
        "d = Transpose(c) y = Min(x, d)",
        {"x": np.full((1, 50, 40), 32)},
        {"c": np.full((40, 50), 31, F)},
        {"c": changed(np.full((40, 50), 31, F), 1234, 30)},
    ),
    "buckets": Pair(
        "float[N] x => int64[N] y",
        BUCKETS.format("Greater"),
        BUCKETS.format("GreaterOrEqual"),
        {"x": [LIMITS[3]]},
        LAST | {"c": np.sort(LIMITS)},
    ),
    "divisors": Pair(
        INTEGERS, "y = Mod(x, c)", "y = Mod(x, c)", {"x": line(5000)}, {"c": IDS + 1}, {"c": changed(IDS + 1, 50, 5000)}
    ),
    "in a branch": Pair(
        "float[N, 100] x, bool k => bool[N, 100] y",
        "y = If (k) <then_branch = a () => (bool[N, 100] p) <float[2] w = {6.5, 7.5}> "
        "{ d = Tile(w, fifty) p = Greater(x, d) }, else_branch = b () => (bool[N, 100] q) { q = Less(x, c) }>",
        "y = If (k) <then_branch = a () => (bool[N, 100] p) <float[2] w = {6.5, 7.25}> "
        "{ d = Tile(w, fifty) p = Greater(x, d) }, else_branch = b () => (bool[N, 100] q) { q = Less(x, c) }>",
        {"x": line(7.4), "k": True},
        {"c": LIMITS, "fifty": I64([50])},
    ),
    "a label": Pair(
        "int64[N] x => float[N] y",
        "y = ai.onnx.ml.LabelEncoder<keys_int64s = [5, 600, 70], values_floats = [1.0, 2.0, 3.0]>(x)",
        "y = ai.onnx.ml.LabelEncoder<keys_int64s = [5, 601, 70], values_floats = [1.0, 2.0, 3.0]>(x)",
        {"x": [600]},
    ),
    "a number that is replaced": Pair(
        "int64[N] x => int64[N] y",
        "y = ai.onnx.ml.Imputer<replaced_value_int64 = -999, imputed_value_int64s = [1]>(x)",
        "y = ai.onnx.ml.Imputer<replaced_value_int64 = -999, imputed_value_int64s = [2]>(x)",
        {"x": [-999]},
    ),
    "a threshold of ai.onnx.ml": Pair(
        LINE,
        "y = ai.onnx.ml.Binarizer<threshold = 0.3>(x)",
        "y = ai.onnx.ml.Binarizer<threshold = 0.3001>(x)",
        {"x": line(0.30005)},
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(7)
def test_an_element_that_differs_is_found(name: str) -> None:
    find_difference(DIFFERENT[name])


@pytest.mark.parametrize("name", [name for name in DIFFERENT if name != "texts"])
@pytest.mark.sample(8)
def test_the_witness_of_each_pair_shows_its_difference(name: str) -> None:
    show_difference(DIFFERENT[name])


EQUAL = {
    "sides in another order": Pair(TRUTH, "y = Greater(x, c)", "y = Less(c, x)", constants={"c": LIMITS}),
    "Max by Where": Pair(LINE, "y = Max(x, c)", "g = Less(x, c) y = Where(g, c, x)", constants={"c": LIMITS}),
    "another shape of the constant": Pair(
        TRUTH, "y = Greater(x, c)", "y = Greater(x, c)", constants={"c": LIMITS}, changed={"c": LIMITS[None]}
    ),
    "Clip in another order": Pair(
        LINE,
        "m = Max(x, a) y = Min(m, c)",
        "m = Min(x, c) y = Max(m, a)",
        constants={"a": np.full(100, -31, F), "c": np.full(100, 31, F)},
    ),
    "whole numbers": Pair(
        "int64[N, 100] x => bool[N, 100] y",
        "y = LessOrEqual(x, c)",
        "g = Greater(x, c) y = Not(g)",
        constants={"c": IDS},
    ),
}


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.sample(8)
def test_models_that_agree_on_all_elements_stay_equal(name: str) -> None:
    found = splitgraph.verify(*EQUAL[name].models())
    assert found.verdict == "equal", found


# The model, the shape of x, and how many sets of values are drawn at most.
FEW = {
    "weights": (parsed("float[N, 100] x => float[N, 3] y", "y = MatMul(x, w)", w=np.ones((100, 3), F)), (2, 100), 0),
    "a table": (parsed("int64[N] x => float[N] y", "y = Gather(t, x)", t=np.ones(100, F)), (2,), 0),
    "a shape": (parsed("float[N, 6] x => float[M, 3] y", "y = Reshape(x, s)", s=I64([-1, 3])), (2, 6), 0),
    "limits that all fit": (parsed(*("float[N, 100] x => bool[N, 100] y", "y = Less(x, c)"), c=LIMITS), (2, 100), 20),
    "a million limits of one number": (
        parsed("float[1] x => bool[M] y", "y = Less(x, c)", c=np.ones(2**20, F)),
        (1,),
        1600,
    ),
}


@pytest.mark.parametrize("name", FEW)
def test_how_much_is_drawn(name: str) -> None:
    model, shape, most = FEW[name]
    assert len(_drawn(model, np.zeros(shape, F))) <= most


def _drawn(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    models = ((model, Path()), (model, Path()))
    return [values["x"] for values in draw_limits(models, {"x": x}, {"x": x}, np.random.default_rng(0))]


def test_each_element_meets_its_own_position_and_its_neighbours() -> None:
    model = parsed("float[N, 100] x => bool[N, 100] y", "y = Less(x, c)", c=LIMITS)
    found = {array[0].tobytes() for array in _drawn(model, np.zeros((2, 100), F))}
    assert {near.tobytes() for near in (LIMITS, np.nextafter(LIMITS, F(99)), np.nextafter(LIMITS, F(-99)))} <= found
