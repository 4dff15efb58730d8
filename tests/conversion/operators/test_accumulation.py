"""Cumulative sums and products, rounding, and updates of caches below the opsets of their operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import (
    Array,
    assert_same,
    build,
    converted,
    operators,
    random_array,
    refusal,
    run,
    run_reference,
)
from onnx import helper


def accumulation(
    op: str, opset: int, x: Any, axis: int | None, dtype: str = "float32", **attributes: int
) -> onnx.ModelProto:
    """axis: None for one that is known only at run time; x: the declared shape."""
    node = helper.make_node(op, ["x", "axis"], ["y"], **attributes)
    inputs: dict[str, Any] = {"x": (dtype, x)}
    if axis is None:
        inputs["axis"] = ("int64", ())
    held = {} if axis is None else {"axis": np.array(axis, np.int64)}
    return build(node, opset, inputs, {"y": (dtype, x)}, held)


def accumulated(op: str, x: Array, axis: int, exclusive: int, reverse: int) -> Array:
    flipped = np.flip(x, axis) if reverse else x
    neutral = np.full_like(np.take(x, [0], axis), 0 if op == "CumSum" else 1)
    if exclusive:
        last = np.arange(x.shape[axis] - 1)
        flipped = np.concatenate([neutral, np.take(flipped, last, axis)], axis)
    result = (np.cumsum if op == "CumSum" else np.cumprod)(flipped, axis, dtype=x.dtype)
    return np.flip(result, axis) if reverse else result


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (accumulation("CumSum", 11, None, 0), "the rank of 'x' is unknown"),
        (accumulation("CumSum", 11, None, None), "the rank of 'x' is unknown"),
    ],
)
def test_refusals(model: onnx.ModelProto, reason: str) -> None:
    assert reason in refusal(model, 10)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize(("op", "opset", "target"), [("CumSum", 14, 10), ("CumSum", 11, 9), ("CumProd", 26, 13)])
@pytest.mark.parametrize(("axis", "shape"), [(0, (4,)), (-1, (2, 3, 4)), (1, (2, 3, 4)), (0, (2, 0)), (2, (2, 3, 1))])
def test_accumulation(op: str, opset: int, target: int, axis: int, shape: Any, exclusive: int, reverse: int) -> None:
    x = random_array(shape)
    declared = tuple(f"d{index}" for index in range(len(shape)))
    model = accumulation(op, opset, declared, axis, exclusive=exclusive, reverse=reverse)
    assert_same([accumulated(op, x, axis, exclusive, reverse)], run(converted(model, target), {"x": x}), 1e-6)


EMPTY = [((None, None), shape) for shape in ((0, 3), (3, 0), (0, 0), (2, 3))]
EMPTY += [(("n", 3), (0, 3)), (("n", 3), (2, 3)), ((0, 3), (0, 3))]


@pytest.mark.parametrize(("declared", "shape"), EMPTY)
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize(("op", "opset", "target"), [("CumSum", 11, 9), ("CumProd", 26, 13)])
def test_empty_dimensions_stay(op: str, opset: int, target: int, axis: int | None, declared: Any, shape: Any) -> None:
    """onnxruntime's Scan fails over nothing, and divides by another dimension that is 0."""
    x = random_array(shape)
    feeds = {"x": x} if axis is not None else {"x": x, "axis": np.array(1)}
    after = converted(accumulation(op, opset, declared, axis), target)
    expected = (np.cumsum if op == "CumSum" else np.cumprod)(x, 1 if axis is None else axis, dtype=x.dtype)
    assert_same([expected], run(after, feeds), 1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_axis_of_run_time(axis: int, dtype: str) -> None:
    x = random_array((2, 3, 4), dtype)
    model = accumulation("CumSum", 11, (2, 3, 4), None, dtype)
    for target in (10, 9):
        found = run(converted(model, target), {"x": x, "axis": np.array(axis)})
        assert_same([np.cumsum(x, axis, dtype=dtype)], found, 1e-12)


def test_sum_of_minus_zeros_is_minus_zero() -> None:
    x = np.array([-0.0, -0.0, 1.0], np.float32)
    found = run(converted(accumulation("CumSum", 11, (3,), 0), 10), {"x": x})
    assert_same([np.array([-0.0, -0.0, 1.0], np.float32)], found)


def test_sum_of_nothing_is_no_minus_zero() -> None:
    model = accumulation("CumSum", 14, (3,), 0, exclusive=1)
    found = run(converted(model, 10), {"x": np.ones(3, np.float32)})
    assert_same([np.array([0.0, 1.0, 2.0], np.float32)], found)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
def test_rounding_below_11(dtype: str) -> None:
    numbers = [0.0, 0.5, 1.5, 2.5, 3.5, 0.4999, 0.50001, 1.2, 7.8, 1023.5, 2048.0, 8388608.0, 4503599627370497.0]
    x = np.array([*numbers, *(-each for each in numbers), np.inf, -np.inf, np.nan], np.float64)
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    model = build(helper.make_node("Round", ["x"], ["y"]), 11, {"x": (dtype, ("n",))}, {"y": (dtype, ("n",))})
    after = converted(model, 10)
    assert_same([np.rint(x)], run_reference(after, {"x": x}))
    assert_same([np.rint(x)], run(after, {"x": x}))
    nearly = np.array([0.49999997, -0.49999997, 0.50000006], np.float32)
    if dtype == "float32":
        assert_same([np.rint(nearly)], run_reference(after, {"x": nearly}))


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [-2, 1, None])
@pytest.mark.parametrize("begins", [None, (0, 2), (1, 3)])
@pytest.mark.parametrize("target", [23, 18, 11])
def test_cache_updates_below_24(mode: str, axis: int | None, begins: Any, target: int) -> None:
    past, update = random_array((2, 5, 3, 4)), random_array((2, 2, 3, 4), seed=1)
    place = 2 if axis is None else axis % 4
    if place == 2:
        past, update = past.swapaxes(1, 2), update.swapaxes(1, 2)
    if begins and mode == "circular":
        begins = (begins[0], 4)
    expected = past.copy()
    for batch, index in np.ndindex(2, 2):
        where = ((begins or (0, 0))[batch] + index) % 5
        source = (batch, *([slice(None)] * (place - 1)), index)
        expected[(batch, *([slice(None)] * (place - 1)), where)] = update[source]
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    names = ["past", "update"] + (["begins"] if begins else [])
    inputs: dict[str, Any] = {"past": ("float32", past.shape), "update": ("float32", update.shape)}
    feeds: dict[str, Any] = {"past": past, "update": update}
    if begins:
        inputs["begins"], feeds["begins"] = ("int64", (2,)), np.array(begins)
    model = build(helper.make_node("TensorScatter", names, ["y"], mode=mode, **attributes), 24, inputs,
                  {"y": ("float32", past.shape)})  # fmt: skip
    after = converted(model, target)
    assert "ScatterElements" in operators(after)
    assert_same([expected], run(after, feeds))
