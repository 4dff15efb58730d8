"""Which inputs and weights lead to which outputs of a model, and what becomes of weights that are moved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from splitgraph.execution.dependence import read_dependence
from splitgraph.execution.moved_weights import MOVES, move_onnx, moved
from splitgraph.execution.ordinary_inputs import BATCHES, batches, refill, suggested_numbers

from .small_models import parsed

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


def test_weights_are_moved_in_one_direction_by_different_factors() -> None:
    for dtype in (np.float32, np.float64, np.float16):
        result = moved(np.full((5, 7), -3, dtype), "w", MOVES[0])
        assert result.dtype == dtype
        factors = result.astype(np.float64) / -3
        assert (factors.min() > 1.19, factors.max() < 1.41, len(np.unique(factors)) > 20) == (True, True, True)
    assert moved(np.float32(2), "s", MOVES[0]).shape == ()


def test_what_is_infinite_or_as_large_as_can_be_stays_so() -> None:
    largest = float(np.finfo(np.float16).max)
    held = np.array([np.inf, -np.inf, np.nan, largest, 0], np.float16)
    np.testing.assert_array_equal(moved(held, "w", MOVES[0]), held)


def test_a_copy_has_other_weights_wherever_they_are(tmp_path: Path) -> None:
    body = (
        "c = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>() d = Add(x, c) f = local.F(d) m = MatMul(f, w)"
        " k = Mul(m, s) y = If(b) "
        "<then_branch = t () => (float[N, 4] a) { e = Constant<value_float = 5.0>() a = Mul(k, e) }, "
        "else_branch = e () => (float[N, 4] g) { g = Neg(k) }>"
    )
    held = {"w": W, "s": np.float32(3), "kept": np.float32(7)}
    model = parsed("float[N, 4] x, bool b => float[N, 4] y", body, FUNCTION, **held)
    onnx.save(model, tmp_path / "model.onnx")
    copy = onnx.load(move_onnx(tmp_path / "model.onnx", None, ["kept"], MOVES[0]))
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in copy.graph.initializer}
    assert (arrays["w"] > W).all()
    assert (arrays["s"] > 3, arrays["kept"] == 7) == (True, True)
    constants = [copy.graph.node[0], copy.graph.node[-1].attribute[0].g.node[0], copy.functions[0].node[0]]
    numbers = [
        [*node.attribute[0].floats, *([node.attribute[0].f] if node.attribute[0].f else [])] for node in constants
    ]
    assert [
        all(new > old for new, old in zip(*each, strict=True))
        for each in zip(numbers, ([1, 2, 3, 4], [5], [2]), strict=True)
    ] == [True] * 3
    assert onnx.load(tmp_path / "model.onnx") == model


REFILLED = {
    "floats": np.ones((3, 5), np.float32),
    "halves": np.ones((3, 5), np.float16),
    "a number": np.float32(1).reshape(1),
    "an integer": np.array([3]),
    "integers": np.arange(6),
    "a condition": np.array(True),
    "text": np.array(["a", "b"], dtype=object),
    "complex": np.ones(3, np.complex64),
    "a sequence": [np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)],
    "nothing": np.ones((0, 3), np.float32),
}


@pytest.mark.parametrize("name", REFILLED)
def test_what_is_refilled_keeps_its_type_and_shape(name: str) -> None:
    value = REFILLED[name]
    for number in range(sum(BATCHES)):
        made = refill(value, number, 0, np.random.default_rng(number), [1.0, 16000.0, 1e9])
        for new, old in zip(made, value, strict=True) if isinstance(value, list) else [(made, value)]:
            assert (new.dtype, new.shape) == (old.dtype, old.shape)
    assert [number for batch in batches() for number in batch] == list(range(sum(BATCHES)))


def test_numbers_are_those_of_the_model_and_usual_ones() -> None:
    body = "r = Constant<value = float {12345.0}>() d = Sub(x, r) y = MatMul(d, w)"
    model = parsed("float[N, 77] x => float[N, 4] y", body, w=np.ones((77, 4), np.float32), e=np.float32(1e-12))
    found = suggested_numbers(model)
    assert {12345.0, 77.0, 4.0, 0.0, 1.0, 16000.0} <= set(found)
    assert 1e-12 not in found
