"""Comparisons below the opsets at which they took an element type or came to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import Array, assert_same, build, converted, operators, refusal, run, run_reference
from onnx import helper

FLOATS = [0.0, -0.0, 1.0, -1.5, 1e-40, 3e4, np.inf, -np.inf, np.nan]
LONG = [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**62 + 1, 2**63 - 1, -(2**63), -(2**63) + 1, 2**32]


def binary(op: str, opset: int, dtype: str, result: str) -> onnx.ModelProto:
    inputs = {"a": (dtype, ("n", 1)), "b": (dtype, ("m",))}
    return build(helper.make_node(op, ["a", "b"], ["c"]), opset, inputs, {"c": (result, ("n", "m"))})


def unary(op: str, opset: int, dtype: str, result: str, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(op, ["a"], ["c"], **attributes)
    return build(node, opset, {"a": (dtype, ("n",))}, {"c": (result, ("n",))})


def numbers(dtype: str) -> Array:
    if np.dtype(dtype).kind == "f":
        return np.array(FLOATS, dtype)
    if dtype in ("int64", "uint64"):
        return np.array(LONG, dtype=np.int64).astype(dtype)
    limits = np.iinfo(dtype)
    return np.array([0, 1, 2, limits.min, limits.max, limits.max - 1], dtype)


@pytest.mark.parametrize(
    ("model", "target", "reason"),
    [
        (binary("Equal", 19, "string", "bool"), 10, "exists from opset 11 on"),
        (build(helper.make_node("Where", ["c", "a", "a"], ["b"]), 9, {"c": ("bool", (1,)), "a": ("float32", (2**40,))},
               {"b": ("float32", (2**40,))}), 8, "the places of more than"),
        (build(helper.make_node("Where", ["c", "a", "a"], ["b"]), 9, {"c": ("bool", ("n",)), "a": ("float32", (3,))},
               {"b": ("float32", (3,))}), 8, "where they are"),
    ],
)  # fmt: skip
def test_refusals(model: onnx.ModelProto, target: int, reason: str) -> None:
    assert reason in refusal(model, target)


def test_what_both_opsets_compare_is_kept() -> None:
    assert operators(converted(binary("Equal", 13, "int64", "bool"), 9)) == ["Equal"]
    assert operators(converted(binary("Max", 13, "float32", "float32"), 9)) == ["Max"]
    assert operators(converted(binary("Less", 13, "int64", "bool"), 9)) == ["Less"]


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "int16", "uint8", "uint16", "uint32", "uint64"]
)
def test_equal_below_11(dtype: str) -> None:
    a = numbers(dtype)
    after = converted(binary("Equal", 13, dtype, "bool"), 10)
    assert_same([a[:, None] == a], run(after, {"a": a[:, None], "b": a}))


@pytest.mark.parametrize("op", ["Greater", "Less"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("target", [8, 7])
def test_order_of_integers_below_9(op: str, dtype: str, target: int) -> None:
    a = numbers(dtype)
    expected = a[:, None] > a if op == "Greater" else a[:, None] < a
    after = converted(binary(op, 13, dtype, "bool"), target)
    assert_same([expected], run_reference(after, {"a": a[:, None], "b": a}))


@pytest.mark.parametrize("op", ["Max", "Min"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("target", [11, 9])
def test_extremes_of_integers_below_12(op: str, dtype: str, target: int) -> None:
    a = numbers(dtype)
    extreme = np.maximum if op == "Max" else np.minimum
    after = converted(binary(op, 13, dtype, dtype), target)
    assert_same([extreme(a[:, None], a)], run(after, {"a": a[:, None], "b": a}))


@pytest.mark.parametrize("count", [1, 3])
def test_extremes_of_any_number_of_inputs(count: int) -> None:
    names = [f"x{index}" for index in range(count)]
    inputs: dict[str, Any] = dict.fromkeys(names, ("int64", (2,)))
    model = build(helper.make_node("Max", names, ["y"]), 12, inputs, {"y": ("int64", (2,))})
    feeds = {name: np.array([index, -index], np.int64) for index, name in enumerate(names)}
    expected = np.array([count - 1, 0], np.int64)
    assert_same([expected], run(converted(model, 11), feeds))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("target", [8, 7])
def test_nan_below_9(dtype: str, target: int) -> None:
    a = numbers(dtype)
    assert_same([np.isnan(a)], run(converted(unary("IsNaN", 13, dtype, "bool"), target), {"a": a}))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("positive", "negative"), [(1, 1), (1, 0), (0, 1), (0, 0)])
@pytest.mark.parametrize("target", [9, 7])
def test_infinity_below_10(dtype: str, positive: int, negative: int, target: int) -> None:
    a = np.array([*FLOATS, np.finfo(dtype).max, np.finfo(dtype).min], dtype)
    model = unary("IsInf", 10, dtype, "bool", detect_positive=positive, detect_negative=negative)
    expected = (np.isposinf(a) & bool(positive)) | (np.isneginf(a) & bool(negative))
    assert_same([expected], run(converted(model, target), {"a": a}))


def test_infinity_of_16_bits_below_20() -> None:
    a = np.array(FLOATS, np.float16)
    assert_same([np.isinf(a)], run(converted(unary("IsInf", 20, "float16", "bool"), 13), {"a": a}))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "int64", "uint8", "uint64"])
def test_sign_below_9(dtype: str) -> None:
    a = numbers(dtype)
    assert_same([np.sign(a) + 0], run_reference(converted(unary("Sign", 13, dtype, dtype), 8), {"a": a}))


@pytest.mark.parametrize("dtype", ["float32", "int64", "string", "bool"])
@pytest.mark.parametrize("shapes", [((2, 1), (3,), (1,)), ((), (2, 3), (3,)), ((), (), ())])
@pytest.mark.parametrize("target", [8, 6])
def test_choice_below_9(dtype: str, shapes: Any, target: int) -> None:
    condition = np.arange(int(np.prod(shapes[0]))).reshape(shapes[0]) % 2 == 0
    one, other = (np.array(held).astype(object if dtype == "string" else dtype) for held in
                  (np.arange(int(np.prod(shape))).reshape(shape) - 1 for shape in shapes[1:]))  # fmt: skip
    if dtype == "float32":
        one = np.where(one == 0, np.nan, one).astype(np.float32)
    if dtype == "string":
        one, other = one.astype(str).astype(object), other.astype(str).astype(object)
    expected = np.where(condition, one, other)
    inputs = {"c": ("bool", shapes[0]), "a": (dtype, shapes[1]), "b": (dtype, shapes[2])}
    model = build(helper.make_node("Where", ["c", "a", "b"], ["y"]), 9, inputs, {"y": (dtype, expected.shape)})
    found = run_reference(converted(model, target), {"c": condition, "a": one, "b": other})
    assert_same([expected], found) if dtype != "string" else np.testing.assert_array_equal(expected, found[0])
