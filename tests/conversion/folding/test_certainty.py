"""What is evaluated is what every engine gives, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from folded_models import fold, operators, plain_session
from folded_models import model as made_model
from node_tests import node_tests
from onnx import numpy_helper

import splitgraph
from splitgraph.conversion.folding.certainty import is_certain, may_be_certain

F, I32, I64 = np.float32, np.int32, np.int64
UNCERTAIN = [
    ("Add", [I64([2**63 - 1]), I64([1])], I64([-(2**63)])),
    ("Sub", [np.uint8([1]), np.uint8([2])], np.uint8([255])),
    ("Mul", [I64([2**32]), I64([2**31])], I64([-(2**63)])),
    ("Neg", [I32([-(2**31)])], I32([-(2**31)])),
    ("Div", [I64([-7]), I64([2])], I64([-4])),
    ("Mod", [I64([7]), I64([0])], I64([0])),
    ("ReduceSum", [F([1, 2])], F([3])),
    ("ReduceProd", [I64([2**32, 2**32])], I64([0])),
    ("CumSum", [I64([2**62, 2**62]), I64(0)], I64([2**62, -(2**63)])),
    ("Cast", [F([np.nan])], I64([0])),
    ("Cast", [F([3e10])], I32([2**31 - 1])),
    ("Cast", [I64([300])], np.uint8([44])),
    ("Cast", [np.float64([1e300])], F([np.inf])),
    ("Max", [F([np.nan]), F([1])], F([np.nan])),
    ("Min", [F([-0.0]), F([0])], F([-0.0])),
    ("Range", [F(0), F(1), F(0.1)], F([0, 0.1])),
    ("ScatterND", [F([1, 2]), I64([[0], [0]]), F([3, 4])], F([4, 2])),
    ("BitShift", [np.uint8([1]), np.uint8([8])], np.uint8([0])),
    ("Where", [np.array([True]), F([-0.0]), F([1])], F([-0.0])),
    # onnx's evaluator adds the difference of the two values to the first one.
    ("OneHot", [I64([1]), I64(2), F([-0.0, 1])], F([[0, 1]])),
    ("OneHot", [I64([1]), I64(2), F([1e8, 1])], F([[1e8, 0]])),
]
CERTAIN = [
    ("Add", [I64([2**62]), I64([1])], I64([2**62 + 1])),
    ("Div", [I64([7]), I64([2])], I64([3])),
    ("Div", [F([1]), F([3])], F([1 / 3])),
    ("Mul", [F([-0.0, np.nan]), F([1, 1])], F([-0.0, np.nan])),
    ("ReduceProd", [I64([3, 4])], I64([12])),
    ("Cast", [F([-2.5])], I64([-2])),
    ("Cast", [F([np.inf])], np.float64([np.inf])),
    ("Max", [F([2]), F([1])], F([2])),
    ("Range", [F(0), F(1), F(0.25)], F([0, 0.25, 0.5, 0.75])),
    ("ScatterND", [F([1, 2]), I64([[0], [1]]), F([3, 4])], F([3, 4])),
    ("Where", [np.array([True]), F([0]), F([np.nan])], F([0])),
    ("Where", [np.array([True]), I64([0]), I64([1])], I64([0])),
    ("OneHot", [I64([1]), I64(2), F([0, 3])], F([[0, 3]])),
    ("OneHot", [I64([1]), I64(2), np.uint8([1, 0])], np.uint8([[1, 0]])),
]


@pytest.mark.parametrize(("operator", "given", "made"), UNCERTAIN)
def test_what_engines_give_in_several_ways(operator: str, given: list[Any], made: Any) -> None:
    assert not is_certain(operator, [np.asarray(array) for array in given], [np.asarray(made)])


@pytest.mark.parametrize(("operator", "given", "made"), CERTAIN)
def test_what_all_engines_give(operator: str, given: list[Any], made: Any) -> None:
    assert is_certain(operator, [np.asarray(array) for array in given], [np.asarray(made)])


@pytest.mark.parametrize("operator", ["Sin", "MatMul", "Softmax", "DequantizeLinear", "RandomNormal", "Resize"])
def test_operators_that_round_or_draw_are_never_certain(operator: str) -> None:
    assert not may_be_certain(operator, 23)


# What onnx's evaluator gives for them is not what runtimes give, or not in the order.
LEFT_OPEN = [
    "(float[N] x) => (float[a] y) <float[3] d = {3, 1, 3}> { y = Unique <sorted = 0> (d) }",
    "(float[N] x) => (int64[a, b] y) <int64[2, 2] d = {3, 1, 2, 4}> { y, i = Unique <sorted = 0, axis = 1> (d) }",
    "(float[N] x) => (float[3] y) <float[4] d = {3, 1, 4, 2}, int64[1] k = {3}> { y, i = TopK <sorted = 0> (d, k) }",
    "(float[N] x) => (int64[a, b] y) <int64 d = {5}> { y = NonZero (d) }",
    "(float[N] x) => (float[2, a] y) <int64[2] d = {0, 1}, float k = {2.5}, float[2] v = {0, 1}> "
    "{ y = OneHot (d, k, v) }",
    "(float[N] x) => (float[1, 2] y) <float[1] d = {0.5}, int64 k = {2}, float[2] v = {0, 1}> { y = OneHot (d, k, v) }",
    # Backward slices that start before the first element, and that end at the largest integer.
    "(float[N] x) => (int64[a] y) <int64[3] d = {1, 2, 3}, int64[1] s = {-9}, int64[1] e = {-9}, int64[1] z = {0}, "
    "int64[1] t = {-1}> { y = Slice (d, s, e, z, t) }",
    "(float[N] x) => (int64[a] y) <int64[3] d = {1, 2, 3}, int64[1] s = {-1}, int64[1] e = {9223372036854775807}, "
    "int64[1] t = {-1}> { y = Slice (d, s, e, , t) }",
]
FOLDED = [
    "(float[N] x) => (int64[a] y) <int64[3] d = {1, 2, 3}, int64[1] s = {-1}, int64[1] e = {-9}, int64[1] t = {-1}> "
    "{ y = Slice (d, s, e, , t) }",
    # Of no element nothing can be disputed.
    "(float[N] x) => (int64[a] y) <int64[0] d = {}, int64[1] s = {-9}, int64[1] e = {-9}, int64[1] t = {-1}> "
    "{ y = Slice (d, s, e, , t) }",
]


@pytest.mark.parametrize("body", LEFT_OPEN)
def test_what_the_evaluator_and_runtimes_give_in_several_ways_is_not_known(body: str) -> None:
    before = made_model(body)
    assert operators(fold(before).model) == operators(before)


@pytest.mark.parametrize("body", FOLDED)
def test_what_all_give_in_one_way_is_known(body: str) -> None:
    assert operators(fold(made_model(body)).model) == ["Constant"]


@pytest.mark.slow
def test_node_tests_with_constants_as_inputs_fold_to_what_onnxruntime_gives() -> None:
    compared, wrong = 0, []
    for case in node_tests():
        given, _ = case.data_sets[0]
        if not all(isinstance(array, np.ndarray) for array in given):
            continue
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        names = [value.name for value in model.graph.input]
        del model.graph.input[:]
        model.graph.initializer.extend(map(numpy_helper.from_array, given, names))
        nodes = splitgraph.convert(model, fold=True).model.graph.node
        if any(node.op_type != "Constant" for node in nodes):
            continue
        made = {node.output[0]: numpy_helper.to_array(node.attribute[0].t) for node in nodes}
        try:
            expected = plain_session(model).run(None, {})
        except Exception:  # onnxruntime has no kernel for some types
            continue
        compared += 1
        found = [made[value.name] for value in model.graph.output]
        wrong += [case.name] if not all(map(_is_same, found, expected)) else []
    assert not wrong
    assert compared > 350


def _is_same(one: Any, other: Any) -> bool:
    """Return True for the same bits; NaN has several."""
    other = np.asarray(other)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return bool((one == other).all())
    is_same = ((one == other) & (np.signbit(one) == np.signbit(other))) | (np.isnan(one) & np.isnan(other))
    return bool(is_same.all())
