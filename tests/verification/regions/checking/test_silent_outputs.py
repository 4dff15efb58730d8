"""Outputs that show nothing: of NaN, of what is saturated or constant, a model with other weights gives the same.

The same model is equal to itself, because nothing differs; with other weights it is different, because the nodes that
read them compute something else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from verifying import verify_models

from ...small_models import parsed

pytestmark = pytest.mark.usefixtures("in_process")

RNG = np.random.default_rng(1)
WEIGHTS = RNG.standard_normal((4, 3)).astype(np.float32)
SQUARE = RNG.standard_normal((4, 4)).astype(np.float32)
BIAS = RNG.standard_normal(3).astype(np.float32)
SIGNATURE = "float[N, 4] x => float[N, 3] y"
SAME_SHAPE = "float[N, 4] x => float[N, 4] y"
RATED = "float[N, 4] x, float[1] rate => float[N, 3] y"
OF_A_RATE = "d = Sub(rate, r) e = Abs(d) n = Neg(e) s = Sqrt(n) m = MatMul(x, w) y = Add(m, s)"


def number(value: float) -> np.ndarray[Any, Any]:
    return np.asarray(value, np.float32)


def layer(rest: str, signature: str = SIGNATURE, **initializers: Any) -> onnx.ModelProto:
    """m, the product of x and weights, its absolute values a, and the rest."""
    held = {"w": WEIGHTS, **{name: np.asarray(value, np.float32) for name, value in initializers.items()}}
    return parsed(signature, f"m = MatMul(x, w) a = Abs(m) {rest}", **held)


def scaled(model: onnx.ModelProto, factor: float = 1.3) -> onnx.ModelProto:
    """The model with all of its floating-point initializers times a number."""
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    for tensor in copied.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind == "f":
            tensor.CopyFrom(numpy_helper.from_array((array * factor).astype(array.dtype), tensor.name))
    return copied


SILENT = {
    "a logarithm of what is negative": layer("n = Neg(a) y = Log(n)"),
    "a root of what is negative": layer("n = Sub(o, a) y = Sqrt(n)", o=-1),
    "0 by 0": layer("z = Sub(m, m) y = Div(z, z)"),
    "an overflow": layer("k = Add(a, k0) y = Exp(k)", k0=1000),
    "an arc cosine out of range": layer("k = Add(a, k0) y = Acos(k)", k0=2),
    "a sigmoid in saturation": layer("k = Add(a, k0) y = Sigmoid(k)", k0=100),
    "a tangent in saturation": layer("k = Add(a, k0) y = Tanh(k)", k0=50),
    "a softmax of one": parsed(
        "float[N, 4] x => float[N, 3, 1] y",
        "m = MatMul(x, w) u = Unsqueeze(m, at) y = Softmax<axis = 2>(u)",
        w=WEIGHTS,
        at=np.array([2]),
    ),
    "a dead unit": layer("k = Sub(m, k0) r = Relu(k) y = Add(r, b)", k0=1e8, b=BIAS),
    "what is clipped to one number": layer("k = Add(a, one) y = Clip(k, zero, one)", one=1, zero=0),
    "the same elsewhere": parsed(
        SAME_SHAPE, "m = MatMul(x, w) a = Abs(m) k = Add(a, k0) s = Sigmoid(k) y = Add(x, s)", w=SQUARE, k0=number(90)
    ),
    "a comparison that is always false": layer("y = Less(a, o)", "float[N, 4] x => bool[N, 3] y", o=-1),
    "one output of two": layer("z = Neg(x) n = Neg(a) y = Log(n)", "float[N, 4] x => float[N, 4] z, float[N, 3] y"),
    "nothing found": parsed(
        "float[N, 4] x => float[K, 4] y",
        "m = ReduceSum<keepdims = 0>(x, at) z = Sub(m, m) g = Greater(z, w) y = Compress<axis = 0>(x, g)",
        at=np.array([1]),
        w=number(0.5),
    ),
    "a rate that must be met": parsed(RATED, OF_A_RATE, w=WEIGHTS, r=number(16000)),
    "large inputs": layer("k = Sub(m, k0) r = Relu(k) y = Add(r, b)", k0=500, b=BIAS),
    "small inputs": layer("k = Mul(a, k0) y = Tanh(k)", k0=1e5),
    "inputs above 1": parsed(SIGNATURE, "k = Sub(x, k0) r = Relu(k) y = MatMul(r, w)", w=WEIGHTS, k0=number(20)),
    "inputs between 0 and 1": parsed(
        SIGNATURE,
        "l = Log(x) s = ReduceSum<keepdims = 1>(l, at) n = Neg(s) t = Sqrt(n) m = MatMul(x, w) y = Add(m, t)",
        w=WEIGHTS,
        at=np.array([0, 1]),
    ),
    "an output beside others": layer(
        "i = Cast<to = 7>(m) none = Sub(i, i)", "float[N, 4] x => float[N, 3] m, int64[N, 3] none"
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_model_is_equal_to_itself_because_nothing_differs(name: str) -> None:
    found = verify_models(SILENT[name], SILENT[name])
    assert (found.verdict, found.cases, found.diagnostics, found.regions) == ("equal", 3, (), ()), found


@pytest.mark.parametrize("name", SILENT)
@pytest.mark.sample(6)
def test_other_weights_are_different_though_the_outputs_are_equal(name: str) -> None:
    found = verify_models(SILENT[name], scaled(SILENT[name]))
    assert found.verdict == "different", found
    assert [region for region in found.regions if region.verdict == "different"]


WITHOUT_EFFECT = {
    # The two scales cancel in the quotient, but not before.
    "a quotient of scaled terms": (layer("k = Mul(a, c) l = Mul(m, c) y = Div(k, l)", c=3), "different"),
    # Both roots are NaN of every number; all nodes from the product to the power are one region.
    # Its outputs are NaN on any input: no run reads what differs.
    "roots of what is negative": (layer("e = Elu(a) n = Sub(o, e) y = Pow(n, h)", o=-1, h=0.5), "not-run"),
}


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_weights_that_change_no_output(name: str) -> None:
    """A difference in an inner value is one, whatever the outputs show."""
    model, verdict = WITHOUT_EFFECT[name]
    assert verify_models(model, model).verdict == "equal"
    assert verify_models(model, scaled(model)).verdict == verdict


ENOUGH = {
    "a product": (layer("y = Identity(m)"), 3),
    "no inputs": (parsed(" => float[4, 3] y", "y = Identity(w)", w=WEIGHTS), 1),
    "no inputs and no weights": (parsed(" => int64[2] y", "y = Constant<value_ints = [1, 2]>()"), 1),
    "a shape": (parsed("float[N, 4] x => int64[2] y", "y = Shape(x)"), 3),
    "splits": (
        parsed("float[N, 4] x => float[N, 2] y, float[N, 2] z", "y, z = Split<axis = 1, num_outputs = 2>(x)"),
        3,
    ),
    "a part that is always empty": (
        parsed("float[N, 4] x => float[N, 4] y, float[N, 0] z", "y, z = Split<axis = 1>(x, l)", l=np.array([4, 0])),
        3,
    ),
    "numbers of a given shape": (parsed("int64[2] s => float[A, B] y", "y = ConstantOfShape(s)"), 3),
    "an index of the largest": (layer("y = ArgMax<axis = 1>(m)", "float[N, 4] x => int64[N, 1] y"), 3),
    "text": (parsed("string[N] x => string[M] y", "y = Concat<axis = 0>(x, x)"), 3),
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
def test_models_of_all_kinds_are_equal_to_themselves(name: str) -> None:
    model, cases = ENOUGH[name]
    found = verify_models(model, model)
    assert (found.verdict, found.cases, found.diagnostics) == ("equal", cases, ()), found


@pytest.mark.parametrize("name", ["w", "b", "v"])
def test_one_weight_that_is_changed_shows_where_all_outputs_are_nan(name: str) -> None:
    """As of a detector of pitch, whose limits are numbers that random ones are not."""
    body = """
        l = Log(rate) z = Mul(l, zero) h = MatMul(x, w) r = Relu(h) k = Add(r, b) o = MatMul(k, v) y = Add(o, z)
    """
    held = {"w": SQUARE, "b": RNG.standard_normal(4).astype(np.float32), "v": SQUARE + 1, "zero": number(0)}
    model = parsed("float[N, 4] x, float[1] rate => float[N, 4] y", body, **held)
    other = parsed("float[N, 4] x, float[1] rate => float[N, 4] y", body, **{**held, name: held[name] * 1.01})
    assert verify_models(model, model).verdict == "equal"
    found = verify_models(model, other)
    assert found.verdict == "different"
    nodes = {"w": ("main/MatMul#2",), "b": ("main/Add#4",), "v": ("main/MatMul#5",)}
    assert [region.nodes_before for region in found.regions] == [nodes[name]]


def test_given_inputs_that_show_nothing_are_all_that_is_compared() -> None:
    model = layer("r = Relu(m) n = Neg(r) y = Exp(n)")
    zeros, ones = ({"x": np.full((2, 4), value, np.float32)} for value in (0, 1))
    for inputs in (zeros, ones):
        found = verify_models(model, model, inputs=inputs)
        assert (found.verdict, found.cases) == ("equal", 1)
    assert verify_models(model, scaled(model), inputs=ones).verdict == "different"
    assert verify_models(model, scaled(model), inputs=zeros).verdict == "equal"
