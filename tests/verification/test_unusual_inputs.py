"""Models that differ on unusual inputs only: the ends of types, ties, thresholds, special numbers, small dimensions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from verifying import verify_models

from splitgraph.verification.inputs.unusual import unusual_inputs
from splitgraph.verification.models.dependence import index_inputs, shape_inputs

from .small_models import parsed

F = np.float32


class Pair(NamedTuple):
    signature: str
    before: str
    after: str
    constants: dict[str, Any] = {}  # noqa: RUF012

    def models(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        one, other = (parsed(self.signature, body, **self.constants) for body in (self.before, self.after))
        return one, other


def saturated(number: int, low: int, high: int, through: int = 6) -> str:
    """The body of x + x, cut off at the ends of a type."""
    wide = "int32" if through == 6 else "int64"
    return (
        f"w = Cast<to = {through}>(x) s = Add(w, w) low = Constant<value = {wide} {{{low}}}>() "
        f"high = Constant<value = {wide} {{{high}}}>() c = Clip(s, low, high) y = Cast<to = {number}>(c)"
    )


WRAPPED = "w = Cast<to = 6>(x) s = Add(w, w) y = Cast<to = {}>(s)"
DIFFERENT = {
    "uint8 saturates": Pair("uint8[N] x => uint8[N] y", WRAPPED.format(2), saturated(2, 0, 255)),
    "int8 saturates": Pair("int8[N] x => int8[N] y", WRAPPED.format(3), saturated(3, -128, 127)),
    "int32 saturates": Pair("int32[N] x => int32[N] y", "y = Add(x, x)", saturated(6, -(2**31), 2**31 - 1, 7)),
    "int64 through float64": Pair(
        "int64 x => int64 y", "y = Neg(x)", "d = Cast<to = 11>(x) n = Neg(d) y = Cast<to = 7>(n)"
    ),
    "> and >=": Pair("float[N] x => bool[N] y", "y = Greater(x, c)", "y = GreaterOrEqual(x, c)", {"c": F(0.37)}),
    "a threshold in int64": Pair(
        "int64[N] x => bool[N] y", "y = Less(x, c)", "y = LessOrEqual(x, c)", {"c": np.int64(12345)}
    ),
    "a threshold next to the constant": Pair(
        "float[N] x => bool[N] y",
        "y = Greater(x, c)",
        "y = Greater(x, d)",
        {"c": F(0.7), "d": np.nextafter(F(0.7), F(1))},
    ),
    "Round of ties": Pair("float[N] x => float[N] y", "y = Round(x)", "h = Add(x, c) y = Floor(h)", {"c": F(0.5)}),
    "Round of one number": Pair("float x => float y", "y = Round(x)", "h = Add(x, c) y = Floor(h)", {"c": F(0.5)}),
    "float16 overflows": Pair(
        "float16[N] x => float16[N] y",
        "y = Mul(x, x)",
        "f = Cast<to = 1>(x) g = Mul(f, f) h = Clip(g, c, d) y = Cast<to = 10>(h)",
        {"c": F(-65504), "d": F(65504)},
    ),
    "NaN and 0": Pair("float[N] x => float[N] y", "y = Identity(x)", "n = IsNaN(x) y = Where(n, c, x)", {"c": F(0)}),
    "-0.0 and 0.0": Pair(
        "float[N] x => float[N] y", "y = Reciprocal(x)", "z = Add(x, c) y = Reciprocal(z)", {"c": F(0)}
    ),
    "Squeeze of size 1": Pair("float[N, 3] x => float y", "y = Squeeze(x)", "y = Identity(x)"),
    "a size of 1 for one of two": Pair("float[N, M] x => float y", "y = Squeeze(x)", "y = Identity(x)"),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", DIFFERENT)
def test_models_that_differ_on_unusual_inputs(name: str) -> None:
    before, after = DIFFERENT[name].models()
    for model in (before, after):
        if "Squeeze" in name or "size of 1" in name:
            model.graph.output[0].type.tensor_type.ClearField("shape")
    found = verify_models(before, after)
    assert found.verdict == "different", found
    assert found.first_difference is not None
    assert " as inputs" in found.first_difference.reason or "inputs with" in found.first_difference.reason


SAME = {"c": F(2), "one": np.int64(1)}
EQUAL = {
    "two ways to double": Pair("float[N, 3] x => float[N, 3] y", "y = Add(x, x)", "y = Mul(x, c)", SAME),
    "two maxima": Pair(
        "float[N, 3] x, float[N, 3] w => float[N, 3] y", "y = Max(x, w)", "g = Greater(x, w) y = Where(g, x, w)"
    ),
    "positions": Pair("float[9, 3] x, int64[N] i => float[N, 3] y", "y = Gather(x, i)", "y = Gather<axis = 0>(x, i)"),
    "computed positions": Pair(
        "float[9, 3] x, int64[N] i => float[N, 3] y",
        "j = Add(i, one) y = Gather(x, j)",
        "j = Add(one, i) y = Gather(x, j)",
        SAME,
    ),
    "a computed size": Pair(
        "int64 n => int64[N] y",
        "m = Add(n, one) y = Range(one, m, one)",
        "m = Add(one, n) y = Range(one, m, one)",
        SAME,
    ),
    "divided integers": Pair("int32[N] x, int32[N] w => int32[N] y", "y = Div(x, w)", "z = Identity(w) y = Div(x, z)"),
    "integers that wrap": Pair("int32[N] x => int32[N] y", "y = Add(x, x)", "z = Identity(x) y = Add(z, x)"),
    "an overflow in another order": Pair(
        "float[N, 3] x => float[N, 3] y", "a = Mul(x, c) y = Mul(a, c)", "a = Mul(c, x) y = Mul(c, a)", SAME
    ),
    "half a rounding error": Pair(
        "float[N, 3] x => float[N, 3] y", "y = Mul(x, c)", "y = Mul(x, d)", {"c": F(1), "d": F(1.000001)}
    ),
    "texts": Pair("string[N] x => string[N] y", "y = Identity(x)", "z = Identity(x) y = Identity(z)"),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", EQUAL)
def test_models_that_stay_equal(name: str) -> None:
    found = verify_models(*EQUAL[name].models())
    assert (found.verdict, found.cases) == ("equal", 3), found


@pytest.mark.usefixtures("in_process")
def test_given_inputs_get_no_unusual_ones() -> None:
    pair = DIFFERENT["> and >="].models()
    assert verify_models(*pair, inputs={"x": F([0.1, 0.4])}).verdict == "equal"
    assert verify_models(*pair, inputs={"x": F([0.37, 0.4])}).verdict == "different"


TYPES = ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", TYPES)
def test_the_numbers_of_a_type(dtype: str) -> None:
    model = parsed("float[N] x => bool[N] y", "y = Greater(x, c)", c=F(7))
    base = {"x": np.ones(500, dtype)}
    made = {kind: [each["x"] for each in unusual_inputs(model, base, (), kind)] for kind in ("steps", "ends", "gaps")}  # type: ignore[arg-type]
    assert all((each.dtype, each.shape) == (base["x"].dtype, (500,)) for found in made.values() for each in found)
    steps, ends = set(made["steps"][0].tolist()), set(made["ends"][0].tolist())
    if np.dtype(dtype).kind in "iu":
        assert {np.iinfo(dtype).min, np.iinfo(dtype).max} <= ends
        assert {0, 1, 6, 7, 8} <= steps
        assert not made["gaps"]
    else:
        assert {0.5, 1.5, 2.5, 7.0, float(np.nextafter(np.dtype(dtype).type(7), np.dtype(dtype).type(8)))} <= steps
        assert max(ends) >= 65504
        assert np.isnan(made["gaps"][0]).any() and (made["gaps"][0] == 1).any()


def test_a_few_elements_take_all_numbers_in_turn() -> None:
    model = parsed("float x => bool y", "y = Greater(x, c)", c=F(7))
    found = [each["x"].item() for each in unusual_inputs(model, {"x": np.ones((), F)}, (), "steps")]
    assert len(found) == len({*map(str, found)}) > 6
    assert 7.0 in found
    assert not list(unusual_inputs(model, {"x": np.ones((), F)}, ["x"], "steps"))


def test_inputs_with_a_meaning() -> None:
    body = "j = Add(i, i) y = Gather(x, j) z = Expand(y, s) k = Mul(u, u) a = ArgMax<axis = 0>(u) b = Gather(x, a)"
    model = parsed("float[9] x, int64[N] i, int64[2] s, int32[3] u => float[N] z, int32[3] k, float b", body)
    assert index_inputs(model) == {"i"}
    assert shape_inputs(model) == {"s"}
