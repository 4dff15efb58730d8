"""Results that are equal but show nothing: of NaN, of what is saturated or constant, a wrong model gives the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from verifying import verify_models

from ..small_models import parsed

pytestmark = pytest.mark.usefixtures("in_process")

RNG = np.random.default_rng(1)
WEIGHTS = RNG.standard_normal((4, 3)).astype(np.float32)
SQUARE = RNG.standard_normal((4, 4)).astype(np.float32)
BIAS = RNG.standard_normal(3).astype(np.float32)
SIGNATURE = "float[N, 4] x => float[N, 3] y"
SAME_SHAPE = "float[N, 4] x => float[N, 4] y"


def number(value: float) -> np.ndarray[Any, Any]:
    return np.asarray(value, np.float32)


def layer(rest: str, signature: str = SIGNATURE, **initializers: Any) -> onnx.ModelProto:
    """m, the product of x and weights, its absolute values a, and the rest."""
    held = {"w": WEIGHTS, **{name: np.asarray(value, np.float32) for name, value in initializers.items()}}
    return parsed(signature, f"m = MatMul(x, w) a = Abs(m) {rest}", **held)


def magnified(model: onnx.ModelProto, factor: float = 1.3) -> onnx.ModelProto:
    """The model with all of its floating-point initializers times a number."""
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    for tensor in copied.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind == "f":
            tensor.CopyFrom(numpy_helper.from_array((array * factor).astype(array.dtype), tensor.name))
    return copied


SOFTMAX_OF_ONE = parsed(
    "float[N, 4] x => float[N, 3, 1] y",
    "m = MatMul(x, w) u = Unsqueeze(m, at) y = Softmax<axis = 2>(u)",
    w=WEIGHTS,
    at=np.array([2]),
)
NOTHING_SHOWN = {
    "a logarithm of what is negative": (layer("n = Neg(a) y = Log(n)"), "holds only NaN or infinity"),
    "a root of what is negative": (layer("n = Sub(o, a) y = Sqrt(n)", o=-1), "holds only NaN or infinity"),
    "a power of what is negative": (layer("n = Sub(o, a) y = Pow(n, h)", o=-1, h=0.5), "holds only NaN or infinity"),
    "0 by 0": (layer("z = Sub(m, m) y = Div(z, z)"), "holds only NaN or infinity"),
    "an overflow": (layer("k = Add(a, k0) y = Exp(k)", k0=1000), "holds only NaN or infinity"),
    "an arc cosine out of range": (layer("k = Add(a, k0) y = Acos(k)", k0=2), "holds only NaN or infinity"),
    "a sigmoid in saturation": (layer("k = Add(a, k0) y = Sigmoid(k)", k0=100), "not change with the inputs"),
    "a tangent in saturation": (layer("k = Add(a, k0) y = Tanh(k)", k0=50), "not change with the inputs"),
    "a softmax of one": (SOFTMAX_OF_ONE, "not change with the inputs"),
    "a dead unit": (layer("k = Sub(m, k0) r = Relu(k) y = Add(r, b)", k0=1e8, b=BIAS), "not change with the inputs"),
    "what is clipped to one number": (layer("k = Add(a, one) y = Clip(k, zero, one)", one=1, zero=0), "the inputs"),
    "the same elsewhere": (
        parsed(
            SAME_SHAPE,
            "m = MatMul(x, w) a = Abs(m) k = Add(a, k0) s = Sigmoid(k) y = Add(x, s)",
            w=SQUARE,
            k0=number(90),
        ),
        "not change with the weights",
    ),
    "a comparison that is always false": (
        layer("y = Less(a, o)", "float[N, 4] x => bool[N, 3] y", o=-1),
        "not change with the inputs",
    ),
    "one output of two": (
        layer("z = Neg(x) n = Neg(a) y = Log(n)", "float[N, 4] x => float[N, 4] z, float[N, 3] y"),
        "y holds only NaN or infinity",
    ),
    "no weights": (parsed(SAME_SHAPE, "y = Sub(x, x)"), "not change with the inputs"),
    "a product with 0": (parsed(SAME_SHAPE, "y = Mul(x, z)", z=number(0)), "not change with the inputs"),
    "nothing found": (
        parsed(
            "float[N, 4] x => float[K, 4] y",
            "m = ReduceSum<keepdims = 0>(x, at) z = Sub(m, m) g = Greater(z, w) y = Compress<axis = 0>(x, g)",
            at=np.array([1]),
            w=number(0.5),
        ),
        "is empty",
    ),
}


@pytest.mark.parametrize("name", NOTHING_SHOWN)
def test_equal_results_that_show_nothing_are_no_verdict(name: str) -> None:
    model, reason = NOTHING_SHOWN[name]
    found = verify_models(model, model)
    assert (found.verdict, found.engine, found.cases) == ("not-run", "", 0), found
    assert [(each.code, each.severity) for each in found.diagnostics] == [("SG506", "warning")]
    assert reason in found.diagnostics[0].message
    # Neither is a model that is another one.
    assert verify_models(model, magnified(model)).verdict != "equal"


def test_the_weights_are_named_that_were_not_seen_to_matter() -> None:
    model, _ = NOTHING_SHOWN["a dead unit"]
    message = verify_models(model, model).diagnostics[0].message
    assert message.endswith("y does not change with the inputs. Weights without a visible effect: w, k0, b")


OTHER_INPUTS = {
    "a rate": parsed(
        "float[N, 4] x, float[1] rate => float[N, 3] y",
        "d = Sub(rate, r) e = Abs(d) n = Neg(e) s = Sqrt(n) m = MatMul(x, w) y = Add(m, s)",
        w=WEIGHTS,
        r=number(16000),
    ),
    "a whole rate": parsed(
        "float[N, 4] x, int64[1] rate => float[N, 3] y",
        "c = Cast<to = 1>(rate) d = Sub(c, r) e = Abs(d) n = Neg(e) s = Sqrt(n) m = MatMul(x, w) y = Add(m, s)",
        w=WEIGHTS,
        r=number(22050),
    ),
    "a number of the model's own": parsed(
        "float[N, 4] x, float[1] rate => float[N, 3] y",
        "d = Sub(rate, r) e = Abs(d) n = Neg(e) s = Sqrt(n) m = MatMul(x, w) y = Add(m, s)",
        w=WEIGHTS,
        r=number(12345),
    ),
    "large inputs": layer("k = Sub(m, k0) r = Relu(k) y = Add(r, b)", k0=500, b=BIAS),
    "small inputs": layer("k = Mul(a, k0) y = Tanh(k)", k0=1e5),
    "inputs above 1": parsed(SIGNATURE, "k = Sub(x, k0) r = Relu(k) y = MatMul(r, w)", w=WEIGHTS, k0=number(20)),
    "inputs between 0 and 1": parsed(
        SIGNATURE,
        "l = Log(x) s = ReduceSum<keepdims = 1>(l, at) n = Neg(s) t = Sqrt(n) m = MatMul(x, w) y = Add(m, t)",
        w=WEIGHTS,
        at=np.array([0, 1]),
    ),
    "NaN": parsed("float[N, 4] x => bool[N, 4] y", "y = IsNaN(x)"),
}


@pytest.mark.parametrize("name", OTHER_INPUTS)
def test_other_inputs_show_what_random_ones_do_not(name: str) -> None:
    model = OTHER_INPUTS[name]
    found = verify_models(model, model)
    assert (found.verdict, found.diagnostics) == ("equal", ()), found
    assert found.cases > 0
    if name != "NaN":
        assert verify_models(model, magnified(model)).verdict == "different"


ENOUGH = {
    "a product": (layer("y = Identity(m)"), 3),
    "no inputs": (parsed(" => float[4, 3] y", "y = Identity(w)", w=WEIGHTS), 1),
    "no inputs and no weights": (parsed(" => int64[2] y", "y = Constant<value_ints = [1, 2]>()"), 1),
    "a shape": (parsed("float[N, 4] x => int64[2] y", "y = Shape(x)"), 3),
    "a shape beside values": (
        layer("s = Shape(m)", "float[N, 4] x => float[N, 3] m, int64[2] s"),
        3,
    ),
    "splits": (
        parsed("float[N, 4] x => float[N, 2] y, float[N, 2] z", "y, z = Split<axis = 1, num_outputs = 2>(x)"),
        3,
    ),
    "a part that is always empty": (
        parsed(
            "float[N, 4] x => float[N, 4] y, float[N, 0] z",
            "y, z = Split<axis = 1>(x, l)",
            l=np.array([4, 0]),
        ),
        3,
    ),
    "numbers of a given shape": (parsed("int64[2] s => float[A, B] y", "y = ConstantOfShape(s)"), 3),
    "an index of the largest": (layer("y = ArgMax<axis = 1>(m)", "float[N, 4] x => int64[N, 1] y"), 3),
    "a normalization": (layer("y = LpNormalization<axis = 1>(m)"), 3),
    "integers": (parsed("int64[N, 4] x => int64[N, 4] y", "y = Mul(x, three)", three=np.array(3)), 3),
    "text": (parsed("string[N] x => string[M] y", "y = Concat<axis = 0>(x, x)"), 3),
    "a divisor that is never 0": (parsed(SAME_SHAPE, "a = Abs(x) k = Add(a, e) y = Div(x, k)", e=number(1e-12)), 3),
    "a bound that bounds nothing": (
        parsed(SAME_SHAPE, "y = Clip(x, lo, hi)", lo=number(-3e38), hi=number(3e38)),
        3,
    ),
    "sizes times a number": (
        parsed(
            "float[N, 4] x => float[K, 4] y",
            "s = Shape<start = 0, end = 1>(x) c = Cast<to = 1>(s) d = Mul(c, half) f = Ceil(d) i = Cast<to = 7>(f) "
            "y = Slice(x, zero, i)",
            half=number(0.5),
            zero=np.array([0]),
        ),
        3,
    ),
    "shapes by a condition": (
        parsed(
            "bool c => float[K] y",
            "y = If(c) <then_branch = t () => (float[3] a) { a = Constant<value_floats = [1.0, 1.0, 1.0]>() }, "
            "else_branch = e () => (float[2] b) { b = Constant<value_floats = [1.0, 1.0]>() }>",
        ),
        3,
    ),
}


@pytest.mark.parametrize("name", ENOUGH)
def test_what_shows_enough_is_equal_as_before(name: str) -> None:
    model, cases = ENOUGH[name]
    found = verify_models(model, model)
    assert (found.verdict, found.cases, found.diagnostics) == ("equal", cases, ()), found


BESIDE = {
    "mask": layer("y, mask = Dropout(m)", "float[N, 4] x => float[N, 3] y, bool[N, 3] mask"),
    "infinite": layer("infinite = IsInf(m)", "float[N, 4] x => float[N, 3] m, bool[N, 3] infinite"),
    "none": layer("i = Cast<to = 7>(m) none = Sub(i, i)", "float[N, 4] x => float[N, 3] m, int64[N, 3] none"),
    "first": layer(
        "i = ArgMax<axis = 0>(x) first = Sub(i, i) y = Neg(a)", "float[N, 4] x => float[N, 3] y, int64[1, 4] first"
    ),
}


@pytest.mark.parametrize("silent", BESIDE)
def test_outputs_that_show_nothing_beside_others_are_named(silent: str) -> None:
    found = verify_models(BESIDE[silent], BESIDE[silent])
    assert (found.verdict, found.cases >= 3) == ("equal", True), found
    assert [(each.code, each.severity) for each in found.warnings] == [("SG507", "warning")]
    assert f"tried: {silent} does not change with the " in found.warnings[0].message


def test_a_tolerance_that_hides_all_shows_nothing() -> None:
    model = layer("y = Identity(m)")
    found = verify_models(model, magnified(model), atol=1e30)
    assert (found.verdict, found.diagnostics[-1].code) == ("not-run", "SG506")


@pytest.mark.parametrize("name", ["w", "b", "v"])
def test_one_weight_that_is_changed_shows_where_numbers_of_a_kind_give_nan(name: str) -> None:
    """As of a detector of pitch, whose limits are numbers that random ones are not."""
    body = """
        l = Log(rate) z = Mul(l, zero) h = MatMul(x, w) r = Relu(h) k = Add(r, b) o = MatMul(k, v) y = Add(o, z)
    """
    held = {"w": SQUARE, "b": RNG.standard_normal(4).astype(np.float32), "v": SQUARE + 1, "zero": number(0)}
    model = parsed("float[N, 4] x, float[1] rate => float[N, 4] y", body, **held)
    other = parsed("float[N, 4] x, float[1] rate => float[N, 4] y", body, **{**held, name: held[name] * 1.01})
    assert verify_models(model, model).verdict == "equal"
    assert verify_models(model, other).verdict == "different"


def test_given_inputs_that_show_nothing_are_not_changed() -> None:
    model = layer("r = Relu(m) n = Neg(r) y = Exp(n)")
    shown = verify_models(model, model, inputs={"x": np.ones((2, 4), np.float32)})
    assert (shown.verdict, shown.cases) == ("equal", 1)
    hidden = verify_models(model, model, inputs={"x": np.zeros((2, 4), np.float32)})
    assert (hidden.verdict, hidden.diagnostics[-1].code) == ("not-run", "SG506")


def test_one_sample_is_compared_with_another() -> None:
    """Whether an output depends on the inputs takes two."""
    model = layer("y = Identity(m)")
    found = verify_models(model, model, samples=1)
    assert (found.verdict, found.cases) == ("equal", 2)
