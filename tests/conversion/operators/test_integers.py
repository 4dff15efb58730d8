"""Arithmetic of integers below the opsets of its operators, and Mod of floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import Array, assert_same, build, converted, operators, run, run_reference
from onnx import helper

from splitgraph import convert

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
REALS = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 7.0, -7.25, 1e-30, -1e-30, 3e4, np.inf, -np.inf, np.nan]


def binary(op: str, opset: int, dtype: str, other: str | None = None, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(op, ["a", "b"], ["c"], **attributes)
    inputs = {"a": (dtype, ("n", 1)), "b": (other or dtype, ("m",))}
    return build(node, opset, inputs, {"c": (dtype, ("n", "m"))})


def unary(op: str, opset: int, dtype: str, result: str, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(op, ["a"], ["c"], **attributes)
    return build(node, opset, {"a": (dtype, ("n",))}, {"c": (result, ("n",))})


def run_converted(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """From onnxruntime, which has no opset of the IR version that the model has kept."""
    model.ir_version = 10
    return run(model, feeds)


def numbers(dtype: str) -> Array:
    limits = np.iinfo(dtype)
    few = [0, 1, 2, 3, 7, 100, limits.max, limits.max - 1, limits.max // 2 + 1, limits.min, limits.min + 1]
    return np.array(few + ([-1, -2, -7, -100] if limits.min else []), dtype)


def python_shift(data: Array, amount: Array, direction: str) -> Array:
    """What the document of BitShift-28 says, in Python's integers."""
    limits, bits = np.iinfo(data.dtype), np.iinfo(data.dtype).bits
    result = np.zeros(np.broadcast_shapes(data.shape, amount.shape), data.dtype)
    for place in np.ndindex(result.shape):
        x, y = (int(np.broadcast_to(held, result.shape)[place]) for held in (data, amount))
        if direction == "RIGHT":
            shifted = x >> (y if 0 <= y < bits else bits)
        else:
            shifted = (x << y) % 2**bits if 0 <= y < bits else 0
        result[place] = shifted - 2**bits if shifted > limits.max else shifted
    return result


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("fmod", [0, 1])
def test_remainder_below_10(dtype: str, fmod: int) -> None:
    a = numbers(dtype)
    b = a[(a != 0) & (a != a.dtype.type(-1))] if dtype.startswith("i") else a[a != 0]
    expected = np.fmod(a[:, None], b) if fmod else np.mod(a[:, None], b)
    after = converted(binary("Mod", 13, dtype, fmod=fmod), 9)
    assert_same([expected], run_reference(after, {"a": a[:, None], "b": b}))
    if dtype in ("int32", "int64", "uint32"):
        assert_same([expected], run(after, {"a": a[:, None], "b": b}))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
def test_floor_remainder_of_floats_below_28(dtype: str) -> None:
    a = np.array(REALS, dtype)
    with np.errstate(all="ignore"):
        expected = np.mod(a[:, None], a)
    after = converted(binary("Mod", 28, dtype), 18)
    # onnxruntime's Where makes 0 of -0.
    found = run_reference(after, {"a": a[:, None], "b": a})
    assert_same([expected], found)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("target", [27, 10])
def test_shifts(dtype: str, direction: str, target: int) -> None:
    bits = np.iinfo(dtype).bits
    a, b = numbers(dtype), np.array([0, 1, 3, bits - 1, bits, 100] + ([-1] if dtype.startswith("i") else []), dtype)
    after = converted(binary("BitShift", 28, dtype, direction=direction), target)
    found = (run_converted if target < 27 and bits > 16 else run_reference)(after, {"a": a[:, None], "b": b})
    assert_same([python_shift(a[:, None], b, direction)], found)


@pytest.mark.parametrize("dtype", [dtype for dtype in INTEGERS if dtype.startswith("u")])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_are_verified_with_all_powers(dtype: str, direction: str) -> None:
    """Each power of two is read, beside numbers that it divides."""
    found = convert(binary("BitShift", 11, dtype, direction=direction), opset=10, verify=True).verification
    assert found is not None and found.verdict == "equal", found


def test_shifts_that_are_constant_and_short_are_kept() -> None:
    node = helper.make_node("BitShift", ["a", "b"], ["c"], direction="LEFT")
    declared = ("uint8", ("n",))
    for amount, kept in ((7, True), (8, False)):
        model = build(node, 28, {"a": declared}, {"c": declared}, {"b": np.array([amount], np.uint8)})
        assert (operators(converted(model, 27)) == ["BitShift"]) == kept


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("target", [17, 9])
def test_complement_below_18(dtype: str, target: int) -> None:
    a = numbers(dtype)
    assert_same([~a], run_reference(converted(unary("BitwiseNot", 18, dtype, dtype), target), {"a": a}))


@pytest.mark.parametrize(
    "zeros", [(None, None), ((), ()), ((4,), (5,)), ((1,), (1,)), ((4, 1), None), ((2, 4, 1), None)]
)
@pytest.mark.parametrize(("left", "right"), [("uint8", "uint8"), ("int8", "uint8")])
def test_matmul_of_integers_below_10(zeros: Any, left: str, right: str) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 100, (2, 4, 3)).astype(left), rng.integers(0, 200, (3, 5)).astype(right)
    feeds = {"a": a, "b": b}
    inputs: dict[str, Any] = {"a": (left, a.shape), "b": (right, b.shape)}
    names = ["a", "b"]
    for name, shape, dtype in (("az", zeros[0], left), ("bz", zeros[1], right)):
        names.append("" if shape is None else name)
        if shape is not None:
            feeds[name] = rng.integers(0, 9, shape).astype(dtype)
            inputs[name] = (dtype, shape)
    az, bz = (feeds.get(name, np.zeros(())).astype(np.int32) for name in ("az", "bz"))
    if az.ndim == 1 and az.size > 1:
        az = az[:, None]
    expected = np.matmul(a.astype(np.int32) - az, b.astype(np.int32) - bz)
    node = helper.make_node("MatMulInteger", names, ["y"])
    model = build(node, 10, inputs, {"y": ("int32", expected.shape)})
    assert_same([expected], run(converted(model, 9), feeds))


@pytest.mark.parametrize("with_zeros", [False, True])
def test_convolution_of_integers_below_10(with_zeros: bool) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.integers(0, 256, (1, 2, 5, 5)).astype(np.uint8), rng.integers(0, 256, (3, 2, 3, 3)).astype(np.uint8)
    feeds = {"x": x, "w": w}
    inputs: dict[str, Any] = {"x": ("uint8", x.shape), "w": ("uint8", w.shape)}
    if with_zeros:
        feeds |= {"xz": np.array(7, np.uint8), "wz": np.array([1, 2, 3], np.uint8)}
        inputs |= {"xz": ("uint8", ()), "wz": ("uint8", (3,))}
    node = helper.make_node("ConvInteger", list(feeds), ["y"], pads=[1, 1, 1, 1], strides=[2, 1])
    model = build(node, 10, inputs, {"y": ("int32", (1, 3, 3, 5))})
    data = np.pad(x.astype(np.int32) - int(feeds.get("xz", 0)), ((0, 0), (0, 0), (1, 1), (1, 1)))
    weights = w.astype(np.int32) - np.asarray(feeds.get("wz", [0, 0, 0])).astype(np.int32)[:, None, None, None]
    windows = np.lib.stride_tricks.sliding_window_view(data, (3, 3), (2, 3))[:, :, ::2]
    expected = np.einsum("nchwij,fcij->nfhw", windows, weights).astype(np.int32)
    assert_same([expected], run(converted(model, 9), feeds))


@pytest.mark.parametrize("channels", [257, 258, 259, 4111, 4112, 4113])
@pytest.mark.parametrize("target", [9, 7])
def test_long_sums_of_integers_below_10(channels: int, target: int) -> None:
    # Of the greatest and the smallest products, whose sums float32 holds up to 258 of them, and of parts up to 4112.
    x, w = np.full((1, channels, 2, 2), 255, np.uint8), np.full((2, channels, 1, 1), 255, np.uint8)
    x[0, :, 1], w[1], x[0, 0, 0, 1], w[:, -1] = 0, 0, 254, 253
    feeds = {"x": x, "w": w, "xz": np.array(0, np.uint8), "wz": np.array([0, 255], np.uint8)}
    inputs = {"x": ("uint8", x.shape), "w": ("uint8", w.shape), "xz": ("uint8", ()), "wz": ("uint8", (2,))}
    weights = w.astype(np.int32) - feeds["wz"].astype(np.int32)[:, None, None, None]
    expected = np.einsum("nchw,fcij->nfhw", x.astype(np.int32), weights).astype(np.int32)
    model = build(helper.make_node("ConvInteger", list(feeds), ["y"]), 10, inputs, {"y": ("int32", expected.shape)})
    after = converted(model, target)
    # onnxruntime convolves no float64.
    found = run_reference(after, feeds) if channels > 4112 else run(after, feeds)
    assert_same([expected], found)
