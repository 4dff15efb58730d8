"""Models that differ, or do not, on the ends of types, ties, thresholds, special numbers, and small dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from verifying import verify_models

from splitgraph import convert, verify
from splitgraph.options import ATOL_WRITTEN_OUT, RTOL_WRITTEN_OUT

from .model_pairs import Pair

F = np.float32
LINE, THREE = "float[N] x => float[N] y", "float[N, 3] x => float[N, 3] y"


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
    "> and >=": Pair(
        "float[N] x => bool[N] y", "y = Greater(x, c)", "y = GreaterOrEqual(x, c)", constants={"c": F(0.37)}
    ),
    "a threshold in int64": Pair(
        "int64[N] x => bool[N] y", "y = Less(x, c)", "y = LessOrEqual(x, c)", constants={"c": np.int64(12345)}
    ),
    "a threshold next to the constant": Pair(
        "float[N] x => bool[N] y",
        "y = Greater(x, c)",
        "y = Greater(x, d)",
        constants={"c": F(0.7), "d": np.nextafter(F(0.7), F(1))},
    ),
    "Round of ties": Pair(LINE, "y = Round(x)", "h = Add(x, c) y = Floor(h)", constants={"c": F(0.5)}),
    "Round of one number": Pair(
        "float x => float y", "y = Round(x)", "h = Add(x, c) y = Floor(h)", constants={"c": F(0.5)}
    ),
    "float16 overflows": Pair(
        "float16[N] x => float16[N] y",
        "y = Mul(x, x)",
        "f = Cast<to = 1>(x) g = Mul(f, f) h = Clip(g, c, d) y = Cast<to = 10>(h)",
        constants={"c": F(-65504), "d": F(65504)},
    ),
    "NaN and 0": Pair(LINE, "y = Identity(x)", "n = IsNaN(x) y = Where(n, c, x)", constants={"c": F(0)}),
    "-0.0 and 0.0": Pair(LINE, "y = Reciprocal(x)", "z = Add(x, c) y = Reciprocal(z)", constants={"c": F(0)}),
    "the greatest and the mean of nothing": Pair(
        "float[2, 0, 4] x => float[2, 1, 4] y",
        "y = ReduceMax(x, axes)",
        "y = ReduceMean(x, axes)",
        constants={"axes": np.int64([1])},
    ),
    "0 / 0 and 1 / 0": Pair(LINE, "z = Sub(x, x) y = Div(z, z)", "z = Sub(x, x) y = Reciprocal(z)"),
    "infinity less itself": Pair(
        LINE, "y = Add(x, inf)", "a = Add(x, inf) y = Sub(a, inf)", constants={"inf": F(np.inf)}
    ),
    # The root of a negative infinity is NaN, and its power is infinite.
    "a root and a power": Pair(LINE, "y = Sqrt(x)", "y = Pow(x, c)", constants={"c": F(0.5)}),
    "a root and a list of powers": Pair(THREE, "y = Sqrt(x)", "y = Pow(x, c)", constants={"c": F([0.5] * 3)}),
    "a product with a root, and a power": Pair(
        LINE, "r = Sqrt(x) y = Mul(r, x)", "y = Pow(x, c)", constants={"c": F(1.5)}
    ),
    "a difference of logarithms": Pair(
        "float[N] x, float[N] w => float[N] y", "q = Div(x, w) y = Log(q)", "a = Log(x) b = Log(w) y = Sub(a, b)"
    ),
    "a sum of powers, shifted": Pair(
        THREE,
        "y = ReduceLogSumExp(x, axes)",
        "m = ReduceMax(x, axes) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, axes) l = Log(s) y = Add(l, m)",
        constants={"axes": np.int64([1])},
    ),
    "a mask that multiplies, and one that is added": Pair(
        "float[N] x, bool[N] k => float[N] y",
        "y = Where(k, x, low)",
        "f = Cast<to = 1>(k) g = Div(f, zero) h = Mul(g, zero) y = Add(x, h)",
        constants={"low": F(-np.inf), "zero": F(0)},
    ),
    "Squeeze of size 1": Pair("float[N, 3] x => float[] y", "y = Squeeze(x)", "y = Identity(x)"),
    "a size of 1 for one of two": Pair("float[N, M] x => float[] y", "y = Squeeze(x)", "y = Identity(x)"),
    # Max gives NaN for NaN in either input, Where that of the second one only.
    "two maxima, at NaN": Pair(
        "float[N, 3] x, float[N, 3] w => float[N, 3] y", "y = Max(x, w)", "g = Greater(x, w) y = Where(g, x, w)"
    ),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(8)
def test_models_that_differ_on_unusual_inputs(name: str) -> None:
    before, after = DIFFERENT[name].models()
    for model in (before, after):
        if "Squeeze" in name or "size of 1" in name:
            model.graph.output[0].type.tensor_type.ClearField("shape")
    found = verify_models(before, after)
    assert found.verdict == "different", found
    assert found.first_difference is not None


SAME = {"c": F(2), "one": np.int64(1)}
EQUAL = {
    "two ways to double": Pair(THREE, "y = Add(x, x)", "y = Mul(x, c)", constants=SAME),
    "two maxima": Pair(
        "float[N, 3] x, float[N, 3] w => float[N, 3] y",
        "y = Max(x, w)",
        "g = Greater(x, w) n = IsNaN(x) k = Or(g, n) y = Where(k, x, w)",
    ),
    "positions": Pair("float[9, 3] x, int64[N] i => float[N, 3] y", "y = Gather(x, i)", "y = Gather<axis = 0>(x, i)"),
    "computed positions": Pair(
        "float[9, 3] x, int64[N] i => float[N, 3] y",
        "j = Add(i, one) y = Gather(x, j)",
        "j = Add(one, i) y = Gather(x, j)",
        constants=SAME,
    ),
    "a computed size": Pair(
        "int64 n => int64[N] y",
        "m = Add(n, one) y = Range(one, m, one)",
        "m = Add(one, n) y = Range(one, m, one)",
        constants=SAME,
    ),
    "divided integers": Pair("int32[N] x, int32[N] w => int32[N] y", "y = Div(x, w)", "z = Identity(w) y = Div(x, z)"),
    "integers that wrap": Pair("int32[N] x => int32[N] y", "y = Add(x, x)", "z = Identity(x) y = Add(z, x)"),
    "an overflow in another order": Pair(
        THREE, "a = Mul(x, c) y = Mul(a, c)", "a = Mul(c, x) y = Mul(c, a)", constants=SAME
    ),
    "a square root of a square": Pair(LINE, "y = Abs(x)", "s = Mul(x, x) y = Sqrt(s)"),
    "a product that overflows in another order": Pair(
        "float16[N] x, float16[N] v => float16[N] y", "a = Mul(x, v) y = Sub(a, v)", "b = Mul(v, x) y = Sub(b, v)"
    ),
    "a sum that overflows in another order": Pair(
        "float16[N] x, float16[N] v => float16[N] y", "a = Add(x, v) y = Sub(a, v)", "a = Sub(x, v) y = Add(a, v)"
    ),
    "half a rounding error": Pair(THREE, "y = Mul(x, c)", "y = Mul(x, d)", constants={"c": F(1), "d": F(1.000001)}),
    "texts": Pair("string[N] x => string[N] y", "y = Identity(x)", "z = Identity(x) y = Identity(z)"),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.sample(8)
def test_models_that_stay_equal(name: str) -> None:
    found = verify_models(*EQUAL[name].models())
    assert (found.verdict, found.cases) == ("equal", 3), found


@pytest.mark.usefixtures("in_process")
def test_nothing_is_drawn_beside_given_inputs() -> None:
    pair = DIFFERENT["> and >="].models()
    equal = verify_models(*pair, inputs={"x": F([0.1, 0.4])})
    assert (equal.verdict, [region.cases for region in equal.regions]) == ("equal", [1])
    assert verify_models(*pair, inputs={"x": F([0.37, 0.4])}).verdict == "different"


INT8 = {"zero": np.int8(3)}
QUANTIZED = "y = QuantizeLinear(x, scale, zero)"
WRITTEN_OUT = (
    "d = Div(x, scale) r = Round(d) z = Cast<to = 1>(zero) s = Add(r, z) c = Clip(s, low, high) y = Cast<to = 3>(c)"
)
OPEN = {
    # No specification says which integer NaN becomes, and 0 divided by a scale of 0 is NaN, too.
    "quantized": Pair(
        "float[N] x => int8[N] y",
        QUANTIZED,
        WRITTEN_OUT,
        constants=INT8 | {"scale": F(0.1), "low": F(-128), "high": F(127)},
    ),
    "with a scale that is an input": Pair(
        "float[N] x, float scale => int8[N] y",
        QUANTIZED,
        WRITTEN_OUT,
        constants=INT8 | {"low": F(-128), "high": F(127)},
    ),
    # Nor which pixel is at NaN.
    "a position of GridSample": Pair(
        "float[1, 1, 2, 3] x, float[1, H, W, 2] i => float[1, 1, H, W] y",
        'y = GridSample<mode = "bilinear", padding_mode = "border">(x, i)',
        'c = Clip(i, low, high) y = GridSample<mode = "bilinear", padding_mode = "border">(x, c)',
        constants={"low": F(-10), "high": F(10)},
    ),
}


@pytest.mark.parametrize("pair", OPEN.values(), ids=OPEN)
@pytest.mark.sample(8)
def test_what_the_specification_leaves_open_is_not_drawn(pair: Pair) -> None:
    found = verify(*pair.models())
    assert found.verdict == "equal", found
    assert all(region.cases > 12 for region in found.regions)


POSITIONS = "float[1, 1, 2, 3] x, float[1, H, W, 2] i, float[1, 1, H, W] w => float[1, 1, H, W] y"
READ_AT = (
    'm = GridSample<padding_mode = "border">(x, i)',
    'c = Clip(i, low, high) p = GridSample<padding_mode = "border">(x, c)',
)
TWO = "float[N] x, float[N] w => float[N] y"
# What is left open of `x` or `i`, as `m` and in another form as `p`.
BESIDE: dict[str, tuple[str, tuple[str, str]]] = {
    "the smallest": (TWO, ("m, i = TopK<largest = 0>(x, k)", "n = Neg(x) t, i = TopK(n, k) p = Neg(t)")),
    "a position of the greatest": (
        TWO,
        ("i = ArgMax(x) m = Cast<to = 1>(i)", "n = Neg(x) i = ArgMin(n) p = Cast<to = 1>(i)"),
    ),
    "the greatest of four": (
        "float[1, 1, 4] x, float[N] w => float[1, 1, N] y",
        ("m = MaxPool<kernel_shape = [4]>(x)", "p = GlobalMaxPool(x)"),
    ),
    "a position of GridSample": (POSITIONS, READ_AT),
    "a range that is quantized": (
        TWO,
        (
            "q, s, z = DynamicQuantizeLinear(x) m = DequantizeLinear(q, s, z)",
            "c = Identity(x) q, u, z = DynamicQuantizeLinear(c) p = DequantizeLinear(q, u, z)",
        ),
    ),
}
# What reads it with `w`: two forms that are equal, and one that differs.
RELU = "r = Relu(w) y = Add(m, r)", "a = Max(w, o) y = Add(p, a)"
WITHOUT_NAN = "g = Greater(w, o) a = Where(g, w, o) y = Add(p, a)"
ABS = "r = Abs(w) y = Max(m, r)", "n1 = Neg(w) a = Max(w, n1) y = Max(p, a)"
WITHOUT_INFINITIES = "e = Abs(w) a = Min(e, most) y = Max(p, a)"
NUMBERS = {"k": np.int64([1]), "o": F(0), "low": F(-10), "high": F(10), "most": np.finfo(F).max}


@pytest.mark.parametrize(("readers", "other"), [(RELU, WITHOUT_NAN), (ABS, WITHOUT_INFINITIES)], ids=["NaN", "inf"])
@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.sample(8)
def test_special_numbers_are_drawn_beside_what_is_left_open(name: str, readers: tuple[str, str], other: str) -> None:
    signature, forms = BESIDE[name]
    for reader, verdict in ((readers[1], "equal"), (other, "different")):
        pair = Pair(signature, f"{forms[0]} {readers[0]}", f"{forms[1]} {reader}", constants=NUMBERS)
        found = verify(*pair.models())
        assert found.verdict == verdict, found


SIGNS = ("y = Sign(x)", "g = Greater(x, o) l = Less(x, o) p = Cast<to = 1>(g) n = Cast<to = 1>(l) y = Sub(p, n)")
TIES = ("c = Greater(x, o) y = Cast<to = 1>(c)", "c = GreaterOrEqual(x, o) y = Cast<to = 1>(c)")


@pytest.mark.parametrize(
    ("sides", "rtol", "atol", "verdict"),
    [
        (SIGNS, 1e-5, 1e-6, "different"),
        (TIES, 1e-5, 1e-6, "different"),
        # Where operators were written out, NaN alone is no proof; and nobody says that it is equal.
        (SIGNS, RTOL_WRITTEN_OUT, ATOL_WRITTEN_OUT, "not-run"),
        (TIES, RTOL_WRITTEN_OUT, ATOL_WRITTEN_OUT, "different"),
        # A caller who allows such a difference means it, and numbers of any size say nothing then.
        (SIGNS, 1e-4, 2e-5, "equal"),
    ],
)
def test_numbers_are_drawn_for_what_was_written_out(
    sides: tuple[str, str], rtol: float, atol: float, verdict: str
) -> None:
    models = Pair("float[N] x => float[N] y", *sides, constants={"o": F(0)}).models()
    assert verify(*models, rtol=rtol, atol=atol).verdict == verdict


PRODUCTS = (
    "f = Cast<to = 1>(x) m = Mul(f, f) h = Cast<to = 10>(m) e = Cast<to = 1>(h) a = Sqrt(e) b = Cast<to = 10>(a) "
    "y = Max(b, c)",
    "a = Abs(x) y = Max(a, c)",
)
LIMITS = ("g = Greater(x, two) y = Cast<to = 10>(g)", "g = GreaterOrEqual(x, two) y = Cast<to = 10>(g)")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
@pytest.mark.parametrize(
    ("sides", "atol", "verdict"),
    [
        (PRODUCTS, 1e-6, "different"),
        # A constant as large as this is no ordinary number in float16: products overflow.
        (PRODUCTS, ATOL_WRITTEN_OUT, "not-run"),
        (LIMITS, 1e-6, "different"),
        (LIMITS, ATOL_WRITTEN_OUT, "different"),
    ],
)
def test_where_operators_were_written_out_products_overflow_float16(
    sides: tuple[str, str], atol: float, verdict: str
) -> None:
    constants = {"c": np.float16(3e4), "two": np.float16(2)}
    models = Pair("float16[N] x => float16[N] y", *sides, constants=constants).models()
    assert verify(*models, rtol=RTOL_WRITTEN_OUT, atol=atol).verdict == verdict


@pytest.mark.parametrize(
    ("node", "opset"),
    [
        ("y = Sign(x)", 8),
        ("y = Mish(x)", 13),
        ("y = Celu(x)", 11),
        # No specification says which integer NaN becomes.
        ("q = QuantizeLinear(x, scale, zero) y = DequantizeLinear(q, scale, zero)", 9),
    ],
)
def test_numbers_are_drawn_for_each_operator_that_is_written_out(node: str, opset: int) -> None:
    constants = {"scale": F(0.1), "zero": np.int8(3)}
    before, _ = Pair("float[N] x => float[N] y", node, node, constants=constants).models()
    found = convert(before, opset=opset, verify=True)
    assert found.verification is not None and found.verification.verdict == "equal"
    assert [region.cases > 12 for region in found.verification.regions] == [True]
