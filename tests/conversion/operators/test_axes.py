"""Axes of Squeeze, Unsqueeze and the reductions: attribute, constant, or known only at run time."""

from __future__ import annotations

import numpy as np
import pytest
from conversion.operators.crossings import Crossing, both_shapes
from conversion.operators.execute import operators, random_array
from onnx import helper

X = random_array((3, 1, 4), seed=1)
POSITIVE = np.abs(X) + np.float32(0.5)
REDUCTIONS = [
    f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
]
# Operators and the opset from which on axes are an input.
BOUNDARIES = [*((op, 18) for op in REDUCTIONS), ("ReduceSum", 13)]


def axes(*given: int) -> np.ndarray:
    return np.array(given, np.int64)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            Crossing("rank", "ReduceMax", 18, 17, {"x": X, "axes": axes(0)}, shapes="unknown"),
            "rank of 'x' is unknown",
        ),
        (Crossing("empty", "Squeeze", 13, 12, {"x": X}, {"axes": axes()}), "squeezes nothing or everything"),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    assert words in case.refused()


@pytest.mark.parametrize(("op", "boundary"), BOUNDARIES)
def test_attribute_becomes_a_constant(op: str, boundary: int) -> None:
    for attributes in ({"axes": [0, -1]}, {"axes": [2], "keepdims": 0}, {}):
        Crossing("", op, boundary - 1, boundary, {"x": POSITIVE}, attributes=attributes, tolerance=1e-6).check()


@pytest.mark.parametrize(("op", "boundary"), BOUNDARIES)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("noop", [0, 1])
def test_constant_becomes_an_attribute(op: str, boundary: int, keepdims: int, noop: int) -> None:
    attributes = {"keepdims": keepdims, "noop_with_empty_axes": noop}
    for held in ({"axes": axes(0, 2)}, {"axes": axes(-1)}, {"axes": axes()}, {}):
        for target in (boundary - 1, 9):
            Crossing("", op, boundary, target, {"x": POSITIVE}, held, attributes, tolerance=1e-6).check()


@pytest.mark.parametrize(("op", "boundary"), BOUNDARIES)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("noop", [0, 1])
@pytest.mark.parametrize("target", [17, 11])
def test_axes_at_run_time(op: str, boundary: int, keepdims: int, noop: int, target: int) -> None:
    if target >= boundary:
        target = boundary - 1
    attributes = {"keepdims": keepdims, "noop_with_empty_axes": noop}
    for given in (axes(1), axes(-1, 0), axes(), axes(0, 1, 2)):
        case = Crossing("", op, boundary, target, {"x": POSITIVE, "axes": given}, {}, attributes, tolerance=1e-5)
        for each in both_shapes(case):
            each.check()


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("target", [17, 13])
@pytest.mark.parametrize("shape", [(2, 0, 3), (0, 2, 3), (2, 3, 0)])
def test_sum_of_squares_of_nothing_at_run_time(keepdims: int, target: int, shape: tuple[int, ...]) -> None:
    empty = np.zeros(shape, np.float32)
    for given in (axes(1), axes(0, 2), axes()):
        case = Crossing("", "ReduceSumSquare", 18, target, {"x": empty, "axes": given}, {}, {"keepdims": keepdims})
        for each in both_shapes(case):
            each.check()


@pytest.mark.parametrize("target", [12, 11, 9])
def test_squeeze_and_unsqueeze_at_run_time(target: int) -> None:
    x = random_array((1, 3, 1, 2))
    for case in (
        Crossing("some", "Squeeze", 13, target, {"x": x, "axes": axes(2)}),
        Crossing("all", "Squeeze", 13, target, {"x": x, "axes": axes(-2, 0)}),
        Crossing("two", "Unsqueeze", 13, target, {"x": x, "axes": axes(4, 0)}),
        Crossing("end", "Unsqueeze", 13, target, {"x": x, "axes": axes(-1)}),
        Crossing("none", "Unsqueeze", 13, target, {"x": x}, {"axes": axes()}),
    ):
        case.check()


def test_one_axis_without_a_dimension_at_run_time() -> None:
    for case in both_shapes(Crossing("", "Unsqueeze", 13, 12, {"x": X, "axes": np.array(1)})):
        case.check()


@pytest.mark.parametrize("given", [(0, 3, 1), (0, 3, -3), (-1, 1)])
@pytest.mark.parametrize(("source", "target"), [(11, 10), (12, 7), (13, 9)])
def test_squeezed_axes_ascend_below_11(given: tuple[int, ...], source: int, target: int) -> None:
    """The checker and runtimes infer another rank where they do not."""
    x = random_array((1, 1, 2, 1))
    held, attributes = ({"axes": axes(*given)}, {}) if source > 12 else ({}, {"axes": given})
    after = Crossing("", "Squeeze", source, target, {"x": x}, held, attributes).check()
    assert helper.get_attribute_value(after.graph.node[0].attribute[0]) == sorted(axis % 4 for axis in given)


@pytest.mark.parametrize("target", [12, 11])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_tensors_that_may_be_empty_keep_their_dimensions(target: int, dtype: str) -> None:
    for shape in ((1, 0, 1, 2), (1, 3, 1, 0), (1, 3, 1, 2)):
        x = random_array(shape, dtype)
        Crossing("", "Squeeze", 13, target, {"x": x, "axes": axes(0, 2)}, shapes="symbolic").check()
        Crossing("", "Unsqueeze", 13, target, {"x": x, "axes": axes(-1, 1)}, shapes="symbolic").check()


def test_noop_leaves_the_elements_of_a_plain_reduction_alone() -> None:
    case = Crossing("", "ReduceMean", 18, 17, {"x": X}, attributes={"noop_with_empty_axes": 1})
    assert operators(case.check()) == ["Identity"]
