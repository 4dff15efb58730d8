"""What depends on the elements of the inputs, and which inputs are lengths or positions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from splitgraph.verification.models.dependence import (
    divisor_inputs,
    index_inputs,
    outputs_of_inputs,
    shape_inputs,
    values_of_elements,
)

from ..small_models import parsed

W = np.ones((4, 4), np.float32) * 2
TWO = "float[N, 4] x, float[N, 4] z => float[N, 4] y, float[N, 4] v"
FUNCTION = '<domain: "local", opset_import: ["": 18]> F (a) => (b) { c = Constant<value_float = 2.0>() b = Mul(a, c) }'
WITH_BODY = parsed(
    "bool c, float[N, 4] z => float[N, 4] y, float[N, 4] v",
    "y = If(c) <then_branch = t () => (float[N, 4] a) { a = MatMul(z, w) }, "
    "else_branch = e () => (float[N, 4] b) { b = Neg(z) }> v = Neg(z)",
    w=W,
)
SHAPED = parsed(
    TWO,
    "s = Shape(x) f = Cast<to = 1>(s) g = Mul(f, one) i = Cast<to = 7>(g) y = Reshape(x, i) v = MatMul(z, w)",
    one=np.float32(1),
    w=W,
)

# The outputs that each input leads to.
OUTPUTS = {
    "each its own": (parsed(TWO, "y = MatMul(x, w) v = Neg(z)", w=W), ["y", "v"]),
    "both": (parsed(TWO, "y = MatMul(x, w) v = Add(y, z)", w=W), ["yv", "v"]),
    "a shape leads nowhere": (parsed(TWO, "s = Shape(x) y = ConstantOfShape(s) v = MatMul(z, w)", w=W), ["", "v"]),
    "what a shape is computed from": (SHAPED, ["y", "v"]),
    "nodes out of order": (parsed(TWO, "y = Neg(m) v = Add(z, m) m = MatMul(x, w)", w=W), ["yv", "v"]),
    "a function": (parsed(TWO, "y = local.F(x) v = Neg(z)", FUNCTION), ["y", "v"]),
    "a body": (WITH_BODY, ["y", "yv"]),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_what_leads_to_which_output(name: str) -> None:
    model, outputs = OUTPUTS[name]
    names = [value.name for value in model.graph.input]
    found = [outputs_of_inputs(model, [each]) for each in names]
    assert ["".join("yv"[place] for place in sorted(places)) for places in found] == outputs
    assert outputs_of_inputs(model, names) == set().union(*found)
    assert outputs_of_inputs(model, []) == set()


# The values that the elements of inputs reach.
REACHED = {
    "a product": (parsed(TWO, "m = MatMul(x, w) y = Neg(m) v = Neg(z)", w=W), "m v x y z"),
    "sizes": (SHAPED, "v x y z"),
    "constants": (parsed(TWO, "k = Neg(w) y = MatMul(x, k) s = Size(z) v = Expand(k, s)", w=W), "x y z"),
    "random numbers": (parsed(TWO, "y = RandomNormalLike(x) v = Neg(y)"), "v x y z"),
    "a body": (WITH_BODY, "c v y z"),
    "a body that reads constants": (
        parsed(
            TWO,
            "t = Constant<value = bool {1}>() k = If(t) <then_branch = t () => (float[N, 4] a) { a = Neg(w) }, "
            "else_branch = e () => (float[N, 4] b) { b = Abs(w) }> y = Mul(x, k) v = Neg(z)",
            w=W,
        ),
        "v x y z",
    ),
}


@pytest.mark.parametrize("name", REACHED)
def test_values_that_depend_on_elements(name: str) -> None:
    model, names = REACHED[name]
    assert sorted(values_of_elements(model)) == names.split()


# The inputs that are positions, and those that are lengths.
MEANINGS: dict[str, tuple[onnx.ModelProto, set[str], set[str]]] = {
    "several": (
        parsed(
            "float[9] x, int64[N] i, int64[2] s, int32[3] u => float[N] z, int32[3] k, float b",
            "j = Add(i, i) y = Gather(x, j) z = Expand(y, s) k = Mul(u, u) a = ArgMax<axis = 0>(u) b = Gather(x, a)",
        ),
        {"i"},
        {"s"},
    ),
    "a divisor": (parsed("int32[N] a, int32[N] b => int32[N] y", "y = Div(a, b)"), {"b"}, set()),
    "fractions": (parsed("float[N] a, float[N] b => float[N] y", "y = Div(a, b)"), set(), set()),
    "a number of iterations": (
        parsed(
            "int64 n, float x => float y",
            "y = Loop(n, , x) <b = g (int64 i, bool c, float s) => (bool d, float t) { d = Identity(c) t = Neg(s) }>",
        ),
        {"n"},
        {"n"},
    ),
    "a condition": (WITH_BODY, {"c"}, set()),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_inputs_with_a_meaning(name: str) -> None:
    model, positions, lengths = MEANINGS[name]
    assert (index_inputs(model), shape_inputs(model)) == (positions, lengths)


def test_a_value_of_another_type_does_not_depend_on_what_has_the_type() -> None:
    model = parsed(
        "float[N] a => double[1] y, float[N] z", "c = CastLike(k, a) y = Cast<to = 11>(c) z = Neg(a)", k=np.float32([1])
    )
    assert values_of_elements(model) == {"a", "z"}
    assert outputs_of_inputs(model, ["a"]) == {1}


TWO = "int64[N] a, int64[N] b => int64[N] y"
DIVISORS = {
    "a divisor": (parsed(TWO, "y = Div(a, b)"), {"b"}),
    "of a remainder": (parsed(TWO, "y = Mod(a, b)"), {"b"}),
    "fractions": (parsed("float[N] a, float[N] b => float[N] y", "y = Div(a, b)"), set()),
    "of several": (parsed(TWO, "c = Div(b, a) y = Mod(c, b)"), {"a", "b"}),
    "from which the divisor is computed": (parsed(TWO, "c = Neg(b) y = Div(a, c)"), {"b"}),
    "in a branch": (
        parsed(
            "bool c, int64[N] a, int64[N] b => int64[N] y",
            "y = If(c) <then_branch = g () => (t) { t = Div(a, b) }, else_branch = h () => (e) { e = Identity(b) }>",
        ),
        {"b"},
    ),
    "a position, too": (parsed(TWO, "c = Div(a, b) y = Gather(a, b)"), set()),
    "a position is computed from the quotient": (parsed(TWO, "c = Div(a, b) y = Gather(a, c)"), set()),
}


@pytest.mark.parametrize("name", DIVISORS)
def test_inputs_that_divide(name: str) -> None:
    model, divisors = DIVISORS[name]
    assert divisor_inputs(model) == divisors
