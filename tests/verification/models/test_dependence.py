"""The inputs and weights that each output of a model depends on."""

from __future__ import annotations

import numpy as np
import pytest

from splitgraph.verification.models.dependence import read_dependence

from ..small_models import parsed

W = np.ones((4, 4), np.float32) * 2
TWO = "float[N, 4] x, float[N, 4] z => float[N, 4] y, float[N, 4] v"
FUNCTION = '<domain: "local", opset_import: ["": 18]> F (a) => (b) { c = Constant<value_float = 2.0>() b = Mul(a, c) }'

# The outputs to which each input leads, those to which weights lead, and the small tensors that make shapes.
READ = {
    "each its own": (parsed(TWO, "y = MatMul(x, w) v = Neg(z)", w=W), ["y", "v"], "y", ""),
    "both": (parsed(TWO, "y = MatMul(x, w) v = Add(y, z)", w=W), ["yv", "v"], "yv", ""),
    "a shape leads nowhere": (
        parsed(TWO, "s = Shape(x) y = ConstantOfShape(s) v = MatMul(z, w)", w=W),
        ["", "v"],
        "v",
        "",
    ),
    "what is of a shape": (
        parsed(TWO, "y = Resize(x, , scales) v = Neg(z)", scales=np.array([1, 1], np.float32)),
        ["y", "v"],
        "",
        "scales",
    ),
    "what a shape is computed from": (
        parsed(
            TWO,
            "s = Shape(x) f = Cast<to = 1>(s) g = Mul(f, one) i = Cast<to = 7>(g) y = Reshape(x, i) v = MatMul(z, w)",
            one=np.float32(1),
            w=W,
        ),
        ["y", "v"],
        "v",
        "one",
    ),
    "zeros, epsilons and bounds": (
        parsed(
            TWO,
            "a = Clip(x, o, most) y = Add(a, e) v = Neg(z)",
            o=np.float32(0),
            most=np.float32(3e38),
            e=np.float32(1e-9),
        ),
        ["y", "v"],
        "",
        "",
    ),
    "integers": (parsed(TWO, "y = Gather<axis = 1>(x, i) v = Neg(z)", i=np.array([3, 2, 1, 0])), ["y", "v"], "", ""),
    "nodes out of order": (parsed(TWO, "y = Neg(m) v = Add(z, m) m = MatMul(x, w)", w=W), ["yv", "v"], "yv", ""),
    "a function": (parsed(TWO, "y = local.F(x) v = Neg(z)", FUNCTION), ["y", "v"], "y", ""),
    "a body": (
        parsed(
            "bool c, float[N, 4] z => float[N, 4] y, float[N, 4] v",
            "y = If(c) <then_branch = t () => (float[N, 4] a) { a = MatMul(z, w) }, "
            "else_branch = e () => (float[N, 4] b) { b = Neg(z) }> v = Neg(z)",
            w=W,
        ),
        ["y", "yv"],
        "y",
        "",
    ),
}


@pytest.mark.parametrize("name", READ)
def test_what_leads_to_which_output(name: str) -> None:
    model, inputs, weights, of_shapes = READ[name]
    found = read_dependence(model)

    def named(mask: int) -> str:
        return "".join(output for position, output in enumerate("yv") if mask >> position & 1)

    assert [named(found.inputs[value.name]) for value in model.graph.input] == inputs
    assert named(found.on_weights) == weights
    assert found.of_shapes == {of_shapes} - {""}


def test_weights_that_lead_to_some_outputs_alone() -> None:
    model = parsed(TWO, "a = MatMul(x, w) y = MatMul(a, u) v = Add(a, z)", w=W, u=W)
    found = read_dependence(model)
    assert [found.leading_only_to(outputs) for outputs in (1, 2, 3)] == [["u"], [], ["w", "u"]]
